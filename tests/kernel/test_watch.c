/* test_watch.c - watches: which accesses are hits, and on which CPUs. */
#include "probes/watch/watch.h"

#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/trap.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/watched.h"

/* ---- which accesses ---- */

static NOINLINE uint64_t load(void)
{
    return watched.target;
}

KTEST(watch, writes_are_hits_and_reads_are_not)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, note_hit);

    noted.calls = 0;
    ktest_report(!register_watch(&w), "it is registered");
    watched_store(7);
    ktest_report(watch_hits(&w) == 1 && noted.calls == 1, "a store is one hit, one call");
    ktest_report(noted_in(watched_store), "behind an instruction of the function");
    load();
    watched.neighbour++;
    ktest_report(watch_hits(&w) == 1, "a load is none, nor what lies beside");
    ktest_report(!unregister_watch(&w), "it is taken away");
    watched_store(8);
    ktest_report(watch_hits(&w) == 1 && !watch_misses(&w), "and keeps its count");
    ktest_report(unregister_watch(&w) == -EINVAL, "it is not there any more");
    expect_no_watches();
}

/* touch - one access of @len bytes, @at bytes behind the start of the target. */
static NOINLINE void touch(size_t at, size_t len)
{
    volatile uint8_t *p = (volatile uint8_t *)&watched.target + at;

    if (len == 1)
        *p = 1;
    else if (len == 2)
        *(volatile uint16_t *)(volatile void *)p = 1;
    else if (len == 4)
        *(volatile uint32_t *)(volatile void *)p = 1;
    else
        *(volatile uint64_t *)(volatile void *)p = 1;
}

KTEST(watch, exactly_the_bytes_that_are_watched)
{
    static const uint8_t lens[] = { 1, 2, 4, 8 };
    unsigned wrong = 0, tried = 0;

    for (size_t l = 0; l < ARRAY_LEN(lens); l++)
        for (size_t at = 0; at < 8; at += lens[l]) {
            struct watch w = watch_of((volatile uint8_t *)&watched.target + at,
                                      WATCH_WRITE, lens[l], NULL);

            wrong += register_watch(&w) != 0;
            for (size_t m = 0; m < ARRAY_LEN(lens); m++)
                for (size_t to = 0; to < 8; to += lens[m], tried++) {
                    uint64_t before = watch_hits(&w);
                    bool meets = to < at + lens[l] && at < to + lens[m];

                    touch(to, lens[m]);
                    wrong += watch_hits(&w) - before != meets;
                }
            wrong += unregister_watch(&w) != 0;
        }
    ktest_report(!wrong, "%u accesses beside and across the bytes: %u wrong", tried,
                 wrong);
}

static bool sees_entry;

static void at_entry(struct watch *w, struct pt_regs *regs)
{
    sees_entry = regs->ip == w->addr;
    noted.calls++;
}

/* ---- two watches on the same bytes ---- */

/* covers - does @a watch all that @b does? Then an access that hits @b hits @a. */
static bool covers(const struct watch *a, const struct watch *b)
{
    return a->addr <= b->addr && b->addr + b->len <= a->addr + a->len &&
           (a->kind == b->kind || a->kind == WATCH_ACCESS);
}

static bool is_hit_at(const struct watch *w, volatile uint8_t *byte, bool write)
{
    return (uintptr_t)byte - w->addr < w->len && (write || w->kind == WATCH_ACCESS);
}

/* one_access - is an access to @byte a hit of each watch that it must hit, and of no other?
 * If neither of the watches covers the other one, QEMU's TCG reports one of both.
 */
static bool one_access(struct watch *a, struct watch *b, volatile uint8_t *byte,
                       bool write)
{
    bool hits_a = is_hit_at(a, byte, write), hits_b = is_hit_at(b, byte, write);
    uint64_t of_a = watch_hits(a), of_b = watch_hits(b);

    if (write)
        *byte = 1;
    else
        (void)*byte;
    of_a = watch_hits(a) - of_a;
    of_b = watch_hits(b) - of_b;
    if (covers(a, b) || covers(b, a) || !hits_a || !hits_b)
        return of_a == hits_a && of_b == hits_b;
    return of_a <= 1 && of_b <= 1 && of_a + of_b;
}

/* pair_counts - do both watches count each read and write of one byte that they watch? */
static bool pair_counts(struct watch *a, struct watch *b)
{
    volatile uint8_t *bytes = (volatile uint8_t *)&watched.target;
    bool right = !register_watch(a) && !register_watch(b);

    for (size_t i = 0; i < 8; i++)
        right &= one_access(a, b, &bytes[i], true) && one_access(a, b, &bytes[i], false);
    right &= !unregister_watch(b) && !unregister_watch(a);
    return right && !a->nmissed && !b->nmissed;
}

/* bit 0 of @n: the kind; the rest: the length and the offset of each watch in 8 bytes */
static struct watch nth_watch(unsigned n)
{
    static const struct {
        uint8_t len, at;
    } places[] = { { 8, 0 }, { 4, 0 }, { 4, 4 }, { 2, 0 }, { 2, 4 }, { 1, 0 }, { 1, 5 } };

    return watch_of((volatile uint8_t *)&watched.target + places[n / 2].at,
                    n % 2 ? WATCH_ACCESS : WATCH_WRITE, places[n / 2].len, note_hit);
}

KTEST(watch, two_on_the_same_bytes_both_count)
{
    unsigned pairs = 0, wrong = 0;

    for (unsigned i = 0; i < 14; i++)
        for (unsigned k = 0; k < 14; k++) {
            struct watch a = nth_watch(i), b = nth_watch(k);

            pairs++;
            if (pair_counts(&a, &b))
                continue;
            wrong++;
            ktest_note("%s:%d with %s:%d: %lu and %lu hits", watch_kind_name(a.kind),
                       a.len, watch_kind_name(b.kind), b.len, a.hits, b.hits);
        }
    ktest_report(pairs == 14 * 14 && !wrong, "%u pairs of kinds, lengths and orders",
                 pairs);
    expect_no_watches();
}

KTEST(watch, an_instruction_is_hit_in_front_of_it)
{
    struct watch w = watch_of((void *)watched_store, WATCH_EXECUTE, 1, at_entry);

    noted.calls = 0;
    watched.target = 0;
    ktest_report(!register_watch(&w), "an instruction can be watched");
    watched_store(3);
    ktest_report(noted.calls == 1 && watch_hits(&w) == 1 && sees_entry &&
                     watched.target == 3,
                 "it is hit once, and executed");
    watched_store(4);
    ktest_report(watch_hits(&w) == 2, "and again");
    unregister_watch(&w);
    expect_no_watches();
}

/* ---- all CPUs ---- */

#define STORES 200

static volatile uint64_t per_cpu[MAX_CPUS];

static int store_often(void *arg UNUSED)
{
    for (unsigned i = 0; i < STORES; i++) {
        watched.target = i;
        per_cpu[cpu_id()]++;
    }
    return 0;
}

KTEST(watch, hits_and_misses_are_the_accesses_of_all_cpus)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, NULL);
    uint64_t expected = (uint64_t)STORES * cpu_count();

    register_watch(&w);
    each_cpu_run(store_often, NULL);
    ktest_report(watch_hits(&w) == expected && !watch_misses(&w),
                 "%lu stores, %lu hits, %lu misses", expected, watch_hits(&w),
                 watch_misses(&w));
    unregister_watch(&w);
    ktest_report(watch_hits(&w) == expected, "and none is lost with the watch");
    register_watch(&w);
    ktest_report(watch_hits(&w) == 0, "registered again it begins with 0");
    unregister_watch(&w);
}

static volatile bool stop_toggle;

static int toggle(void *arg)
{
    struct watch *w = arg;
    int err = 0;

    while (!stop_toggle && !err) {
        err = disable_watch(w);
        if (!err)
            err = enable_watch(w);
    }
    return err;
}

KTEST(watch, a_watch_misses_nothing_while_another_comes_and_goes)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, NULL);
    struct watch other = watch_of(&watched.neighbour, WATCH_WRITE, 8, NULL);
    uint64_t expected = (uint64_t)STORES * cpu_count() * 4;
    int tid, err = 0;

    stop_toggle = false;
    register_watch(&other);
    register_watch(&w);
    tid = ktest_thread(toggle, &other, 0);
    for (unsigned i = 0; i < 4; i++)
        each_cpu_run(store_often, NULL);
    stop_toggle = true;
    thread_join(tid, &err);
    ktest_report(!err && watch_hits(&w) == expected, "%lu stores, %lu hits", expected,
                 watch_hits(&w));
    unregister_watch(&w);
    unregister_watch(&other);
    expect_no_watches();
}

/* ---- watches that are moved and switched ---- */

static struct watch moved;

static int write_neighbour(void *arg UNUSED)
{
    watched.neighbour++;
    return 0;
}

/* The watch is moved, and until each CPU has had hits at the new place, no CPU touches
 * the old one: a trap there would tell a CPU which still watches the old place that the
 * watch has moved.
 */
KTEST(watch, a_move_is_for_all_cpus)
{
    uint64_t stores = (uint64_t)STORES * cpu_count(), before = 0, hits;
    unsigned long irqs;

    moved = watch_of(&watched.neighbour, WATCH_WRITE, 8, NULL);
    register_watch(&moved);
    each_cpu_run(write_neighbour, NULL);
    ktest_report(watch_hits(&moved) == cpu_count(), "each CPU has had a hit");
    irqs = irq_save();
    watch_move(&moved, (uintptr_t)&watched.target);
    irq_restore(irqs);
    hits = watch_hits(&moved);
    for (unsigned i = 0; i < 100 && hits - before < stores; i++) {
        before = hits;
        each_cpu_run(store_often, NULL);
        hits = watch_hits(&moved);
    }
    ktest_report(hits - before == stores, "soon each CPU has all of the new place");
    each_cpu_run(write_neighbour, NULL);
    ktest_report(watch_hits(&moved) == hits, "of the old place there are no more");
    unregister_watch(&moved);
    expect_no_watches();
}

/* ---- interrupts and NMIs ---- */

static volatile uint64_t nmis;
static volatile bool in_use;

static bool store_in_nmi(struct pt_regs *regs UNUSED)
{
    if (!in_use)
        return false;
    watched_store(9);
    nmis = nmis + 1;
    return true;
}

#define NMIS 50

static void in_nmis(struct watch *w)
{
    nmi_take(store_in_nmi);
    nmis = 0;
    in_use = true;
    register_watch(w);
    nmi_send_many(cpu_count() - 1, NMIS, &nmis);
    in_use = false;
}

KTEST(watch, in_an_nmi)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, note_hit);
    struct watch x = watch_of((void *)watched_store, WATCH_EXECUTE, 1, at_entry);

    in_nmis(&w);
    ktest_report(watch_hits(&w) == NMIS, "%lu stores of NMIs are hits", watch_hits(&w));
    unregister_watch(&w);
    in_nmis(&x);
    ktest_report(watch_hits(&x) == NMIS, "so is an instruction, once in each: %lu",
                 watch_hits(&x));
    watched_store(1);
    ktest_report(watch_hits(&x) == NMIS + 1, "behind them it is watched as before");
    unregister_watch(&x);
    expect_no_watches();
}
