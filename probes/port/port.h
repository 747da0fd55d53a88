/* port.h - the probe engine as a part of the kernel. */
#pragma once

/* probes_init - give each CPU its area, take the traps, make commands and files known.
 *
 * Context: boot thread, all CPUs online.
 * Return:  0; -ENOMEM; what vfs_add_tree() or shell_add_command() say.
 */
int probes_init(void);

/* port_text_init - remember what text is like before anybody changes it. Context: boot.
 * Return:  0; -ENOMEM.
 */
int port_text_init(void);

/* report_init - let backtraces, panic reports and the log know of probes; take the traps of
 * handlers that fault or sleep. Context: boot thread, all CPUs have their areas.
 */
void report_init(void);

/* probes_add_commands - the console's `probe`. Return: as shell_add_command(). */
int probes_add_commands(void);
/* probes_add_files - below /sys/kernel/debug/kprobes and /proc/sys/debug.
 * Return: as vfs_add_tree().
 */
int probes_add_files(void);

/* probes_add_bench - the console's `bench`. Return: as shell_add_command(). */
int probes_add_bench(void);
