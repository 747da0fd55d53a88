/* test_set.c - sets of probes on the running kernel: either all of a set are registered,
 * at the same moment, or none.
 */
#include "kernel/mm/exec.h"
#include "tests/kernel/ktest.h"

#define COUNT 3

/* tests/kernel/test_commands.c has another function of this name. */
KTEST_TARGET(namesake, a, a + 2)

KTEST_TARGET(second, a, a + 3)

KTEST_TARGET(third, a, a + 4)

static long call_all(unsigned times)
{
    long sum = 0;

    for (unsigned i = 0; i < times; i++)
        sum += namesake(i) + second(i) + third(i);
    return sum;
}

static void fill(struct kprobe **set, struct kprobe *probes)
{
    const uintptr_t places[COUNT] = { (uintptr_t)namesake, (uintptr_t)second,
                                      (uintptr_t)third };

    for (int i = 0; i < COUNT; i++) {
        probes[i] = (struct kprobe){ .addr = places[i] };
        set[i] = &probes[i];
    }
}

static uint8_t byte_at(uintptr_t addr)
{
    return *(const volatile uint8_t *)addr;
}

KTEST(set, all_are_armed_and_all_are_taken_away)
{
    struct kprobe probes[COUNT];
    struct kprobe *set[COUNT];
    long without = call_all(100);

    fill(set, probes);
    call_all(10);
    ktest_report(probes[0].hits == 0, "before they are registered nothing is seen");
    ktest_report(register_kprobes(set, COUNT) == 0, "they are registered");
    ktest_report(call_all(100) == without, "the functions return what they returned");
    ktest_report(probes[0].hits == 100 && probes[1].hits == 100 && probes[2].hits == 100,
                 "each probe has 100 hits");
    ktest_report(unregister_kprobes(set, COUNT) == 0, "they are taken away");
    call_all(10);
    ktest_report(probes[0].hits == 100 && byte_at((uintptr_t)second) != 0xcc,
                 "and sees no more");
}

static volatile bool stop;

static int work(void *arg UNUSED)
{
    while (!stop) {
        call_all(10);
        thread_yield();
    }
    return 0;
}

KTEST(set, sets_come_and_go_while_their_code_runs)
{
    struct kprobe probes[COUNT];
    struct exec_stats before, after;
    struct kprobe *set[COUNT];
    size_t heap;
    int tids[8], n = (int)cpu_count() < 8 ? (int)cpu_count() : 8, failed = 0;
    uint64_t hits = 0, missed = 0, rounds = ktest_rounds(8, 100);

    stop = false;
    for (int i = 0; i < n; i++)
        tids[i] = ktest_thread(work, NULL, 0);
    exec_stats_get(&before);
    heap = heap_in_use();
    for (uint64_t round = 0; round < rounds; round++) {
        fill(set, probes);
        failed += register_kprobes(set, COUNT) != 0;
        call_all(1);
        failed += unregister_kprobes(set, COUNT) != 0;
        for (int i = 0; i < COUNT; i++) {
            hits += probes[i].hits;
            missed += probes[i].nmissed;
        }
    }
    ktest_report(heap_in_use() == heap, "no memory is left over");
    exec_stats_get(&after);
    ktest_report(after.arena_free_pages == before.arena_free_pages, "nor pages");
    stop = true;
    for (int i = 0; i < n; i++)
        thread_join(tids[i], NULL);
    ktest_report(failed == 0, "8 sets came and went");
    ktest_report(hits >= 24 && missed == 0, "%lu hits, %lu missed", hits, missed);
}
