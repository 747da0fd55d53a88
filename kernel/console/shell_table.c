/* shell_table.c - owns the table of the commands, and prints `help` about them.
 *
 * The table is filled at boot; a module may add commands later. Shells read it without a
 * lock: at each moment, a shell that goes through the table upwards finds all commands.
 */
#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/debug/panic.h"

#include <string.h>

#define COMMANDS_MAX 96

static struct {
    const struct shell_command *cmd;
    bool for_developers;
} table[COMMANDS_MAX]; /* sorted by name */
static unsigned count;

const struct shell_command *shell_table_find(const char *name)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(table[i].cmd->name, name) == 0)
            return table[i].cmd;
    }
    return NULL;
}

const struct shell_command *shell_table_get(unsigned idx)
{
    return idx < count ? table[idx].cmd : NULL;
}

int shell_table_add(const struct shell_command *cmd, bool for_developers)
{
    unsigned at = count;

    if (shell_table_find(cmd->name))
        return -EEXIST;
    if (count == COMMANDS_MAX)
        return -ENOSPC;
    table[at].cmd = cmd; /* the new last entry, until another is moved up to there */
    __atomic_store_n(&count, at + 1, __ATOMIC_RELEASE);
    for (; at > 0 && strcmp(table[at - 1].cmd->name, cmd->name) > 0; at--)
        table[at] = table[at - 1];
    WRITE_ONCE(table[at].cmd, cmd);
    table[at].for_developers = for_developers;
    return 0;
}

bool shell_has_command(uintptr_t start, uintptr_t end)
{
    for (unsigned i = 0; i < count; i++)
        if (leads_into(table[i].cmd, sizeof(*table[i].cmd), start, end))
            return true;
    return false;
}

static void table_add_all(const struct shell_command *cmd)
{
    for (; cmd->name; cmd++)
        BUG_ON(shell_add_command(cmd));
}

INIT void shell_init(void)
{
    table_add_all(shell_help_commands);
    table_add_all(shell_file_commands);
    table_add_all(shell_filter_commands);
    table_add_all(shell_system_commands);
    table_add_all(shell_power_commands);
}

int shell_unknown_command(struct shell *sh, const char *head, const char *name)
{
    char suggestion[SHELL_SUGGESTION_MAX];

    return shell_refuse(sh, ENOENT, "%s: unknown command %s%s", head, name,
                        shell_suggest(suggestion, name, shell_complete_commands, 0));
}

/* -- help ---------------------------------------------------------------------------- */

static void print_synopsis(struct shell *sh, const struct shell_command *cmd)
{
    shell_printf(sh, "%s%s%s\n", cmd->name, *cmd->usage ? " " : "", cmd->usage);
}

int shell_usage(struct shell *sh, int argc, char **argv)
{
    const struct shell_command *cmd = shell_table_find(argv[0]);
    const char *usage = cmd ? cmd->usage : "";

    shell_blame_option(sh, argv[0], usage, argc - 1, argv + 1);
    return shell_refuse(sh, EINVAL, "usage: %s%s%s", argv[0], *usage ? " " : "", usage);
}

/* print_commands - print a line for each command. @head: in front of the first line */
static void print_commands(struct shell *sh, bool for_developers, const char *head)
{
    unsigned printed = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct shell_command *cmd = table[i].cmd;

        if (table[i].for_developers != for_developers)
            continue;
        shell_printf(sh, "%s%-10s %.*s\n", printed++ ? "" : head, cmd->name,
                     (int)strcspn(cmd->help, "\n"), cmd->help);
    }
}

static void print_help_overview(struct shell *sh)
{
    print_commands(sh, false, "");
    print_commands(sh, true, "\nFor work on the kernel itself:\n");
    shell_printf(sh, "\n"
                     "CMD > FILE and CMD >> FILE write a file, CMD | CMD is a pipe. Text "
                     "in '...' or\n"
                     "\"...\" is one word. Tab completes, Ctrl-C stops a command. `help "
                     "CMD` says more.\n");
}

static int help_run(struct shell *sh, int argc, char **argv)
{
    const struct shell_command *cmd;

    if (argc < 2) {
        print_help_overview(sh);
        return 0;
    }
    cmd = shell_table_find(argv[1]);
    if (!cmd)
        return shell_unknown_command(sh, "help", argv[1]);
    print_synopsis(sh, cmd);
    shell_printf(sh, "%s\n", cmd->help);
    return 0;
}

const struct shell_command shell_help_commands[] = {
    { "help", "[CMD]", "list the commands, or explain one", help_run,
      shell_complete_commands },
    {},
};
