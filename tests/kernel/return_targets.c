/* return_targets.c - functions that carry return probes, and handlers that count. */
#include "tests/kernel/return_targets.h"

#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"

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

/* ---- calls on another CPU, and NMIs there ---- */

static struct {
    volatile bool runs;
    uint64_t wrong;
    int tid;
} load;

static volatile uint64_t nmis;
static void (*look_at)(const struct pt_regs *regs);

NOINLINE long return_both(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 5 + 3;
}

NOINLINE long return_call_both(long x)
{
    return return_both(x) + 1;
}

NOINLINE uint64_t return_leaf(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

static int call_both_often(void *unused UNUSED)
{
    while (load.runs)
        for (long x = 0; x < 100; x++)
            load.wrong += return_call_both(x) != x * 5 + 4;
    return 0;
}

void return_load_start(void)
{
    load.wrong = 0;
    load.runs = true;
    load.tid = ktest_thread(call_both_often, NULL, BIT(cpu_count() - 1));
}

uint64_t return_load_stop(void)
{
    load.runs = false;
    thread_join(load.tid, NULL);
    return load.wrong;
}

static bool storm_nmi(struct pt_regs *regs)
{
    if (!look_at)
        return false;
    look_at(regs);
    nmis = return_leaf(nmis);
    return_both(1);
    return true;
}

uint64_t return_storm(uint64_t count, void (*look)(const struct pt_regs *regs))
{
    uint64_t wrong;

    nmi_take(storm_nmi);
    nmis = 0;
    look_at = look;
    return_load_start();
    nmi_send_many(cpu_count() - 1, count, &nmis);
    wrong = return_load_stop();
    look_at = NULL;
    return wrong + (nmis < count);
}
