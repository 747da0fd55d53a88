/* test_slots.c - copies of instructions: threads are interrupted and switched out inside
 * of them, and a copy is freed only when no thread is inside.
 */
#include "kernel/cpu/lapic.h"
#include "kernel/debug/backtrace.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/paging.h"
#include "probes/core/insn_slot.h"
#include "tests/kernel/ktest.h"

#define MS UINT64_C(1000000)
#define HZ_MAX 1000u
#define FILL_LEN 8192u
#define INT3 0xcc

/* context_targets.asm */
void fill_slowly(void *to, size_t len);
extern const char fill_slowly_rep[];

KTEST_TARGET(target, x, x * 13 + 6)

/* ---- interrupted inside a copy --------------------------------------------------------- */

static volatile uint64_t ticks_inside, ticks_misread;

/* The handler of a probe on tick(), whose argument is the image of the interrupted code.
 */
static int look_where(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    const struct pt_regs *interrupted = (const struct pt_regs *)regs->di;
    uintptr_t at[1];

    if (!exec_contains(interrupted->ip))
        return 0;
    ticks_inside++;
    backtrace_collect(interrupted, at, 1);
    if (at[0] < (uintptr_t)_text || at[0] >= (uintptr_t)_etext)
        ticks_misread++;
    return 0;
}

static volatile bool filling;
static uint64_t fills, damaged; /* atomic */

static int fill_and_check(void *unused UNUSED)
{
    uint8_t *area = kmalloc(FILL_LEN);

    while (filling) {
        memset(area, 0, FILL_LEN);
        fill_slowly(area, FILL_LEN - 1);
        if (area[0] != 0x5a || area[FILL_LEN - 2] != 0x5a || area[FILL_LEN - 1])
            __atomic_add_fetch(&damaged, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&fills, 1, __ATOMIC_RELAXED);
    }
    kfree(area);
    return 0;
}

/* is_poisoned - is nothing mapped at @cell, or nothing but int3 there? */
static bool is_poisoned(const uint8_t *cell)
{
    uint8_t bytes[INSN_SLOT_LEN];

    if (copy_nofault(bytes, cell, sizeof(bytes)))
        return true;
    for (size_t i = 0; i < sizeof(bytes); i++)
        if (bytes[i] != INT3)
            return false;
    return true;
}

static void timer_rate(void *hz)
{
    lapic_timer_init((unsigned)(uintptr_t)hz);
}

static void all_timers(unsigned hz)
{
    smp_call_all(timer_rate, (void *)(uintptr_t)hz);
}

/* come_and_go - register and unregister @p @times times, and after each time another
 * probe, which may get the same cell.
 * Return: how often the freed cell of @p had other bytes than int3;
 * UINT64_MAX: @p was refused.
 */
static uint64_t come_and_go(uint64_t times, struct kprobe *p)
{
    uint64_t unpoisoned = 0;

    for (uint64_t n = 0; n < times; n++) {
        struct kprobe other = { .addr = (uintptr_t)target };
        const uint8_t *cell;

        if (register_kprobe(p))
            return UINT64_MAX;
        cell = p->site->boost_slot;
        thread_sleep_ns(2 * MS); /* meanwhile threads come to the copy */
        unregister_kprobe(p);
        unpoisoned += !is_poisoned(cell);
        register_kprobe(&other);
        target(1);
        unregister_kprobe(&other);
    }
    return unpoisoned;
}

/* Each CPU has two threads, so that threads are also switched out inside of the copy. */
KTEST(slots, no_cpu_is_inside_a_copy_that_is_given_back)
{
    struct kprobe tick = { .symbol_name = "sched_tick", .pre_handler = look_where };
    struct kprobe p = { .addr = (uintptr_t)fill_slowly_rep };
    uint64_t times = ktest_rounds(5, 60), unpoisoned;
    unsigned threads = 2 * cpu_count();
    int tids[2 * MAX_CPUS];

    ticks_inside = ticks_misread = 0;
    fills = damaged = 0;
    filling = true;
    all_timers(HZ_MAX);
    register_kprobe(&tick);
    for (unsigned i = 0; i < threads; i++)
        tids[i] = ktest_thread(fill_and_check, NULL, BIT(i / 2));
    unpoisoned = come_and_go(times, &p);
    filling = false;
    for (unsigned i = 0; i < threads; i++)
        thread_join(tids[i], NULL);
    unregister_kprobe(&tick);
    all_timers(THREAD_HZ_DEFAULT);
    ktest_report(unpoisoned == 0, "%lu times, nothing but int3 was left of the copy",
                 times);
    ktest_report(ticks_inside > 0, "%lu ticks found a CPU inside one", ticks_inside);
    ktest_report(ticks_misread == 0, "a backtrace from there begins in the program");
    ktest_report(p.hits > 0 && fills > 0 && damaged == 0,
                 "%lu of %lu fills ran there, all of them filled", p.hits, fills);
}

/* ---- the copies themselves ------------------------------------------------------------- */

static unsigned refused_bytes(uintptr_t start, size_t len, enum probe_reason reason)
{
    unsigned refused = 0;

    for (uintptr_t addr = start; addr < start + len; addr++) {
        struct kprobe p = { .addr = addr };
        struct probe_reject why = { 0 };

        if (!register_kprobe_why(&p, &why))
            unregister_kprobe(&p);
        refused += why.err == -EPERM && why.reason == reason;
    }
    return refused;
}

KTEST(slots, no_byte_of_them_can_be_probed)
{
    struct kprobe p = { .addr = (uintptr_t)target };
    uintptr_t page;
    void *other;

    register_kprobe(&p);
    page = align_down((uintptr_t)p.site->boost_slot, PAGE_SIZE);
    ktest_report(refused_bytes(page, PAGE_SIZE, PROBE_OWN_CODE) == PAGE_SIZE,
                 "all of the page of a copy is refused");
    unregister_kprobe(&p);
    other = exec_alloc(PAGE_SIZE);
    ktest_report(refused_bytes((uintptr_t)other, 64, PROBE_OWN_CODE) == 64,
                 "so is other executable memory");
    exec_free(other, PAGE_SIZE);
}
