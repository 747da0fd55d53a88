/* commands.c - the console's `probe`: the table of its subcommands, and six of them:
 * add, ret, del, on, off and hide.
 */
#include "probes/console/commands.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/params.h"
#include "probes/console/console_probe.h"
#include "probes/core/platform.h"
#include "probes/jump/optimize.h"
#include "probes/port/port.h"
#include "probes/trace/buffer/buffer.h"

#include <stdio.h>
#include <string.h>

#define SUBCOMMAND_LINE_MAX 160

static const struct probe_command *const subcommands[] = {
    &probe_command_add,     &probe_command_ret,     &probe_command_all,
    &probe_command_watch,   &probe_command_list,    &probe_command_hot,
    &probe_command_stat,    &probe_command_del,     &probe_command_on,
    &probe_command_off,     &probe_command_explain, &probe_command_blacklist,
    &probe_command_listing, &probe_command_hide,    &probe_command_xmc,
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

/* What the words in front of the place say. */
struct add_options {
    bool post, pending, follow;
    unsigned words; /* of --if and --every, and what follows each */
    char **word;
    struct program_line line;
};

/* add_prepare - choose the kind of @cp, which is not registered yet. */
static void add_prepare(struct console_probe *cp, const struct add_options *options)
{
    if (options->follow)
        console_probe_follow(cp);
    if (options->post)
        console_probe_count_post(cp);
    if (options->pending)
        cp->one_ptr->flags |= KPROBE_FLAG_PENDING;
    if (!options->follow)
        console_probe_program(cp, &options->line);
}

static int add_new(struct shell *sh, const struct place *place, const char *name,
                   const struct add_options *options)
{
    struct console_probe *cp;
    struct probe_reject why;
    char at[PLACE_TEXT_MAX];
    int err = console_probe_new(&cp, name, 0);

    if (err)
        return shell_error(sh, err, "probe: name %s", name ? name : "");
    cp->place = *place;
    cp->count = 1;
    add_prepare(cp, options);
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

static bool add_is_of_program(const char *word)
{
    return strcmp(word, "--if") == 0 || strcmp(word, "--every") == 0;
}

/* add_function - the function at whose entry @place is; 0: @place is elsewhere, or the
 * parameters of the function are not known.
 */
static uintptr_t add_function(const struct place *place)
{
    struct plat_symbol symbol;
    uintptr_t addr;
    size_t len;

    if (place_find(place, &addr, NULL) || plat_symbol_at(addr, &symbol) ||
        symbol.start != addr || !params_return(addr, &len))
        return 0;
    return addr;
}

/* add_read_program - read the conditions, now that the place is known. Return: 0; -EINVAL,
 * after the user has been told why.
 */
static int add_read_program(struct shell *sh, const struct place *place,
                            struct add_options *options)
{
    char **word = options->word;
    const char *why;

    options->line.function = options->words ? add_function(place) : 0;
    for (unsigned i = 0; i < options->words; i++) {
        if (!add_is_of_program(word[i]))
            continue;
        why = strcmp(word[i], "--if") == 0
                  ? program_line_if(&options->line, word[i + 1])
                  : program_line_every(&options->line, word[i + 1]);
        if (why)
            return shell_refuse(sh, EINVAL, "probe: add: %s '%s': %s", word[i],
                                word[i + 1], why);
        i++;
    }
    return 0;
}

static int add_named(struct shell *sh, const struct probe_command *cmd, int argc,
                     char **argv, struct add_options *options)
{
    struct place place;
    int err;

    if (argc < 1 || argc > 2 || argv[0][0] == '-' || argv[argc - 1][0] == '-')
        return probe_usage(sh, cmd, argc, argv);
    if (place_parse(&place, argv[0]))
        return place_no_place(sh, argv[0]);
    err = add_read_program(sh, &place, options);
    if (err)
        return err;
    console_probe_lock();
    err = add_new(sh, &place, argc > 1 ? argv[1] : NULL, options);
    console_probe_unlock();
    return err;
}

static int probe_add_run(struct shell *sh, int argc, char **argv)
{
    struct add_options options = { .post = false };
    int words = 0;

    options.word = argv;
    for (; argc > words; words++) {
        const char *word = argv[words];

        if (strcmp(word, "--post") == 0)
            options.post = true;
        else if (strcmp(word, "--pending") == 0)
            options.pending = true;
        else if (words + 2 < argc && add_is_of_program(word))
            words++;
        else
            break;
    }
    options.words = (unsigned)words;
    return add_named(sh, &probe_command_add, argc - words, argv + words, &options);
}

static int ret_run(struct shell *sh, int argc, char **argv)
{
    bool pending = argc > 0 && strcmp(argv[0], "--pending") == 0;
    struct add_options options = { .follow = true, .pending = pending };

    return add_named(sh, &probe_command_ret, argc - pending, argv + pending, &options);
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
    if (index <= 7) /* the place may come behind four options, two of them with a word */
        place_complete(c, index);
}

const struct probe_command probe_command_add = {
    .name = "add",
    .usage =
        "[--post] [--pending] [--if COND] [--every N] SYM[#N][+OFF]|FILE:LINE|ADDRESS "
        "[NAME]",
    .help = "count how often an instruction is executed",
    .run = probe_add_run,
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

static void offer_probes(struct shell_completion *c, int index UNUSED)
{
    struct console_probe *cp = NULL;

    while ((cp = console_probe_next(cp)) != NULL)
        shell_offer(c, cp->name);
}

static void names_complete(struct shell_completion *c, int index)
{
    if (index != 1)
        return;
    console_probe_lock();
    offer_probes(c, index);
    console_probe_unlock();
    shell_offer(c, "all");
}

int console_probe_unknown(struct shell *sh, const char *name)
{
    char suggestion[SHELL_SUGGESTION_MAX];

    return shell_refuse(sh, ENOENT, "probe: no probe is called %s%s", name,
                        shell_suggest(suggestion, name, offer_probes, 1));
}

static int do_named(struct shell *sh, const char *name, named_fn fn)
{
    struct console_probe *cp = console_probe_find(name);

    if (strcmp(name, "all") == 0)
        return do_all(sh, fn);
    return cp ? do_one(sh, cp, fn) : console_probe_unknown(sh, name);
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

const struct probe_command probe_command_del = {
    "del", "NAME|all", "take a probe away", del_run, names_complete,
};
const struct probe_command probe_command_on = {
    "on", "NAME|all", "switch a probe on", on_run, names_complete,
};
const struct probe_command probe_command_off = {
    "off", "NAME|all", "switch a probe off, but keep it", off_run, names_complete,
};

/* ---- hide ---- */

static int hide_run(struct shell *sh, int argc, char **argv)
{
    if (argc)
        return probe_usage(sh, &probe_command_hide, argc, argv);
    console_probe_lock();
    trace_lock();
    console_probe_hide();
    trace_unlock();
    console_probe_unlock();
    return 0;
}

const struct probe_command probe_command_hide = {
    "hide",   "",   "for programs: let later probes miss what this thread does",
    hide_run, NULL,
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
    return err ? err : shell_add_command(&trace_command);
}
