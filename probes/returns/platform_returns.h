/* platform_returns.h - what return probes and jprobes ask of the machine, beyond
 * probes/core/platform.h.
 */
#pragma once

#include "probes/core/platform.h"

/* ---- stacks and returns ---- */

/* kretprobe_trampoline - where a function returns to whose return address was exchanged.
 * With preemption off it calls kretprobe_return() with an image of the registers behind the
 * return, right above the frame of that function, and then goes on with that image.
 */
extern const char kretprobe_trampoline[];

/* plat_shadow_make - give every thread that exists a shadow, and each that will; those for
 * NMIs too. Once done it costs nothing.
 * @with_data: with room for the data of instances
 * Context: thread.  Locks: PLAT_PROBES held.  Return: 0; -ENOMEM some have none.
 */
int plat_shadow_make(bool with_data);
/* plat_shadow_for_each - call @fn for all of them; their stacks may be in use meanwhile.
 * Context: thread.
 */
void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg);
/* plat_shadow_running - of the thread that CPU @cpu runs now, and of its NMI stack.
 * Context: any.  Return: NULL when it has none.
 */
const struct shadow *plat_shadow_running(unsigned cpu, bool nmi);
/* plat_switches_stack - does the function at @addr return on another stack, or as another
 * thread, than it was entered? Context: any.
 */
bool plat_switches_stack(uintptr_t addr);

/* ---- jprobes ---- */

/* plat_jprobe_call - call @fn with the argument registers of @regs, and on its stack, as
 * aligned as that of @regs, a copy of the @words behind the return address there.
 * @save_sp: gets what plat_jprobe_leave() needs to return from here in its stead
 * Context: trap.
 */
void plat_jprobe_call(uintptr_t fn, const struct pt_regs *regs, size_t words,
                      uintptr_t *save_sp);
_Noreturn void plat_jprobe_leave(uintptr_t sp);
