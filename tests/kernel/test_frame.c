/* test_frame.c - frames of RAM are zeroed when they are allocated, no frame is allocated
 * twice, and freed frames can be allocated again.
 */
#include "kernel/mm/frame.h"

#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"

static size_t free_count(void)
{
    struct frame_stats stats;

    frame_stats_get(&stats);
    return stats.free;
}

static bool is_zeroed(uint64_t phys, size_t count)
{
    const uint64_t *words = phys_to_virt(phys);

    for (size_t i = 0; i < count * PAGE_SIZE / sizeof(*words); i++) {
        if (words[i])
            return false;
    }
    return true;
}

KTEST(frame, freed_frames_come_back_zeroed)
{
    size_t before = free_count();
    uint64_t a = frame_alloc(), b = frame_alloc();

    ktest_report(a != FRAME_NONE && b != FRAME_NONE && a != b, "two different frames");
    ktest_report(is_aligned(a | b, PAGE_SIZE), "both on page boundaries");
    ktest_report(a >= MiB && b >= MiB, "both above the first MiB");
    ktest_report(is_zeroed(a, 1) && is_zeroed(b, 1), "both zeroed");
    ktest_report(free_count() == before - 2, "two frames less are free");
    memset(phys_to_virt(a), 0x5a, PAGE_SIZE);
    frame_free(a);
    ktest_report(frame_alloc() == a, "the lowest free frame is the one just freed");
    ktest_report(is_zeroed(a, 1), "and is zeroed again");
    frame_free(a);
    frame_free(b);
    ktest_report(free_count() == before, "all came back");
}

KTEST(frame, frames_of_the_image_are_not_given_out)
{
    uint64_t start = virt_to_phys(_text), end = virt_to_phys(_end);
    uint64_t run = frame_alloc_run(64), low = frame_alloc_low(MiB);

    ktest_report(run >= end || run + 64 * PAGE_SIZE <= start, "a run keeps off it");
    ktest_report(low != FRAME_NONE && low > 0 && low < MiB,
                 "a low frame is below 1 MiB and not frame 0");
    frame_free_run(run, 64);
    frame_free(low);
}

KTEST(frame, runs_are_contiguous_aligned_and_freed_in_pieces)
{
    size_t before = free_count();
    uint64_t run = frame_alloc_run_aligned(24, 8);

    ktest_report(run != FRAME_NONE && is_aligned(run, 8 * PAGE_SIZE),
                 "24 frames at a multiple of 8");
    ktest_report(is_zeroed(run, 24), "all zeroed");
    frame_free(run + 3 * PAGE_SIZE);
    frame_free_run(run, 3);
    frame_free_run(run + 4 * PAGE_SIZE, 20);
    ktest_report(free_count() == before, "all came back");
}

KTEST(frame, limits_are_kept)
{
    uint64_t below = frame_alloc_low(4 * GiB);

    ktest_report(below >= MiB && below < 4 * GiB, "below 4 GiB does not take low memory");
    ktest_report(frame_alloc_low(0) == FRAME_NONE, "there is nothing below 0");
    ktest_report(frame_alloc_low(PAGE_SIZE) == FRAME_NONE, "nor is frame 0 handed out");
    ktest_report(frame_alloc_run(free_count() + 1) == FRAME_NONE,
                 "a run of more than all is refused");
    frame_free(below);
}

/* All free frames are allocated. The first word of each links it to the frame before. */
KTEST(frame, all_of_it_can_be_used_and_given_back)
{
    size_t before = free_count(), count = 0;
    uint64_t last = FRAME_NONE, lowest = FRAME_NONE, phys;

    while ((phys = frame_alloc()) != FRAME_NONE) {
        *(uint64_t *)phys_to_virt(phys) = last;
        last = phys;
        lowest = phys < lowest ? phys : lowest;
        count++;
    }
    while (last != FRAME_NONE) {
        phys = last;
        last = *(uint64_t *)phys_to_virt(phys);
        frame_free(phys);
    }
    ktest_report(count == before, "%zu frames of %zu were taken until none was left",
                 count, before);
    ktest_report(lowest < MiB, "those of the first MiB, too");
    ktest_report(free_count() == before, "all came back");
}

#define OWN_FRAMES 100
#define ROUNDS 20

/* Allocate frames, write marks to them, let other threads do the same, and check that the
 * marks are unchanged.
 */
static int mark_and_check(void *arg UNUSED)
{
    uint64_t mine[OWN_FRAMES];
    int bad = 0;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t mark = (uint64_t)thread_tid() << 32 | round;

        for (unsigned i = 0; i < OWN_FRAMES; i++) {
            mine[i] = frame_alloc();
            bad += *(uint64_t *)phys_to_virt(mine[i]) != 0;
            *(uint64_t *)phys_to_virt(mine[i]) = mark + i;
        }
        thread_yield();
        for (unsigned i = 0; i < OWN_FRAMES; i++) {
            bad += *(uint64_t *)phys_to_virt(mine[i]) != mark + i;
            frame_free(mine[i]);
        }
    }
    return bad;
}

KTEST(frame, no_frame_is_handed_out_twice)
{
    size_t before = free_count();

    ktest_report(each_cpu_run(mark_and_check, NULL) == 0,
                 "each CPU found its marks in its frames");
    ktest_report(free_count() >= before - 64, "all came back");
}
