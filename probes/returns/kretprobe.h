/* kretprobe.h - stage 10 as the rest of the engine sees it: calls are followed to their
 * return.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/returns/returns.h"

/* kretprobe_entry - the pre-handler at the entry of a function whose returns are probed. */
int kretprobe_entry(struct kprobe *p, struct pt_regs *regs);
/* kretprobe_plain - the holder of the only probe at @site, if that is a return probe without
 * entry_handler, data or limit, and on; else NULL. Locks: PLAT_PROBES held.
 */
struct kretprobe_holder *kretprobe_plain(const struct site *site);
/* kretprobe_return - such a function has returned to the trampoline with @regs, of which ip
 * is still to be filled in. @cpu: as for kprobe_int3_handler().
 * Context: that of the function, preemption off.
 */
void kretprobe_return(struct pt_regs *regs, struct probe_cpu *cpu);
/* kretprobe_return_stepped - the same where the program steps itself: the trap behind its
 * `ret` is on the trampoline, which it is not to see. Context: trap.
 */
void kretprobe_return_stepped(struct pt_regs *regs, struct probe_cpu *cpu);
/* kretprobe_resume - the rest of either, behind a handler that was given up.
 * @jumped: of the former
 */
void kretprobe_resume(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped);
/* kretprobe_unwind - what runs at @sp has left all calls behind that are deeper on its stack,
 * without their return: they are counted as dropped.
 * kretprobe_given_up - the same for the handler that @hit runs, called from @sp, which does
 * not come back; and for the instance that it was to see.
 * Context: any, in a hit of this CPU.
 */
void kretprobe_unwind(const struct probe_cpu *cpu, uintptr_t sp);
void kretprobe_given_up(const struct probe_cpu *cpu, const struct probe_hit *hit,
                        uintptr_t sp);
/* kretprobe_find_ret_above - where the innermost probed function returns to whose return
 * address is at @sp or above, on a stack that a CPU runs on; 0: nowhere. Context: any.
 */
uintptr_t kretprobe_find_ret_above(uintptr_t sp);
