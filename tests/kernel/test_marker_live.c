/* test_marker_live.c - markers are switched while all CPUs pass them, and while their
 * instructions have probes.
 */
#include "probes/marker/marker.h"

#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/marked.h"
#include "tests/kernel/passers.h"

KTEST(marker_live, switched_while_all_cpus_come_by)
{
    struct kprobe p = { .addr = insn_of((uintptr_t)marked)->insn };
    uint64_t rounds = ktest_rounds(4, 80), after;
    size_t heap = heap_in_use();
    int failed = 0;

    look_begin();
    passers_start(marked);
    for (uint64_t n = 0; n < rounds; n++) {
        failed += look_connect(0) || !passers_add_to(&looked.calls[0]);
        failed += n % 2 && register_kprobe(&p);
        failed += look_connect(1) || !passers_add_to(&looked.calls[1]);
        failed += look_disconnect(0) != 0;
        failed += n % 2 && unregister_kprobe(&p);
        failed += look_disconnect(1) != 0;
        after = looked.calls[0] + looked.calls[1];
        thread_yield();
        failed += after != looked.calls[0] + looked.calls[1];
        p = (struct kprobe){ .addr = p.addr };
    }
    passers_end();
    ktest_report(!failed, "it was switched, on is on, and off is off: %d", failed);
    ktest_report(looked.calls[0] && looked.calls[1] && !looked.wrong,
                 "%lu and %lu calls of %lu, %lu wrong", looked.calls[0], looked.calls[1],
                 passers.calls, looked.wrong);
    ktest_report(passers.in_nmis, "%lu times in NMIs", passers.in_nmis);
    ktest_report(looked.evaluated <= passers.calls + passers.in_nmis,
                 "arguments only where it was on");
    ktest_report(heap_in_use() == heap, "nothing is left over");
}

/* ---- under probes ---- */

/* A jump at the inc reads bytes of the marker as a part of its displacement, also the
 * immediate that is changed when the marker is switched.
 */
static NOINLINE uint64_t marked_beside(uint64_t n)
{
    __asm__ volatile("inc %0" : "+r"(n)); /* three bytes */
    MARK(ktest_marked, MARKED_FORMAT, n, marked_twice(n));
    return n;
}

#define BESIDE 3

static const struct {
    const char *name;
    enum optimize_method method;
    unsigned at; /* probes: 1 in front of the marker, 2 at its first insn, 4 its second */
    unsigned jumps;
} under[] = {
    { "an int3", OPTIMIZE_OFF, 2, 0 },
    { "int3s around it", OPTIMIZE_OFF, 7, 0 },
    { "a jump", OPTIMIZE_PUN, 2, 1 },
    { "a jump that reads the immediate", OPTIMIZE_PUN, 1, 1 },
    { "jumps that read each other", OPTIMIZE_PUN, 7, 3 },
    { "a region", OPTIMIZE_REGION, 2, 1 },
    { "a region that begins in front of it", OPTIMIZE_REGION, 1, 1 },
    { "a region, and int3s inside of it", OPTIMIZE_REGION, 7, 1 },
};

static struct kprobe probes[BESIDE];

static unsigned probes_register(uint8_t *text, unsigned at)
{
    unsigned count = 0, failed = 0;

    for (unsigned i = 0; i < BESIDE; i++) {
        uintptr_t addr = (uintptr_t)text + (const unsigned[]){ 0, 3, 5 }[i];

        if (at & BIT(i))
            probes[count++] = (struct kprobe){ .addr = addr };
    }
    for (unsigned i = 0; i < count; i++)
        failed += register_kprobe(&probes[i]) != 0;
    optimize_run();
    return failed ? 0 : count;
}

static unsigned jumps_among(unsigned count)
{
    unsigned jumps = 0;

    for (unsigned i = 0; i < count; i++)
        jumps += (probes[i].flags & KPROBE_FLAG_OPTIMIZED) != 0;
    return jumps;
}

static void switched_under(size_t i)
{
    uint8_t *text = (uint8_t *)insn_of((uintptr_t)marked_beside)->insn - 3;
    unsigned count, jumps, failed = 0;
    uint8_t before[8];

    memcpy(before, text, sizeof(before));
    jumps_by(under[i].method);
    count = probes_register(text, under[i].at);
    jumps = jumps_among(count);
    look_begin();
    passers_start(marked_beside);
    failed += look_connect(0) || !passers_add_to(&looked.calls[0]);
    optimize_run();
    failed += !passers_add_to(&looked.calls[0]) || look_disconnect(0);
    optimize_run();
    failed += jumps_among(count) != jumps;
    passers_end();
    for (unsigned k = 0; k < count; k++) {
        failed += kprobe_hits(&probes[k]) + probes[k].nmissed !=
                  passers.calls + passers.in_nmis;
        failed += unregister_kprobe(&probes[k]) != 0;
    }
    jumps_as_before();
    ktest_report(count && jumps == under[i].jumps, "%s: %u probes, %u jumps",
                 under[i].name, count, jumps);
    ktest_report(!failed && !looked.wrong,
                 "switched under it, and each pass is a hit: %u", failed);
    ktest_report(!memcmp(text, before, sizeof(before)), "the text is as it was");
}

KTEST(marker_live, switched_under_probes)
{
    for (size_t i = 0; i < ARRAY_LEN(under); i++)
        switched_under(i);
}
