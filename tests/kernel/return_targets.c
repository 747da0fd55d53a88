/* return_targets.c - functions that carry return probes, and handlers that count. */
#include "tests/kernel/return_targets.h"
#include "probes/kprobe.h"

#include "kernel/base/compiler.h"

struct return_counts return_counts;

NOINLINE long return_target(long a, long b)
{
    __asm__ volatile("" : "+r"(a));
    return a * 3 + b;
}

NOINLINE long return_leave(struct return_env *env, long x)
{
    if (x)
        return_longjmp(env, 7);
    return x + 1;
}

NOINLINE long return_come_back(void)
{
    struct return_env env;

    if (return_setjmp(&env) == 7)
        return return_target(1, 2);
    return return_leave(&env, 1);
}

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
