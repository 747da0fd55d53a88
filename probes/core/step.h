/* step.h - stage 8: sends the program into the copy with a trap at its end. Inline, since
 * every hit with a post-handler runs it.
 */
#pragma once

#include "probes/core/life.h"

/* step_run - start a step. If the program has TF set, boost_run() will do: see step.c. But
 * behind an STI some CPUs raise no #DB, so the STI is done to the image.
 */
NOKPROBE_INLINE void step_run(struct probe_cpu *cpu, struct site *site,
                              struct pt_regs *regs, bool jumped)
{
    if (unlikely(regs->flags & FLAGS_TF)) {
        boost_run(site, regs);
        if (!site->is_sti)
            return;
        regs->flags |= FLAGS_IF;
        regs->ip = (uintptr_t)site->boost_slot + site->len;
        if (!step_in_copy(site, (uintptr_t)site->boost_slot, false, regs, cpu, jumped))
            plat_raise_step(regs);
        return;
    }
    regs->ip = (uintptr_t)site->step_slot;
    if (READ_ONCE(step_engine) == STEP_TF && !site->never_by_tf && !probe_in_nmi(cpu))
        regs->flags |= FLAGS_TF;
}
