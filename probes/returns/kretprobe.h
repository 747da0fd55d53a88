/* kretprobe.h - stage 10, the return of a probed function: the interface for the rest of
 * the engine.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/returns/returns.h"

/* kretprobe_entry - handle a hit at the entry of a function that has a return probe. This
 * is the pre-handler of all return probes.
 */
int kretprobe_entry(struct kprobe *p, struct pt_regs *regs);
/* kretprobe_without_image - find out whether the detour of @site can follow a call
 * without an image. It can if the site has only one probe, and this is a return probe
 * without entry_handler, data, limit and flags that a hit knows (so it is enabled).
 * Locks: PLAT_PROBES held.  Return: the holder of that probe; NULL: an image is needed.
 */
struct kretprobe_holder *kretprobe_without_image(const struct site *site);
/* kretprobe_armed - the entry at @site is about to be armed, or (!@armed) disarmed. While it
 * is disarmed, the handler of no return probe there runs: kprobes may be off as a whole.
 * Locks: PLAT_PROBES held.
 */
void kretprobe_armed(const struct site *site, bool armed);
/* kretprobe_return - a function with a return probe has returned to the trampoline: call
 * the handlers, and set regs->ip to the real return address.
 * @regs: the image at the return; its ip is not filled in yet
 * @cpu:  as for kprobe_int3_handler()
 * Context: any, preemption off. It is that of the function.
 */
void kretprobe_return(struct pt_regs *regs, struct probe_cpu *cpu);
/* kretprobe_return_stepped - the same for a program that steps itself by TF: the step over
 * the `ret` of its function has ended with a trap at the trampoline. The program must not
 * see the trampoline. @jumped: the `ret` was emulated, in a hit by a jump. Context: trap.
 */
void kretprobe_return_stepped(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped);
/* kretprobe_unwind - the code that runs at @sp has given up all calls that are deeper on
 * its stack. These calls will never return: drop their shadow entries, and count each as
 * dropped.
 * kretprobe_given_up - the handler that @hit runs was called from @sp, and will not return:
 * do the same for the calls that it has made. If it is an entry_handler, drop also the
 * entry of the call that it was called for.
 * Context: any, preemption off. This CPU is in a hit.
 */
void kretprobe_unwind(const struct probe_cpu *cpu, uintptr_t sp);
void kretprobe_given_up(const struct probe_cpu *cpu, const struct probe_hit *hit,
                        uintptr_t sp);
