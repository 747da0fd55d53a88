/* platform_returns.h - the functions of the platform that only return probes and jprobes
 * need; probes/core/platform.h has the others.
 */
#pragma once

#include "probes/core/platform.h"

/* ---- stacks and returns ---- */

/* kretprobe_trampoline - a function returns to this code if its return address was
 * exchanged. The code builds an image of the registers as they are after the `ret`, calls
 * kretprobe_return() with that image, with preemption off, and then goes on as the image
 * says. It may do the work of kretprobe_return() itself.
 */
extern const char kretprobe_trampoline[];

/* plat_shadow_make - give a shadow to the stack of every thread and to every NMI stack.
 * Threads that are created later get one, too. A second call has nothing left to do.
 * @with_data: the shadows must have room for the data of instances
 * Context: thread.  Locks: PLAT_PROBES held.  Return: 0; -ENOMEM: some stacks have none.
 */
int plat_shadow_make(bool with_data);
/* plat_shadow_for_each - call @fn for each shadow. Threads may run on the stacks meanwhile.
 * Context: thread, interrupts on or off.
 */
void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg);
/* plat_shadow_of - find the shadow of the stack that has the address @at: the NMI stack of a
 * CPU, or the stack of a thread that a CPU runs now. Context: any.  Return: NULL: there is
 * none.
 */
const struct shadow *plat_shadow_of(uintptr_t at);
/* plat_switches_stack - does the function at @addr return on another stack, or in another
 * thread, than the one where it was called? Context: any.
 */
bool plat_switches_stack(uintptr_t addr);

/* ---- jprobes ---- */

/* plat_jprobe_call - call @fn with the arguments of another function. @regs is the image
 * at the entry of that function. @fn gets its argument registers, and a copy of the
 * @words words above its return address on the stack. The stack of @fn has the same
 * alignment.
 * @save_sp: receives the argument for plat_jprobe_leave()
 * plat_jprobe_leave - end @fn at any depth of its calls: let plat_jprobe_call() return now.
 * Context: trap.
 */
void plat_jprobe_call(uintptr_t fn, const struct pt_regs *regs, size_t words,
                      uintptr_t *save_sp);
_Noreturn void plat_jprobe_leave(uintptr_t sp);
