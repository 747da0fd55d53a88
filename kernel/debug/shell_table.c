/* shell_table.c - which commands there are, and `help` about them.
 *
 * Filled at boot and never changed afterwards, so shells read it without a lock.
 */
#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/debug/shell_state.h"

#include <string.h>

#define COMMANDS_MAX 96

static const struct shell_command *table[COMMANDS_MAX]; /* sorted by name */
static unsigned count;

const struct shell_command *shell_table_find(const char *name)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

const struct shell_command *shell_table_get(unsigned idx)
{
    return idx < count ? table[idx] : NULL;
}

int shell_add_command(const struct shell_command *cmd)
{
    unsigned at = count;

    if (shell_table_find(cmd->name))
        return -EEXIST;
    if (count == COMMANDS_MAX)
        return -ENOSPC;
    for (; at > 0 && strcmp(table[at - 1]->name, cmd->name) > 0; at--)
        table[at] = table[at - 1];
    table[at] = cmd;
    count++;
    return 0;
}

static void add_all(const struct shell_command *cmd)
{
    for (; cmd->name; cmd++)
        BUG_ON(shell_add_command(cmd));
}

void shell_init(void)
{
    add_all(shell_help_commands);
    add_all(shell_file_commands);
    add_all(shell_filter_commands);
    add_all(shell_system_commands);
    add_all(shell_power_commands);
}

/* -- help ---------------------------------------------------------------------------- */

static void print_synopsis(struct shell *sh, const struct shell_command *cmd)
{
    shell_printf(sh, "%s%s%s\n", cmd->name, *cmd->usage ? " " : "", cmd->usage);
}

int shell_usage(struct shell *sh, const char *name)
{
    const struct shell_command *cmd = shell_table_find(name);

    return shell_error(sh, EINVAL, "usage: %s %s", name, cmd ? cmd->usage : "");
}

static void print_overview(struct shell *sh)
{
    for (unsigned i = 0; i < count; i++) {
        const char *help = table[i]->help;

        shell_printf(sh, "%-10s %.*s\n", table[i]->name, (int)strcspn(help, "\n"), help);
    }
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
        print_overview(sh);
        return 0;
    }
    cmd = shell_table_find(argv[1]);
    if (!cmd)
        return shell_error(sh, ENOENT, "help: %s", argv[1]);
    print_synopsis(sh, cmd);
    shell_printf(sh, "%s\n", cmd->help);
    return 0;
}

const struct shell_command shell_help_commands[] = {
    { "help", "[CMD]", "list the commands, or explain one", help_run,
      shell_complete_commands },
    {},
};
