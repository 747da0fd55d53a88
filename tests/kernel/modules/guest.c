/* guest.c - a module with functions to probe, a function for a thread to sleep in,
 * functions that are marked as not to be probed, and two workloads.
 */
#include "tests/kernel/modules/guest.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/nokprobe.h"
#include "kernel/module/module.h"
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"

long guest_calls, guest_stop;

NOINLINE long guest_twice(long a)
{
    __atomic_add_fetch(&guest_calls, 1, __ATOMIC_RELAXED);
    return a * 2;
}

/* Functions of the image have these names, too. */
static NOINLINE USED long twin(long a) __asm__("vfs_read");
static long twin(long a)
{
    return guest_twice(a) + 1;
}
static USED long twin_data __asm__("jiffies") = 1;

/* A function of which the compiler has left only a clone has such a name. */
static NOINLINE USED long weighed(long a) __asm__("guest_weigh.constprop.0");
static long weighed(long a)
{
    return guest_twice(a) + 3;
}

/* The branch leads to the second of several short instructions. Nothing but this branch
 * tells the engine that CPUs enter the code there.
 */
static ALWAYS_INLINE long count_to(long n)
{
    long count;

    __asm__ volatile("xor %k0, %k0\n"
                     "1: inc %k0\n"
                     "dec %k1\n"
                     "jnz 1b"
                     : "=&r"(count), "+r"(n)::"cc");
    return count;
}

/* This function has many short instructions, so that probes on them become
 * jumps of each kind.
 */
NOINLINE long guest_mix(long a, long b)
{
    long sum = count_to((a & 3) + 1);

    for (long i = 0; i < (a & 7); i++)
        sum += i ^ b;
    switch (a & 7) {
    case 0:
        return sum + 1;
    case 1:
        return sum * 3;
    case 2:
        return sum ^ b;
    case 3:
        return sum - a;
    case 4:
        return guest_twice(sum);
    case 5:
        return sum | 1;
    case 6:
        return sum & b;
    default:
        return -sum;
    }
}

static NOINLINE long guarded(long a)
{
    return a + 7;
}
NOKPROBE(guarded);

/* Two functions of this section; the first one is also marked by itself. */
__attribute__((section(".kprobes.text"))) NOINLINE long guest_both_marks(long a)
{
    return a + 3;
}
NOKPROBE(guest_both_marks);

__attribute__((section(".kprobes.text"))) NOINLINE long guest_old_mark(long a)
{
    __asm__ volatile("" : "+r"(a));
    return guarded(a) + 1;
}

NOINLINE long guest_part(long a)
{
    __asm__ volatile("lea 1(%0), %0\n\t" /* the next two are a blacklisted range */
                     NOKPROBE_ASM("lea 2(%0), %0\n\tlea 4(%0), %0",
                                  "one half is not there yet") "lea 8(%0), %0"
                     : "+r"(a));
    return a;
}

/* A thread sleeps in here until guest_stop is set and guest_holds is not: when the module
 * is unloaded, the kernel finds this thread in its code.
 */
NOINLINE int guest_sleeper(void *unused UNUSED)
{
    while (!READ_ONCE(guest_stop) || READ_ONCE(guest_holds))
        thread_sleep_ns(1000000);
    return 0;
}

static int guest_run(struct work *w)
{
    w->function = "guest_twice";
    for (long i = 0; i < 50; i++) {
        work_mix(w, (uint64_t)guest_mix(i, i * 77));
        work_mix(w, (uint64_t)guest_old_mark(guest_twice(i)));
    }
    w->calls = (uint64_t)guest_calls;
    return 0;
}
WORKLOAD(guest, guest_run, "calls all of it");

static int spread_task(struct work_task *t)
{
    for (long i = 0; i < 200; i++) {
        t->result += (uint64_t)guest_mix((long)t->idx + i, i * 77);
        t->result += (uint64_t)guest_twice(i);
    }
    t->calls = 200;
    return 0;
}

static int spread_run(struct work *w)
{
    w->function = "guest_mix";
    return work_spread(w, spread_task, NULL);
}
WORKLOAD(guest_spread, spread_run, "the same on all CPUs");

__attribute__((constructor)) static void guest_init(void)
{
    guest_twice(1);
}

__attribute__((destructor)) static void guest_exit(void)
{
    WRITE_ONCE(guest_stop, 1);
    guest_total += guest_calls;
}
