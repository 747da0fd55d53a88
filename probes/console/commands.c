/* commands.c - the console's `probe`: the table of its subcommands, and five of them:
 * add, ret, del, on and off.
 */
#include "probes/console/commands.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/console/console_probe.h"
#include "probes/jump/optimize.h"
#include "probes/port/port.h"

#include <stdio.h>
#include <string.h>

#define SUBCOMMAND_LINE_MAX 160

static const struct probe_command *const subcommands[] = {
    &probe_command_add,   &probe_command_ret,     &probe_command_all,
    &probe_command_watch, &probe_command_list,    &probe_command_hot,
    &probe_command_stat,  &probe_command_del,     &probe_command_on,
    &probe_command_off,   &probe_command_explain, &probe_command_blacklist,
    &probe_command_xmc,
};

int probe_usage(struct shell *sh, const struct probe_command *cmd, int argc, char **argv)
{
    char head[32];

    snprintf(head, sizeof(head), "probe %s", cmd->name);
    shell_blame_option(sh, head, cmd->usage, argc, argv);
    return shell_refuse(sh, EINVAL, "usage: %s%s%s", head, *cmd->usage ? " " : "",
                        cmd->usage);
}

/* ---- add, ret ---- */

/* add_new - add one probe.
 * @how: called before the probe is registered, to choose its kind; NULL: the probe counts
 *       hits
 */
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
    optimize_run(); /* the next command finds the probe in its final form */
    if (cp->one_ptr->flags & KPROBE_FLAG_GONE)
        shell_printf(sh, "%s waits for %s\n", cp->name, place_own_text(at, place));
    else
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
        return probe_usage(sh, cmd, argc, argv);
    if (place_parse(&place, argv[0]))
        return place_no_place(sh, argv[0]);
    console_probe_lock();
    err = add_new(sh, &place, argc > 1 ? argv[1] : NULL, how);
    console_probe_unlock();
    return err;
}

static void wait_for_name(struct console_probe *cp)
{
    cp->one_ptr->flags |= KPROBE_FLAG_PENDING;
}

static void wait_and_follow(struct console_probe *cp)
{
    console_probe_follow(cp);
    wait_for_name(cp);
}

static void wait_and_count_post(struct console_probe *cp)
{
    wait_for_name(cp);
    console_probe_count_post(cp);
}

static int add_run(struct shell *sh, int argc, char **argv)
{
    static void (*const how[2][2])(struct console_probe * cp) = {
        { NULL, wait_for_name },
        { console_probe_count_post, wait_and_count_post },
    };
    bool post = false, pending = false;

    for (; argc > 0; argc--, argv++) {
        if (strcmp(argv[0], "--post") == 0)
            post = true;
        else if (strcmp(argv[0], "--pending") == 0)
            pending = true;
        else
            break;
    }
    return add_named(sh, &probe_command_add, argc, argv, how[post][pending]);
}

static int ret_run(struct shell *sh, int argc, char **argv)
{
    bool pending = argc > 0 && strcmp(argv[0], "--pending") == 0;

    return add_named(sh, &probe_command_ret, argc - pending, argv + pending,
                     pending ? wait_and_follow : console_probe_follow);
}

static void ret_complete(struct shell_completion *c, int index)
{
    if (index <= 2) /* the place is the first word, or the second one behind an option */
        shell_complete_symbols(c, index);
}

const struct probe_command probe_command_ret = {
    .name = "ret",
    .usage = "[--pending] SYM[#N]|ADDRESS [NAME]",
    .help = "follow a function to its returns: value and duration",
    .run = ret_run,
    .complete = ret_complete,
};

static void add_complete(struct shell_completion *c, int index)
{
    if (index <= 3) /* the place is the third word behind two options */
        place_complete(c, index);
}

const struct probe_command probe_command_add = {
    .name = "add",
    .usage = "[--post] [--pending] SYM[#N][+OFF]|FILE:LINE|ADDRESS [NAME]",
    .help = "count how often an instruction is executed",
    .run = add_run,
    .complete = add_complete,
};

/* ---- del, on, off: one by name, or all ---- */

typedef int (*named_fn)(struct shell *sh, struct console_probe *cp);

/* tell_stopped - print how much of @cp is done. The probes behind @cp in the list are not
 * changed.
 */
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

/* do_all - call @fn for all probes of the list, in order, or until the user stops it. */
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
    return cp ? do_one(sh, cp, fn)
              : shell_refuse(sh, ENOENT, "probe: no probe is called %s", name);
}

static int run_named(struct shell *sh, const struct probe_command *cmd, int argc,
                     char **argv, named_fn fn)
{
    int err;

    if (argc != 1)
        return probe_usage(sh, cmd, argc, argv);
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

static const char *subcommand_line(char line[SUBCOMMAND_LINE_MAX],
                                   const struct probe_command *cmd)
{
    snprintf(line, SUBCOMMAND_LINE_MAX, "  %-9s %-36s  %s", cmd->name, cmd->usage,
             cmd->help);
    return line;
}

static int print_overview(struct shell *sh)
{
    char line[SUBCOMMAND_LINE_MAX];

    shell_error(sh, 0, "usage: probe COMMAND ...");
    for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
        shell_error(sh, 0, "%s", subcommand_line(line, subcommands[i]));
    return -EINVAL;
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
    if (cmd && shell_word(c)[0] == '-')
        shell_complete_options(c, cmd->usage);
    else if (cmd && cmd->complete)
        cmd->complete(c, index - 1);
}

static int probe_run(struct shell *sh, int argc, char **argv)
{
    const struct probe_command *cmd = argc > 1 ? find_subcommand(argv[1]) : NULL;
    char suggestion[SHELL_SUGGESTION_MAX];

    if (cmd)
        return cmd->run(sh, argc - 2, argv + 2);
    if (argc < 2)
        return print_overview(sh);
    return shell_refuse(sh, EINVAL,
                        "probe: unknown command %s%s; `help probe` lists them", argv[1],
                        shell_suggest(suggestion, argv[1], probe_complete, 1));
}

static char help[4096];

static struct shell_command command = {
    .name = "probe",
    .usage = "COMMAND ...",
    .help = help,
    .run = probe_run,
    .complete = probe_complete,
};

/* write_help - write the text of `help probe`, with a line for each subcommand. */
static void write_help(void)
{
    char line[SUBCOMMAND_LINE_MAX];

    strlcpy(help, "probes on instructions of this kernel\n", sizeof(help));
    for (size_t i = 0; i < ARRAY_LEN(subcommands); i++) {
        strlcat(help, subcommand_line(line, subcommands[i]), sizeof(help));
        strlcat(help, "\n", sizeof(help));
    }
    strlcat(help,
            "An address is 0x..., or 16 digits as `probe list` shows them. SYM#2 is the "
            "second\nsymbol of one name. In a PATTERN, * ? and [a-z] stand for letters.",
            sizeof(help));
}

INIT int probes_add_commands(void)
{
    int err;

    write_help();
    err = shell_add_command(&command);
    return err ? err : trace_add_command();
}
