/* step.h - stage 8: sends the program into the copy with a trap at its end. Inline, since
 * every hit with a post-handler runs it.
 */
#pragma once

#include "probes/core/life.h"

/* step_run - start a step. If the program has TF set, boost_run() will do: see step.c. */
NOKPROBE_INLINE void step_run(struct probe_cpu *cpu, struct site *site,
                              struct pt_regs *regs)
{
    if (unlikely(regs->flags & FLAGS_TF)) {
        boost_run(site, regs);
        return;
    }
    regs->ip = (uintptr_t)site->step_slot;
    if (READ_ONCE(step_engine) == STEP_TF && !site->never_by_tf && !probe_in_nmi(cpu))
        regs->flags |= FLAGS_TF;
}
