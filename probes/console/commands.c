/* commands.c - the console's `probe`: which subcommands there are, and the first four of
 * them: add, del, on, off.
 */
#include "probes/console/commands.h"

#include "kernel/base/err.h"
#include "probes/console/console_probe.h"
#include "probes/jump/optimize.h"
#include "probes/port/port.h"

#include <string.h>

static const struct probe_command *const subcommands[] = {
    &probe_command_add,       &probe_command_ret,  &probe_command_all,
    &probe_command_list,      &probe_command_stat, &probe_command_del,
    &probe_command_on,        &probe_command_off,  &probe_command_explain,
    &probe_command_blacklist, &probe_command_xmc,
};

int probe_usage(struct shell *sh, const struct probe_command *cmd)
{
    return shell_error(sh, EINVAL, "usage: probe %s%s%s", cmd->name,
                       *cmd->usage ? " " : "", cmd->usage);
}

/* ---- add, ret ---- */

/* add_new - @how: what kind of probe it is to be; NULL: it counts hits */
static int add_new(struct shell *sh, const struct place *place, const char *name,
                   void (*how)(struct console_probe *cp))
{
    struct console_probe *cp;
    struct probe_reject why;
    char at[PLACE_TEXT_MAX];
    int err = console_probe_new(&cp, name, 0);

    if (err)
        return shell_error(sh, err, "probe: name %s", name ? name : "");
    cp->place = *place;
    cp->count = 1;
    if (how)
        how(cp);
    place_fill(cp->one_ptr, &cp->place);
    err = cp->kind == CONSOLE_RETURN ? register_kretprobe_why(&cp->ret, &why)
                                     : register_kprobe_why(&cp->one, &why);
    if (err) {
        console_probe_free(cp);
        return place_refused(sh, place, &why);
    }
    console_probe_add(cp);
    optimize_run(); /* what is typed next finds what this probe is going to be */
    shell_printf(sh, "%s at %s\n", cp->name, place_text(at, cp->one_ptr->addr));
    if (place_inlined(place))
        shell_printf(sh, "%s is also inlined at %zu places: not counted\n", place->symbol,
                     place_inlined(place));
    return 0;
}

static int add_named(struct shell *sh, const struct probe_command *cmd, int argc,
                     char **argv, void (*how)(struct console_probe *cp))
{
    struct place place;
    int err;

    if (argc < 1 || argc > 2 || argv[0][0] == '-')
        return probe_usage(sh, cmd);
    if (place_parse(&place, argv[0]))
        return place_no_place(sh, argv[0]);
    console_probe_lock();
    err = add_new(sh, &place, argc > 1 ? argv[1] : NULL, how);
    console_probe_unlock();
    return err;
}

static int add_run(struct shell *sh, int argc, char **argv)
{
    bool post = argc > 0 && strcmp(argv[0], "--post") == 0;

    return add_named(sh, &probe_command_add, argc - post, argv + post,
                     post ? console_probe_count_post : NULL);
}

static int ret_run(struct shell *sh, int argc, char **argv)
{
    return add_named(sh, &probe_command_ret, argc, argv, console_probe_follow);
}

static void ret_complete(struct shell_completion *c, int index)
{
    if (index == 1)
        shell_complete_symbols(c, index);
}

const struct probe_command probe_command_ret = {
    .name = "ret",
    .usage = "SYM[#N]|ADDRESS [NAME]",
    .help = "follow a function to its returns: value and duration",
    .run = ret_run,
    .complete = ret_complete,
};

static void add_complete(struct shell_completion *c, int index)
{
    if (index == 1)
        shell_offer(c, "--post");
    if (index <= 2)
        shell_complete_symbols(c, index);
}

const struct probe_command probe_command_add = {
    .name = "add",
    .usage = "[--post] SYM[#N][+OFF]|ADDRESS [NAME]",
    .help = "count how often an instruction is executed",
    .run = add_run,
    .complete = add_complete,
};

/* ---- del, on, off: one by name, or all ---- */

typedef int (*named_fn)(struct shell *sh, struct console_probe *cp);

/* tell_stopped - what has been done of @cp, and what of the list. */
static void tell_stopped(struct shell *sh, const struct console_probe *cp)
{
    shell_error(sh, 0, "probe: stopped at %s: %zu of its %zu probes are off", cp->name,
                console_probe_disabled(cp), cp->count);
}

static int do_one(struct shell *sh, struct console_probe *cp, named_fn fn)
{
    int err = shell_interrupted(sh) ? -EINTR : fn(sh, cp);

    if (err == -EINTR)
        tell_stopped(sh, cp);
    else if (err)
        shell_error(sh, err, "probe: %s", cp->name);
    return err;
}

/* do_all - to those that come first in the list when it is stopped; else to all. */
static int do_all(struct shell *sh, named_fn fn)
{
    struct console_probe *cp = console_probe_next(NULL), *next;
    int err = 0;

    for (; cp && err != -EINTR; cp = next) {
        int failed;

        next = console_probe_next(cp);
        failed = do_one(sh, cp, fn);
        err = err && failed != -EINTR ? err : failed;
    }
    return err;
}

static int do_named(struct shell *sh, const char *name, named_fn fn)
{
    struct console_probe *cp = console_probe_find(name);

    if (strcmp(name, "all") == 0)
        return do_all(sh, fn);
    return cp ? do_one(sh, cp, fn) : shell_error(sh, ENOENT, "probe: %s", name);
}

static int run_named(struct shell *sh, const struct probe_command *cmd, int argc,
                     char **argv, named_fn fn)
{
    int err;

    if (argc != 1)
        return probe_usage(sh, cmd);
    console_probe_lock();
    err = do_named(sh, argv[0], fn);
    console_probe_unlock();
    return err;
}

static int del_run(struct shell *sh, int argc, char **argv)
{
    return run_named(sh, &probe_command_del, argc, argv, console_probe_del);
}

static int on_run(struct shell *sh, int argc, char **argv)
{
    return run_named(sh, &probe_command_on, argc, argv, console_probe_on);
}

static int off_run(struct shell *sh, int argc, char **argv)
{
    return run_named(sh, &probe_command_off, argc, argv, console_probe_off);
}

static void names_complete(struct shell_completion *c, int index)
{
    struct console_probe *cp = NULL;

    if (index != 1)
        return;
    console_probe_lock();
    while ((cp = console_probe_next(cp)) != NULL)
        shell_offer(c, cp->name);
    console_probe_unlock();
    shell_offer(c, "all");
}

const struct probe_command probe_command_del = {
    "del", "NAME|all", "take a probe away", del_run, names_complete,
};
const struct probe_command probe_command_on = {
    "on", "NAME|all", "switch a probe on", on_run, names_complete,
};
const struct probe_command probe_command_off = {
    "off", "NAME|all", "switch a probe off, but keep it", off_run, names_complete,
};

/* ---- the command ---- */

static const struct probe_command *find_subcommand(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
        if (strcmp(name, subcommands[i]->name) == 0)
            return subcommands[i];
    return NULL;
}

static int print_overview(struct shell *sh)
{
    shell_error(sh, 0, "usage: probe COMMAND ...");
    for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
        shell_error(sh, 0, "  %-9s %-36s  %s", subcommands[i]->name,
                    subcommands[i]->usage, subcommands[i]->help);
    return -EINVAL;
}

static int probe_run(struct shell *sh, int argc, char **argv)
{
    const struct probe_command *cmd = argc > 1 ? find_subcommand(argv[1]) : NULL;

    return cmd ? cmd->run(sh, argc - 2, argv + 2) : print_overview(sh);
}

static void probe_complete(struct shell_completion *c, int index)
{
    const struct probe_command *cmd;

    if (index == 1) {
        for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
            shell_offer(c, subcommands[i]->name);
        return;
    }
    cmd = find_subcommand(shell_first(c));
    if (cmd && cmd->complete)
        cmd->complete(c, index - 1);
}

static const struct shell_command command = {
    .name = "probe",
    .usage = "add|ret|all|list|stat|del|on|off|explain|blacklist ...",
    .help =
        "probes on instructions of this kernel\n"
        "add [--post] PLACE [NAME]   count how often an instruction is executed; with\n"
        "                            --post, by a handler behind it too\n"
        "ret SYM [NAME]              follow a function to its returns: the last value, "
        "how\n"
        "                            long that took, and the mean\n"
        "all [PATTERN] [--entries]   the same for all instructions, or the entries, of\n"
        "                            the functions whose names match (* ? [a-z])\n"
        "list                        address, way to run, hits and misses of each\n"
        "stat                        numbers, one NAME VALUE a line\n"
        "del|on|off NAME|all         take away, switch on, switch off\n"
        "explain PLACE               what decides about an address\n"
        "blacklist                   code that can never carry a probe\n"
        "PLACE is SYM, SYM+OFF, SYM#2 for the second of that name, or an address: "
        "0x...,\n"
        "or 16 digits as `probe list` shows them.",
    .run = probe_run,
    .complete = probe_complete,
};

int probes_add_commands(void)
{
    return shell_add_command(&command);
}
