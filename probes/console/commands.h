/* commands.h - the console's `probe`, one struct for each subcommand. */
#pragma once

#include "kernel/console/shell.h"

struct probe_command {
    const char *name;
    const char *usage; /* its arguments */
    const char *help;  /* one line */

    /* run - argv[0] is the first argument. Return: 0 or a negative errno, told already. */
    int (*run)(struct shell *sh, int argc, char **argv);

    /* complete - offer what may stand for argument @index, from 1; NULL: nothing to offer. */
    void (*complete)(struct shell_completion *c, int index);
};

extern const struct probe_command probe_command_add, probe_command_ret, probe_command_del,
    probe_command_on, probe_command_off;
extern const struct probe_command probe_command_all;
extern const struct probe_command probe_command_hot;
extern const struct probe_command probe_command_list, probe_command_blacklist;
extern const struct probe_command probe_command_stat;
extern const struct probe_command probe_command_explain;
extern const struct probe_command probe_command_xmc;
extern const struct probe_command probe_command_watch;

/* trace_add_command - the console's `trace`. Return: as shell_add_command(). */
int trace_add_command(void);

/* probe_usage - tell how @cmd is called, and which of its @argc words is an option that it
 * does not have. Return: -EINVAL.
 */
int probe_usage(struct shell *sh, const struct probe_command *cmd, int argc, char **argv);
