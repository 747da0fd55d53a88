/* test_exec.c - executable memory is allocated, written through the alias,
 * executed and freed.
 */
#include "kernel/mm/exec.h"

#include "kernel/mm/extable.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"

#define CODE_LEN 6 /* mov eax, VALUE; ret */

struct code {
    uint8_t bytes[CODE_LEN];
};

static struct code code_make(uint32_t value)
{
    struct code c = { { 0xb8, 0, 0, 0, 0, 0xc3 } };

    memcpy(&c.bytes[1], &value, sizeof(value));
    return c;
}

static uint32_t code_run(const void *at)
{
    uint32_t (*fn)(void) = (uint32_t(*)(void))(uintptr_t)at;

    return fn();
}

static int code_write(void *at, uint32_t value)
{
    struct code c = code_make(value);

    return text_poke_alias_write(at, c.bytes, CODE_LEN);
}

static bool is_int3(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != 0xcc)
            return false;
    }
    return true;
}

static unsigned prot_of(const void *p)
{
    struct page_info info;

    return page_lookup((uintptr_t)p, &info) ? info.prot : ~0u;
}

static uint64_t phys_of(const void *p)
{
    struct page_info info;

    return page_lookup((uintptr_t)p, &info) ? info.phys : FRAME_NONE;
}

static bool is_in_reach(const void *p)
{
    return (uintptr_t)p - ARENA_LOW_START < ARENA_LEN ||
           (uintptr_t)p - arena_high_start() < ARENA_LEN;
}

KTEST(exec, memory_is_filled_with_int3_and_only_executable)
{
    size_t len = PAGE_SIZE + 1;
    uint8_t *p = exec_alloc(len);
    uint64_t phys = phys_of(p);
    char c = 0;

    ktest_report(is_in_reach(p), "it lies in a detour arena");
    ktest_report(is_int3(p, 2 * PAGE_SIZE), "every byte is int3, up to the page's end");
    ktest_report(prot_of(p) == PROT_X && prot_of(p + PAGE_SIZE) == PROT_X,
                 "it is executable and not writable");
    ktest_report(prot_of(phys_to_virt(phys)) == PROT_R,
                 "its frame is read-only in the direct map");
    ktest_report(copy_nofault(p, &c, 1) == -EFAULT &&
                     copy_nofault(phys_to_virt(phys), &c, 1) == -EFAULT,
                 "it cannot be written at either place");
    ktest_report(exec_contains((uintptr_t)p) && !exec_contains((uintptr_t)memcpy),
                 "it is known as executable memory, and text as none");
    exec_free(p, len);
    ktest_report(!exec_contains((uintptr_t)p), "freed it is not");
    ktest_report(prot_of(p) == ~0u, "and not mapped");
    ktest_report(prot_of(phys_to_virt(phys)) == PROT_W, "its frame is writable again");
}

struct attempt {
    char *to;
    unsigned refused;
};

static void write_attempt(void *arg)
{
    struct attempt *a = arg;

    if (copy_nofault(a->to, "x", 1))
        __atomic_add_fetch(&a->refused, 1, __ATOMIC_RELAXED);
}

static unsigned refused_everywhere(uint64_t phys)
{
    struct attempt a = { phys_to_virt(phys), 0 };

    smp_call_all(write_attempt, &a);
    return a.refused;
}

static void read_attempt(void *arg)
{
    struct attempt *a = arg;
    char c;

    if (copy_nofault(&c, a->to, 1))
        __atomic_add_fetch(&a->refused, 1, __ATOMIC_RELAXED);
}

static unsigned absent_everywhere(uintptr_t page)
{
    struct attempt a = { (char *)page, 0 };

    smp_call_all(read_attempt, &a);
    return a.refused;
}

#define PAD_A (REACH_START + 5 * MiB)
#define PAD_B (UINT64_C(0xfffffffff0000000))

KTEST(exec, no_cpu_can_write_a_frame_while_it_is_executable)
{
    uint8_t *p = exec_alloc(PAGE_SIZE);
    uint64_t phys = phys_of(p), frame = frame_alloc();

    ktest_report(refused_everywhere(phys) == cpu_count(), "one of a detour arena");
    exec_free(p, PAGE_SIZE);
    ktest_report(refused_everywhere(phys) == 0, "all can when it is freed");
    ktest_report(refused_everywhere(frame) == 0, "all can write a frame to be shown");
    exec_map_at(PAD_A, frame);
    ktest_report(refused_everywhere(frame) == cpu_count(), "none while it is shown");
    ktest_report(absent_everywhere(PAD_A) == 0, "all see it where it is shown");
    exec_unmap(PAD_A);
    ktest_report(absent_everywhere(PAD_A) == cpu_count(), "none when it is no more");
    ktest_report(refused_everywhere(frame) == 0, "but all can write it");
    frame_free(frame);
}

KTEST(exec, freed_memory_leaks_nothing)
{
    struct frame_stats before, after;
    struct exec_stats stats, later;

    exec_free(exec_alloc(8 * PAGE_SIZE), 8 * PAGE_SIZE); /* page tables stay */
    exec_stats_get(&stats);
    frame_stats_get(&before);
    for (unsigned i = 0; i < 10; i++)
        exec_free(exec_alloc(8 * PAGE_SIZE), 8 * PAGE_SIZE);
    exec_free(NULL, 1);
    frame_stats_get(&after);
    exec_stats_get(&later);
    ktest_report(before.free == after.free, "no frame");
    ktest_report(stats.arena_free_pages == later.arena_free_pages,
                 "no page of the arenas");
}

KTEST(exec, arenas_fill_up_on_both_sides)
{
    uint8_t *low = exec_alloc(ARENA_LEN / 2), *high = exec_alloc(ARENA_LEN / 2 + 1);
    struct exec_stats stats;

    exec_stats_get(&stats);
    if (low && high) {
        ktest_report((uintptr_t)low < KERNEL_VMA, "the low arena is used first");
        ktest_report((uintptr_t)high >= arena_high_start(),
                     "then the one above the image");
    } else {
        ktest_skip("not enough memory in one piece");
    }
    ktest_report(exec_alloc(ARENA_LEN + 1) == NULL, "more than an arena is refused");
    exec_free(low, ARENA_LEN / 2);
    exec_free(high, ARENA_LEN / 2 + 1);
}

/* ---- writing ---- */

static NOINLINE uint32_t victim(void)
{
    __asm__ volatile("");
    return 41;
}

KTEST(exec, the_alias_writes_text_and_executable_memory)
{
    uint8_t *p = exec_alloc(2 * PAGE_SIZE);
    struct code was;

    ktest_report(code_write(p, 7) == 0 && code_run(p) == 7, "code is written and runs");
    ktest_report(code_write(p, 8) == 0 && code_run(p) == 8, "and changed");
    ktest_report(code_write(p + PAGE_SIZE - 3, 9) == 0 &&
                     code_run(p + PAGE_SIZE - 3) == 9,
                 "also across two pages");
    ktest_report(is_int3(p + CODE_LEN, PAGE_SIZE - CODE_LEN - 3), "nothing else changed");
    memcpy(&was, (void *)(uintptr_t)victim, sizeof(was));
    ktest_report(code_write((void *)(uintptr_t)victim, 42) == 0 &&
                     code_run((void *)(uintptr_t)victim) == 42,
                 "a function of the image as well");
    text_poke_alias_write((void *)(uintptr_t)victim, was.bytes, CODE_LEN);
    ktest_report(code_run((void *)(uintptr_t)victim) == 41, "and put back");
    exec_free(p, 2 * PAGE_SIZE);
}

KTEST(exec, the_alias_writes_nothing_else)
{
    static uint8_t data[16];
    uint8_t *p = exec_alloc(PAGE_SIZE);
    uint8_t bytes[2] = { 0x90, 0x90 };

    ktest_report(text_poke_alias_write(data, bytes, 1) == -EFAULT, "not data");
    ktest_report(text_poke_alias_write(_rodata, bytes, 1) == -EFAULT,
                 "not read-only data");
    ktest_report(text_poke_alias_write((void *)0x1000, bytes, 1) == -EFAULT,
                 "not absent pages");
    ktest_report(text_poke_alias_write(p + PAGE_SIZE - 1, bytes, 2) == -EFAULT &&
                     p[PAGE_SIZE - 1] == 0xcc,
                 "not half of what runs into an absent page");
    ktest_report(text_poke_alias_write((void *)((uintptr_t)_etext - 1), bytes, 2) ==
                     -EFAULT,
                 "nor behind the end of text");
    ktest_report(text_poke_alias_write(p, bytes, 0) == -EINVAL &&
                     text_poke_alias_write(p, bytes, PAGE_SIZE + 1) == -EINVAL,
                 "not 0 bytes, not more than a page");
    exec_free(p, PAGE_SIZE);
}

KTEST(exec, no_alias_stays_open)
{
    uint8_t *p = exec_alloc(PAGE_SIZE);
    bool open = false;

    for (unsigned i = 0; i < 100; i++)
        code_write(p, i);
    for (uint64_t off = 0; off < MAX_CPUS * POKE_AREA_STRIDE; off += PAGE_SIZE)
        open |= prot_of((void *)(POKE_AREA_BASE + off)) != ~0u;
    ktest_report(!open, "all pages of the poke area are absent");
    exec_free(p, PAGE_SIZE);
}

static int write_and_run(void *arg)
{
    uint8_t *mine = (uint8_t *)arg + cpu_id() * PAGE_SIZE;
    uint64_t rounds = ktest_rounds(10000, 50000);
    int bad = 0;

    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t value = i << 8 | cpu_id();

        bad += code_write(mine, value) != 0 || code_run(mine) != value;
    }
    return bad;
}

KTEST(exec, cpus_write_at_once)
{
    uint8_t *p = exec_alloc(cpu_count() * PAGE_SIZE);

    ktest_report(each_cpu_run(write_and_run, p) == 0,
                 "each CPU's code always was what it had written");
    exec_free(p, cpu_count() * PAGE_SIZE);
}

/* ---- pages at chosen addresses ---- */

static uint64_t frame_with_code(uint32_t value)
{
    uint64_t phys = frame_alloc();
    struct code c = code_make(value);

    memcpy(phys_to_virt(phys), c.bytes, CODE_LEN);
    return phys;
}

static bool pad_is_free(uintptr_t page)
{
    struct page_info info;

    return !exec_contains(page) && !page_lookup(page, &info);
}

KTEST(exec, one_frame_at_two_chosen_pages)
{
    size_t blocks = heap_block_count();
    uint64_t phys = frame_with_code(1234);
    struct exec_stats stats;

    ktest_report(pad_is_free(PAD_A) && pad_is_free(PAD_B), "both are free");
    ktest_report(exec_map_at(PAD_A, phys) == 0 && exec_map_at(PAD_B, phys) == 0,
                 "a frame is shown at two pages, 4 GiB apart");
    ktest_report(code_run((void *)PAD_A) == 1234 && code_run((void *)PAD_B) == 1234,
                 "its code runs at both");
    ktest_report(!pad_is_free(PAD_A) && exec_map_at(PAD_A, phys) == -EBUSY,
                 "a page is taken once");
    exec_stats_get(&stats);
    ktest_report(stats.pad_pages == 2 && stats.pad_frames == 1, "two pages, one frame");
    ktest_report(code_write((void *)PAD_A, 4321) == 0 && code_run((void *)PAD_B) == 4321,
                 "what is written at one is run at the other");
    exec_unmap(PAD_A);
    ktest_report(prot_of(phys_to_virt(phys)) == PROT_R,
                 "while one shows it, it is read-only in the direct map");
    exec_unmap(PAD_B);
    ktest_report(prot_of(phys_to_virt(phys)) == PROT_W, "then no more");
    ktest_report(pad_is_free(PAD_A) && pad_is_free(PAD_B), "both are free again");
    frame_free(phys);
    ktest_report(heap_block_count() == blocks, "nothing is left over");
}

KTEST(exec, only_pages_of_the_reserved_range_can_be_chosen)
{
    uint64_t phys = frame_alloc();
    uintptr_t module = module_window_start();

    ktest_report(exec_map_at(DIRECT_MAP_BASE, phys) == -EINVAL, "not the direct map");
    ktest_report(exec_map_at((uintptr_t)_text, phys) == -EINVAL, "not the image");
    ktest_report(exec_map_at(KERNEL_VMA, phys) == -EINVAL, "not the pages below it");
    ktest_report(exec_map_at(ARENA_LOW_START, phys) == -EINVAL, "not the low arena");
    ktest_report(exec_map_at(arena_high_start(), phys) == -EINVAL, "not the high one");
    ktest_report(exec_map_at(PAD_A + 1, phys) == -EINVAL, "not half pages");
    ktest_report(exec_map_at(PAD_A, UINT64_C(0x7f0000000000)) == -EINVAL,
                 "not what is no RAM");
    ktest_report(exec_map_at(module, phys) == 0, "but module text");
    exec_unmap(module);
    frame_free(phys);
}

KTEST(exec, without_memory_nothing_changes)
{
    uint64_t phys = frame_alloc();

    heap_fail_after(1);
    ktest_report(exec_map_at(PAD_A, phys) == -ENOMEM, "no memory for the count");
    ktest_report(pad_is_free(PAD_A), "the page is free");
    ktest_report(prot_of(phys_to_virt(phys)) == PROT_W, "the frame is writable");
    frame_free(phys);
}

#define PADS 300

/* The pages are like those of landing pads: far apart, and all of them show a few frames.
 */
KTEST(exec, many_pages_are_unmapped_at_once)
{
    static uintptr_t pages[PADS];
    uint64_t frames[3];
    struct exec_stats stats;
    bool ran = true;

    for (unsigned i = 0; i < 3; i++)
        frames[i] = frame_with_code(i);
    for (unsigned i = 0; i < PADS; i++) {
        pages[i] = REACH_START + i * (2 * MiB + PAGE_SIZE);
        ran &= exec_map_at(pages[i], frames[i % 3]) == 0;
        ran &= code_run((void *)pages[i]) == i % 3;
    }
    exec_stats_get(&stats);
    ktest_report(ran, "%u pages run", PADS);
    ktest_report(stats.pad_pages == PADS && stats.pad_frames == 3, "they show 3 frames");
    exec_unmap_all(pages, PADS);
    exec_stats_get(&stats);
    ktest_report(stats.pad_pages == 0 && stats.pad_frames == 0, "and are all gone");
    for (unsigned i = 0; i < 3; i++) {
        ktest_report(prot_of(phys_to_virt(frames[i])) == PROT_W, "a frame is writable");
        frame_free(frames[i]);
    }
}

static bool stop_running;

static int run_until_stopped(void *arg)
{
    int bad = 0;

    while (!__atomic_load_n(&stop_running, __ATOMIC_RELAXED)) {
        uint32_t value = code_run(arg);

        bad += value != 1 && value != 2;
    }
    return bad;
}

static int change_then_stop(void *arg)
{
    const uint64_t *frames = arg;
    int bad = 0;

    for (unsigned i = 0; i < ktest_rounds(60, 1000); i++) {
        bad += exec_remap(PAD_A, frames[i % 2]) != 0;
        bad += prot_of(phys_to_virt(frames[(i + 1) % 2])) != PROT_W;
    }
    __atomic_store_n(&stop_running, true, __ATOMIC_RELAXED);
    return bad;
}

static int change_or_run(void *arg)
{
    return cpu_id() == 0 ? change_then_stop(arg) : run_until_stopped((void *)PAD_A);
}

KTEST(exec, a_page_changes_its_frame_under_running_code)
{
    uint64_t frames[2] = { frame_with_code(1), frame_with_code(2) };

    stop_running = false;
    ktest_report(exec_remap(PAD_A, frames[0]) == -ENOENT, "there must be one to replace");
    exec_map_at(PAD_A, frames[1]);
    ktest_report(each_cpu_run(change_or_run, frames) == 0,
                 "a CPU there runs the old or the new code, and nothing between");
    exec_unmap(PAD_A);
    frame_free(frames[0]);
    frame_free(frames[1]);
}
