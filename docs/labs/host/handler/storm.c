/* storm.c - the grader's callers in lab 2: many functions, and NMIs that read
 * and write in the middle of handlers. This module is never unloaded, because
 * its NMI handler stays.
 */
#include "readers.h"

#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "kernel/work/work.h"

#include <stdbool.h>
#include <string.h>

#define NMIS 300
#define LIMIT_NS UINT64_C(20000000000)

/* They differ by a number: the compiler makes one function of two that do the same. */
#define CALLER(name)                                                                     \
    static NOINLINE unsigned long name(struct source *s, unsigned long count)            \
    {                                                                                    \
        uint8_t bytes[64];                                                               \
                                                                                         \
        read_bytes(s, bytes, count);                                                     \
        return write_bytes(s, bytes, 1) + bytes[0] + __COUNTER__;                        \
    }
/* clang-format off */
#define CALLERS(A) A(ant) A(bee) A(cat) A(dog) A(eel) A(fox) A(gnu) A(hen) A(ibex) A(jay) \
    A(kite) A(lynx) A(mole) A(newt) A(owl) A(pig) A(quail) A(rat) A(seal) A(toad)         \
    A(bat) A(cow) A(doe) A(elk) A(frog) A(goat) A(hare) A(imp) A(lark) A(moth) A(nit)     \
    A(ox) A(pug) A(ray) A(swan) A(tern)
/* clang-format on */
CALLERS(CALLER)
CALLER(in_nmi)
CALLER(in_thread)
CALLER(parser) /* readers.c has a function of this name, too */

/* One function calls one of them from a thread, and the other one from an NMI. So no probe is
 * hit while its handler runs, and all counts are exact.
 */
static NOINLINE unsigned long in_both(struct source *s, unsigned long count, bool is_nmi)
{
    uint8_t bytes[64] = { 0 };

    return (is_nmi ? read_bytes(s, bytes, count) : write_bytes(s, bytes, count)) +
           bytes[0];
}

#define ENTRY(name) name,

static volatile uint64_t taken;
static volatile bool is_over;
static volatile uint64_t moved; /* calls of both functions by the thread */
static bool is_apart;           /* only in_both() calls */

static bool on_nmi(struct pt_regs *regs UNUSED)
{
    struct source s = { .at = taken };

    if (is_apart)
        in_both(&s, 8, true);
    else
        in_nmi(&s, 8);
    taken++;
    return true;
}

__attribute__((constructor)) static void storm_init(void)
{
    trap_set_handler(TRAP_NMI, on_nmi);
}

static int target(void *arg UNUSED)
{
    struct source s = { 0 };

    while (!is_over) {
        if (is_apart)
            in_both(&s, 5, false);
        else
            in_thread(&s, 5);
        moved += is_apart ? 1 : 2;
    }
    return 0;
}

/* `run storm SEED nmi`: send NMIs to the last CPU while a thread there reads and writes.
 * `run storm SEED apart`: the same by in_both(). It prints how many bytes were moved.
 */
static int nmis_run(struct work *w)
{
    uint64_t limit = clock_ns() + LIMIT_NS;
    struct clone_args args = { .fn = target, .name = "target" };
    int tid;

    is_over = false;
    is_apart = !strcmp(w->argv[1], "apart");
    moved = taken = 0;
    args.cpus = UINT64_C(1) << (cpu_count() - 1);
    tid = kernel_clone(&args);
    if (tid < 0)
        return tid;
    for (unsigned sent = 0; sent < NMIS && clock_ns() < limit; sent++) {
        uint64_t before = taken, gap = clock_ns() + work_random(w) % 100000;

        smp_send_nmi(cpu_count() - 1);
        while ((taken == before || clock_ns() < gap) && clock_ns() < limit)
            pause();
    }
    is_over = true;
    thread_join(tid, NULL);
    w->function = "both";
    w->calls = moved + (is_apart ? 1 : 2) * taken;
    if (is_apart)
        seq_printf(w->out, "bytes %lu\n", 5 * moved + 8 * taken);
    return 0;
}

static unsigned long (*const callers[])(struct source *,
                                        unsigned long) = { CALLERS(ENTRY) };

/* `run storm SEED wide`: a count has each width. */
static int wide_run(void)
{
    struct source s = { 0 };

    for (unsigned bits = 8; bits < 64; bits += 8)
        callers[0](&s, (UINT64_C(1) << bits) + bits);
    return 0;
}
static unsigned arrived; /* how often a thread has arrived at a round, summed up */

/* In each round two CPUs call at once, each from a function that has not called before.
 * They wait without pause(), so that they leave the wait at the same time; two suffice, and
 * more would wait for a processor of the host.
 */
#define RACERS 2

static int call_new(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    struct source s = { 0 };

    for (unsigned round = 0; (round + 1) * RACERS <= ARRAY_LEN(callers); round++) {
        __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < (round + 1) * RACERS)
            ;
        callers[round * RACERS + me](&s, me + 1);
    }
    return 0;
}

/* `run storm SEED new`: handlers on two CPUs take free entries of a table at the same time.
 */
static int new_run(void)
{
    struct source s = { 0 };
    int tids[RACERS];

    arrived = 0;
    for (unsigned cpu = 0; cpu < RACERS; cpu++) {
        struct clone_args args = { .fn = call_new, .name = "new" };

        args.arg = (void *)(uintptr_t)cpu;
        args.cpus = UINT64_C(1) << cpu;
        tids[cpu] = kernel_clone(&args);
        if (tids[cpu] < 0)
            return tids[cpu];
    }
    for (unsigned cpu = 0; cpu < RACERS; cpu++)
        thread_join(tids[cpu], NULL);
    parser(&s, 1); /* with those of readers.c, the 40th caller */
    return 0;
}

/* `run storm SEED`: many functions call the two functions of readers.h. */
static int storm_run(struct work *w)
{
    struct source s = { .at = w->seed };

    if (w->argc > 1 && !strcmp(w->argv[1], "wide"))
        return wide_run();
    if (w->argc > 1)
        return strcmp(w->argv[1], "new") ? nmis_run(w) : new_run();
    for (unsigned i = 0; i < 400; i++)
        callers[work_random(w) % ARRAY_LEN(callers)](&s, work_random(w) % 64 + 1);
    return 0;
}
WORKLOAD(storm, storm_run, "the grader's callers in lab 2");
