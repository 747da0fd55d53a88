/* commands_all.c - `probe all`: probes every instruction, or every entry, of many
 * functions, or of those of a source file, and puts these probes into the list as one set.
 * Instructions that the rules refuse are left out, and counted by rule.
 */
#include "kernel/base/err.h"
#include "kernel/debug/lines.h"
#include "probes/console/commands.h"
#include "probes/console/console_probe.h"
#include "probes/many/census.h"
#include "probes/many/mass.h"
#include "probes/many/walk.h"

#include <string.h>

#define PROGRESS_STEP 64 /* functions between two checks for Ctrl-C */

struct all {
    struct shell *sh;
    const char *pattern;
    bool entries;
    struct console_probe *cp; /* NULL while the places are only counted */
    uintptr_t done;           /* see walk_boundaries() */
    size_t functions, places;
    size_t refused[PROBE_REASON_COUNT];
    const char *why[PROBE_REASON_COUNT]; /* the sentence, if all have the same one */
    int err;                             /* not 0: the walk ends */
};

/* ---- collect ---- */

static void all_take_place(struct all *all, uintptr_t addr)
{
    struct console_probe *cp = all->cp;

    if (cp && all->places == cp->room)
        return; /* a module has come since the places were counted */
    if (cp) {
        cp->probes[all->places].addr = addr;
        cp->ps[all->places] = &cp->probes[all->places];
    }
    all->places++;
}

static void take_insn(const struct insn *insn, void *arg)
{
    all_take_place(arg, insn->addr);
}

/* If a function cannot be decoded to its end, the instructions before that point are
 * taken.
 */
static int take_insns(struct all *all, const struct plat_symbol *function)
{
    int err = walk_boundaries(function, &all->done, take_insn, all);

    return err == -ENOMEM ? err : 0;
}

static bool take_function(const struct plat_symbol *function, void *arg)
{
    struct all *all = arg;

    if (all->functions++ % PROGRESS_STEP == 0) {
        shell_progress(all->sh, "%zu functions, %zu places", all->functions, all->places);
        all->err = shell_interrupted(all->sh) ? -EINTR : 0;
    }
    if (all->entries)
        all_take_place(all, function->start);
    else if (!all->err)
        all->err = take_insns(all, function);
    return !all->err;
}

/* A file has its functions in the order of lines, not of addresses. */
static bool take_function_of_file(const struct plat_symbol *function, void *arg)
{
    struct all *all = arg;

    all->done = 0;
    return take_function(function, all);
}

static int collect_places(struct all *all)
{
    size_t iter = 0;
    int file = lines_file(all->pattern, strlen(all->pattern), &iter);

    all->done = 0;
    all->functions = all->places = 0;
    if (file >= 0)
        walk_file(file, take_function_of_file, all);
    else
        walk_functions(all->pattern, take_function, all);
    shell_progress(all->sh, NULL);
    return all->err;
}

/* ---- register, report ---- */

static void note_refused(struct kprobe *p UNUSED, const struct probe_reject *why,
                         void *arg)
{
    struct all *all = arg;

    if (!all->refused[why->reason]++)
        all->why[why->reason] = why->why;
    else if (strcmp(all->why[why->reason], why->why) != 0)
        all->why[why->reason] = "`probe blacklist` has the reasons";
}

static void all_report(struct all *all)
{
    size_t armed = kprobes_are_on() ? all->cp->count : 0;

    shell_printf(all->sh, "%s: armed %zu of %zu %s of %zu functions%s\n",
                 all->cp->count ? all->cp->name : "none", armed, all->places,
                 all->entries ? "entries" : "instructions", all->functions,
                 kprobes_are_on() ? "" : ", since kprobes are switched off");
    for (unsigned reason = 0; reason < PROBE_REASON_COUNT; reason++)
        if (all->refused[reason])
            shell_printf(all->sh, "refused %-14s %7zu  %s\n",
                         probe_reason_name((enum probe_reason)reason),
                         all->refused[reason], all->why[reason]);
}

static int register_all(struct all *all)
{
    const struct mass_caller caller = { shell_stop, shell_show_progress, all->sh };
    struct console_probe *cp = all->cp;
    long in;

    in = mass_register(&caller, cp->ps, all->places, note_refused, all);
    if (in < 0)
        return (int)in;
    cp->count = (size_t)in;
    return 0;
}

/* all_finish - put the set into the list and report, or free it. A set in which no probe is
 * registered gets neither a place in the list nor a name.
 */
static int all_finish(struct all *all, int err)
{
    bool stays = !err && all->cp->count;

    if (stays)
        console_probe_add(all->cp);
    if (!err)
        all_report(all);
    if (!stays)
        console_probe_free(all->cp);
    return err;
}

static int set_all(struct all *all)
{
    int err = collect_places(all); /* counts the places */

    if (!err && !all->places)
        err = -ENOENT;
    if (!err)
        err = console_probe_new(&all->cp, NULL, all->places);
    if (err)
        return err;
    all->cp->kind = all->entries ? CONSOLE_ENTRIES : CONSOLE_INSTRUCTIONS;
    strlcpy(all->cp->pattern, all->pattern, sizeof(all->cp->pattern));
    err = collect_places(all);
    return all_finish(all, err ? err : register_all(all));
}

/* ---- the command ---- */

static int all_tell(const struct all *all, int err)
{
    if (err == -ENOENT)
        shell_error(all->sh, 0, "probe: no function has a name like %s", all->pattern);
    else if (err == -EINTR)
        shell_error(all->sh, 0, "probe: all %s: stopped; none of its probes is left",
                    all->pattern);
    else if (err)
        shell_error(all->sh, err, "probe: all %s", all->pattern);
    return err;
}

static int all_run(struct shell *sh, int argc, char **argv)
{
    struct all all = { .sh = sh };
    const struct census *text;
    int err;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--entries") == 0)
            all.entries = true;
        else if (all.pattern || argv[i][0] == '-')
            return probe_usage(sh, &probe_command_all, argc, argv);
        else
            all.pattern = argv[i];
    }
    if (!all.pattern)
        all.pattern = "*";
    err = census_get(shell_stop, sh,
                     &text); /* count now: with probes everywhere it takes a minute */
    if (err == -EINTR)
        return all_tell(&all, err);
    console_probe_lock();
    err = set_all(&all);
    console_probe_unlock();
    return all_tell(&all, err);
}

const struct probe_command probe_command_all = {
    .name = "all",
    .usage = "[PATTERN|FILE] [--entries]",
    .help = "probe all instructions of the functions that match, or of a file",
    .run = all_run,
    .complete = shell_complete_symbols,
};
