/* test_pad.c - landing pads: CPUs jump to them, pages with pads move to other frames
 * while CPUs use them, and all memory is given back.
 */
#include "probes/jump/pad.h"

#include "kernel/cpu/percpu.h"
#include "kernel/debug/panic.h"
#include "kernel/memmap.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/time/clock.h"
#include "probes/core/platform.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"

#define ANSWER 4711
#define FIRST_PAGE (REACH_START + 64 * MiB) /* from here on, jumps reach all text */
#define MANY 4000

static NOINLINE int target(void)
{
    return ANSWER;
}

static int pad_call(uintptr_t pad)
{
    return ((int (*)(void))pad)();
}

static int reserve_and_fill(const uintptr_t *pads, struct pad_jump *jumps, size_t count)
{
    int err;

    plat_lock(PLAT_PROBES);
    err = pad_reserve(pads, count);
    if (!err) {
        for (size_t i = 0; i < count; i++)
            jumps[i] = (struct pad_jump){ pads[i], (uintptr_t)target };
        plat_lock(PLAT_TEXT);
        pad_fill(jumps, count);
        plat_sync_cores();
        plat_unlock(PLAT_TEXT);
    }
    plat_unlock(PLAT_PROBES);
    return err;
}

static void give_back(const uintptr_t *pads, size_t count)
{
    plat_lock(PLAT_PROBES);
    pad_free_all(pads, count);
    plat_unlock(PLAT_PROBES);
}

KTEST(pad, a_jump_to_a_pad_arrives)
{
    uintptr_t pads[] = { FIRST_PAGE + 8, FIRST_PAGE + PAGE_SIZE - 2,
                         FIRST_PAGE + GiB + 123 };
    struct pad_jump jumps[3];

    ktest_report(reserve_and_fill(pads, jumps, 3) == 0, "three pads are made");
    for (size_t i = 0; i < 3; i++) {
        ktest_report(pad_call(pads[i]) == ANSWER, "pad %zu leads to the function", i);
        ktest_report(pad_target(pads[i]) == (uintptr_t)target, "and says so");
    }
    ktest_report(pad_pages() == 3 && pad_frames() < 3, "three pages share frames");
    give_back(pads, 3);
    ktest_report(pad_pages() == 0 && pad_frames() == 0, "nothing is left");
    ktest_report(pad_target(pads[0]) == 0, "no pad leads anywhere");
}

/* pads_choose - choose addresses of pads, spread over many pages, so that no pad overlaps
 * another one. Return: how many.
 */
static size_t pads_choose(uintptr_t *pads)
{
    size_t n = 0;

    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t off = i * (512 * KiB - 4096) + ktest_random() % 4000;

        pads[n] = FIRST_PAGE + off % (GiB + 900 * MiB) / 8 * 8;
        n++;
    }
    return n;
}

static void many_once(uintptr_t *pads, struct pad_jump *jumps)
{
    uint64_t start = plat_clock_ns();
    size_t n = pads_choose(pads), wrong = 0;

    ktest_report(reserve_and_fill(pads, jumps, n) == 0, "%zu pads are made", n);
    ktest_note("%zu pages, %zu frames, %llu us", pad_pages(), pad_frames(),
               (unsigned long long)(plat_clock_ns() - start) / 1000);
    for (size_t i = 0; i < n; i++)
        wrong += pad_call(pads[i]) != ANSWER;
    ktest_report(wrong == 0, "each leads to the function");
    start = plat_clock_ns();
    give_back(pads, n);
    ktest_note("given back in %llu us",
               (unsigned long long)(plat_clock_ns() - start) / 1000);
}

KTEST(pad, many_are_given_back_with_all_memory)
{
    uintptr_t *pads = kmalloc(MANY * sizeof(pads[0]));
    struct pad_jump *jumps = kmalloc(MANY * sizeof(jumps[0]));
    struct exec_stats stats;

    if (!pads || !jumps) {
        ktest_report(false, "there is memory");
        return;
    }
    many_once(pads, jumps);
    many_once(pads, jumps);
    exec_stats_get(&stats);
    ktest_report(pad_frames() == 0 && stats.pad_pages == 0 && stats.pad_frames == 0,
                 "no page and no frame is left");
    kfree(pads);
    kfree(jumps);
}

/* ---- a page moves to another frame while a CPU uses it ---- */

#define PAD_A (FIRST_PAGE + 100)
#define PAD_B (FIRST_PAGE + PAGE_SIZE + 200)
#define PAD_NEW (FIRST_PAGE + 202) /* on the page of A; in a shared frame B is there */

static bool stop_jumping;

static int jump_until_stopped(void)
{
    int wrong = 0;

    while (!__atomic_load_n(&stop_jumping, __ATOMIC_RELAXED))
        wrong += pad_call(PAD_A) != ANSWER;
    return wrong;
}

static int move_then_stop(void)
{
    uintptr_t b = PAD_B, new = PAD_NEW;
    struct pad_jump jump;
    int wrong = 0;

    for (unsigned i = 0; i < ktest_rounds(20, 200); i++) {
        wrong += reserve_and_fill(&b, &jump, 1) != 0;
        wrong += reserve_and_fill(&new, &jump, 1) != 0;
        wrong += pad_call(new) != ANSWER || pad_call(b) != ANSWER;
        give_back(&new, 1);
        give_back(&b, 1);
    }
    __atomic_store_n(&stop_jumping, true, __ATOMIC_RELAXED);
    return wrong;
}

static int move_or_jump(void *arg)
{
    (void)arg;
    return cpu_id() == 0 ? move_then_stop() : jump_until_stopped();
}

KTEST(pad, a_page_moves_while_cpus_jump_there)
{
    uintptr_t pad = PAD_A;
    struct pad_jump jump;

    stop_jumping = false;
    ktest_report(reserve_and_fill(&pad, &jump, 1) == 0,
                 "a pad that is used all the time");
    ktest_report(each_cpu_run(move_or_jump, NULL) == 0,
                 "a jump there arrives, whichever frame it is on");
    give_back(&pad, 1);
    ktest_report(pad_frames() == 0, "nothing is left");
}

KTEST(pad, a_page_with_another_owner_is_left_alone)
{
    uintptr_t pad = FIRST_PAGE + 100;
    uint64_t frame = frame_alloc();
    struct pad_jump jump;

    exec_map_at(FIRST_PAGE, frame);
    ktest_report(reserve_and_fill(&pad, &jump, 1) != 0, "its page is taken");
    plat_lock(PLAT_PROBES);
    ktest_report(!pad_is_free(pad), "which is known from now on");
    plat_unlock(PLAT_PROBES);
    exec_unmap(FIRST_PAGE);
    frame_free(frame);
    pad += 2 * PAGE_SIZE;
    ktest_report(reserve_and_fill(&pad, &jump, 1) == 0, "another one is not");
    give_back(&pad, 1);
}
