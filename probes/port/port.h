/* port.h - connects the probe engine with the rest of the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* probes_init - port_core_init(), then the same for all other rooms; adds the commands of
 * the console and the files. Context: thread, all CPUs online.
 * Return:  0; -ENOMEM; an errno of vfs_add_tree() or shell_add_command().
 */
int probes_init(void);

/* port_core_init - give each CPU its struct probe_cpu, and set the handlers of the traps
 * that breakpoints cause.
 * @inside: plat_quiesce() asks it: is @ip in code that may be freed, or in text that is
 *          about to be written? Context: any.
 *
 * Context: thread, all CPUs online.  Return: 0; -ENOMEM.
 */
int port_core_init(bool (*inside)(uintptr_t ip));

/* Why a function is blacklisted that is not part of the kernel. */
extern const char port_marked_text[];

/* port_text_init - keep hashes of the text, before it is changed. Context: boot.
 * Return:  0; -ENOMEM.
 */
int port_text_init(void);

/* port_shadow_init - let the engine be told when a thread begins or ends. Context: boot. */
void port_shadow_init(void);

/* port_shadow_of - plat_shadow_of() for a backtrace. In `held` and `stopped` it finds the
 * shadow of any thread: then the list of threads can be read without its lock. Context: any.
 */
const struct shadow *port_shadow_of(uintptr_t at);

/* port_detour_cell - a CPU is at @ip, in code that the detours call, with stack pointer
 * @sp: find the address in the detour's cell at which the CPU will go on. Context: any.
 * Return: that address; @ip itself when the stack cannot be read.
 */
uintptr_t port_detour_cell(uintptr_t ip, uintptr_t sp);

/* port_optimizer_start - make the thread that turns breakpoints into jumps. Context: boot.
 * Return:  0; -ENOMEM.
 */
int port_optimizer_start(void);

/* port_watch_init - let watches handle #DB, too. Context: boot. */
void port_watch_init(void);

/* report_init - let backtraces, panic reports and the log show probes; set the trap
 * handlers for probe handlers that fault or sleep. Context: thread, after
 * port_core_init().
 */
void report_init(void);

/* port_module_init - let the engine be told when modules are loaded and unloaded. Context:
 * boot.
 * Return: 0; -ENOMEM.
 * port_module_targets - plat_targets() for the text of modules.
 */
struct plat_targets;
int port_module_init(void);
void port_module_targets(uintptr_t addr, struct plat_targets *out);

/* probes_add_commands - add the console's `probe`. Return: as shell_add_command(). */
int probes_add_commands(void);
/* probes_add_files - add the files below /sys/kernel/debug/kprobes and /proc/sys/debug.
 * Return: as vfs_add_tree().
 */
int probes_add_files(void);

/* probes_add_listed - the boot argument probes=@list: do `probe add` for each entry, which
 * makes a probe that counts hits. The log has the entries that are refused.
 * @list: is changed
 *
 * Context: boot, after probes_init().
 */
void probes_add_listed(char *list);

/* port_unprobe_at_panic - let a panic restore all text, and say so. Context: boot. */
void port_unprobe_at_panic(void);

/* port_choose_jump - do what the boot argument kprobes-jump=@word asks for.
 * port_choose_text_engine - do what the boot argument text-poke=@word asks for.
 * The words are those that the file of this name in /proc/sys/debug accepts.
 * Return: 0; -EINVAL.
 */
int port_choose_jump(const char *word);
int port_choose_text_engine(const char *word);

/* film_add_command - add the console's `film`. Return: as shell_add_command(). */
int film_add_command(void);

/* probes_add_bench - add the console's `bench`. Return: as shell_add_command(). */
int probes_add_bench(void);
