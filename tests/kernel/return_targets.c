/* return_targets.c - counting handlers for tests of returns. */
#include "tests/kernel/return_targets.h"

#include "kernel/base/compiler.h"

struct return_counts return_counts;

void return_counts_start(void)
{
    return_counts = (struct return_counts){ 0 };
}

int return_count_entry(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_add_fetch(&return_counts.entered, 1, __ATOMIC_RELAXED);
    return 0;
}

int return_count(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    if (regs->ip != ri->ret_addr)
        __atomic_add_fetch(&return_counts.wrong, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&return_counts.returned, 1, __ATOMIC_RELAXED);
    return 0;
}

int return_probe(struct kretprobe *rp, const void *fn)
{
    rp->kp.addr = (uintptr_t)fn;
    if (!rp->handler)
        rp->handler = return_count;
    return register_kretprobe(rp);
}
