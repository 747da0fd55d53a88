/* watched.c - the words, the function and the handler of watched.h. */
#include "tests/kernel/watched.h"

#include "kernel/cpu/debug_reg.h"
#include "tests/kernel/ktest.h"

#define DR7_NOTHING BIT(10)

struct watched watched;
struct noted noted;

NOINLINE void watched_store(uint64_t value)
{
    watched.target = value;
}

struct watch watch_of(volatile void *at, enum watch_kind kind, size_t len,
                      watch_handler_t handler)
{
    struct watch w = { .addr = (uintptr_t)at,
                       .kind = (uint8_t)kind,
                       .len = (uint8_t)len,
                       .handler = handler };

    strlcpy(w.name, "test", sizeof(w.name));
    return w;
}

void note_hit(struct watch *w UNUSED, struct pt_regs *regs)
{
    noted.ip = regs->ip;
    noted.calls++;
}

bool noted_in(void *fn)
{
    return noted.ip > (uintptr_t)fn && noted.ip < (uintptr_t)fn + 48;
}

static void no_dr7(void *arg)
{
    unsigned *count = arg;

    __atomic_add_fetch(count, read_dr7() == DR7_NOTHING, __ATOMIC_RELAXED);
}

unsigned cpus_without_watches(void)
{
    unsigned count = 0;

    smp_call_all(no_dr7, &count);
    return count;
}

void expect_no_watches(void)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < DEBUG_REGS; i++)
        taken += watch_owner(i) != NULL;
    ktest_report(cpus_without_watches() == cpu_count(), "no CPU has anything in DR7");
    ktest_report(!taken, "no register is taken");
}
