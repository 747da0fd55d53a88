/* asm_offsets.c - gives NASM the layouts of structures in C. It is compiled to assembly
 * only; the build turns each marked line into a %define of build/asm_offsets.inc.
 */
#include "kernel/base/regs.h"
#include "kernel/cpu/percpu.h"

#include <stddef.h>

#define EMIT(name, value)                                                                \
    __asm__ volatile("\n#define " #name " %0" ::"i"((unsigned long)(value)))

_Static_assert(offsetof(struct percpu, irq_depth) ==
                   offsetof(struct percpu, nmi_depth) + 4,
               "read as one word");

void asm_offsets(void);

void asm_offsets(void)
{
    EMIT(KERNEL_VMA, KERNEL_VMA);
    EMIT(IMAGE_START, IMAGE_START);
    EMIT(DIRECT_MAP_BASE, DIRECT_MAP_BASE);
    EMIT(REGS_R15, offsetof(struct pt_regs, r15));
    EMIT(REGS_BP, offsetof(struct pt_regs, bp));
    EMIT(REGS_AX, offsetof(struct pt_regs, ax));
    EMIT(REGS_DI, offsetof(struct pt_regs, di));
    EMIT(REGS_AUX, offsetof(struct pt_regs, aux));
    EMIT(REGS_ORIG_AX, offsetof(struct pt_regs, orig_ax));
    EMIT(REGS_VECTOR, offsetof(struct pt_regs, vector));
    EMIT(REGS_IP, offsetof(struct pt_regs, ip));
    EMIT(REGS_CS, offsetof(struct pt_regs, cs));
    EMIT(REGS_FLAGS, offsetof(struct pt_regs, flags));
    EMIT(REGS_SP, offsetof(struct pt_regs, sp));
    EMIT(REGS_SS, offsetof(struct pt_regs, ss));
    EMIT(REGS_SIZE, sizeof(struct pt_regs));
    EMIT(PERCPU_SELF, offsetof(struct percpu, self));
    EMIT(PERCPU_PROBE, offsetof(struct percpu, probe));
    EMIT(PERCPU_THREAD_PROBE, offsetof(struct percpu, thread_probe));
    EMIT(PERCPU_CURRENT, offsetof(struct percpu, current));
    EMIT(PERCPU_ROOM, PERCPU_ROOM_OFF);
    EMIT(PERCPU_PREEMPT_COUNT, offsetof(struct percpu, preempt_count));
    EMIT(PERCPU_IRQ_DEPTH, offsetof(struct percpu, irq_depth));
    EMIT(PERCPU_NMI_DEPTH, offsetof(struct percpu, nmi_depth));
    EMIT(PERCPU_OWN_WORK, offsetof(struct percpu, own_work));
    EMIT(PERCPU_OWN_WORK_SHIFT, OWN_WORK_SHIFT);
    EMIT(PERCPU_DUE,
         offsetof(struct percpu, need_resched)); /* a word, with need_hit_end */
    EMIT(PERCPU_IRQ_COUNTS, offsetof(struct percpu, irq_counts));
    EMIT(PERCPU_HALTED, offsetof(struct percpu, halted));
    EMIT(PERCPU_WOKEN_COUNT, offsetof(struct percpu, woken_count));
    EMIT(PERCPU_NMI_SYNC_COUNT, offsetof(struct percpu, nmi_sync_count));
    EMIT(PERCPU_DEPTHS, offsetof(struct percpu, nmi_depth));
    EMIT(PERCPU_DEBUG_RESTS, offsetof(struct percpu, debug_rests));
    EMIT(PERCPU_DEBUG_CHANGES, offsetof(struct percpu, debug_changes));
    EMIT(PERCPU_STACK_BASE, offsetof(struct percpu, stack_base));
}
