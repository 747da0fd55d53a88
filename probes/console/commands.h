/* commands.h - declares the subcommands of the console's `probe`, one struct for each. */
#pragma once

#include "kernel/console/shell.h"

struct probe_command {
    const char *name;
    const char *usage; /* its arguments, as the usage line shows them */
    const char *help;  /* one line */

    /* run - do the subcommand. argv[0] is its first argument.
     * Return: 0, or a negative errno after the function has told the user why.
     */
    int (*run)(struct shell *sh, int argc, char **argv);

    /* complete - offer the words that can stand for argument @index, counted from 1.
     * NULL: there is nothing to offer.
     */
    void (*complete)(struct shell_completion *c, int index);
};

extern const struct probe_command probe_command_add, probe_command_ret, probe_command_del,
    probe_command_on, probe_command_off;
extern const struct probe_command probe_command_all;
extern const struct probe_command probe_command_hot;
extern const struct probe_command probe_command_list, probe_command_blacklist;
extern const struct probe_command probe_command_stat;
extern const struct probe_command probe_command_explain;
extern const struct probe_command probe_command_listing;
extern const struct probe_command probe_command_hide;
extern const struct probe_command probe_command_xmc;
extern const struct probe_command probe_command_watch;

extern const struct shell_command trace_command;

/* probe_usage - print how @cmd is called. If one of the @argc words is an option that
 * @cmd does not have, print that as well. Return: -EINVAL.
 */
int probe_usage(struct shell *sh, const struct probe_command *cmd, int argc, char **argv);

/* console_probe_unknown - say that no probe is called @name. The caller holds
 * console_probe_lock(). Return: -ENOENT.
 */
int console_probe_unknown(struct shell *sh, const char *name);
