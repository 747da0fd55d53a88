/* port.h - the probe engine as a part of the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* probes_init - port_core_init(), and all other rooms; commands and files are made known.
 *
 * Context: boot thread, all CPUs online.
 * Return:  0; -ENOMEM; what vfs_add_tree() or shell_add_command() say.
 */
int probes_init(void);

/* port_core_init - give each CPU its area, and take the traps of breakpoints.
 * @inside: is a thread that is at @ip inside code that can be taken away, or text that is
 *          about to be written? Context: any.
 *
 * Context: boot thread, all CPUs online.  Return: 0; -ENOMEM.
 */
int port_core_init(bool (*inside)(uintptr_t ip));

/* port_text_init - remember what text is like before it is changed. Context: boot.
 * Return:  0; -ENOMEM.
 */
int port_text_init(void);

/* port_shadow_init - be told of threads that come and go. Context: boot. */
void port_shadow_init(void);

/* port_detour_cell - a CPU is at @ip, in code that the detours call, with stack pointer
 * @sp: at which address of its cell will it go on? Context: any.
 * Return: that address; @ip itself when the stack cannot be read.
 */
uintptr_t port_detour_cell(uintptr_t ip, uintptr_t sp);

/* port_optimizer_start - make the thread that turns breakpoints into jumps. Context: boot.
 * Return:  0; -ENOMEM.
 */
int port_optimizer_start(void);

/* port_watch_init - take #DB for watches, too. Context: boot. */
void port_watch_init(void);

/* report_init - let backtraces, panic reports and the log know of probes; take the traps of
 * handlers that fault or sleep. Context: boot thread, all CPUs have their areas.
 */
void report_init(void);

/* port_module_init - let the engine hear of modules. Context: boot.
 * Return: 0; -ENOMEM.
 * port_module_targets - plat_targets() of what was loaded.
 */
struct plat_targets;
int port_module_init(void);
void port_module_targets(uintptr_t addr, struct plat_targets *out);

/* probes_add_commands - the console's `probe`. Return: as shell_add_command(). */
int probes_add_commands(void);
/* probes_add_files - below /sys/kernel/debug/kprobes and /proc/sys/debug.
 * Return: as vfs_add_tree().
 */
int probes_add_files(void);

/* probes_add_listed - the boot words probes=@list: `probe add` of each, which counts hits.
 * The log tells of those that are refused. Context: boot, behind probes_init().
 */
void probes_add_listed(const char *list);

/* port_unprobe_at_panic - a panic shall restore all text, and say so. Context: boot. */
void port_unprobe_at_panic(void);

/* port_choose_jump - the boot word kprobes-jump=@word, as the file takes it.
 * Return: 0; -EINVAL.
 */
int port_choose_jump(const char *word);

/* film_add_command - the console's `film`. Return: as shell_add_command(). */
int film_add_command(void);

/* probes_add_bench - the console's `bench`. Return: as shell_add_command(). */
int probes_add_bench(void);
