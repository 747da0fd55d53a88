/* test_module_storm.c - a module is loaded and unloaded again and again, while threads on
 * all CPUs call it, register and unregister probes on it and on the image, and look up
 * its symbols. No hit is lost, and no memory.
 */
#include "kernel/debug/ksyms.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/frame.h"
#include "kernel/work/work.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/loaded.h"
#include "tests/kernel/text_sum.h"

static struct {
    bool stop;
    uint64_t kept, armed, refused;
    char why[MODULE_WHY_MAX];
} storm;

/* ---- threads that use the module ---- */

/* This thread runs a workload of the module. While the workload runs, the module stays.
 */
static int storm_calls(void *arg)
{
    while (!READ_ONCE(storm.stop)) {
        struct seq out;

        seq_init(&out, NULL, NULL);
        if (workload_run(arg, 0, NULL, &out, NULL, NULL))
            thread_sleep_ns(1000000);
        seq_free(&out);
    }
    return 0;
}

static uint64_t pre_handled, post_handled, returned;

static int handled(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_add_fetch(&pre_handled, 1, __ATOMIC_RELAXED);
    return 0;
}

static void handled_behind(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                           unsigned long flags UNUSED)
{
    __atomic_add_fetch(&post_handled, 1, __ATOMIC_RELAXED);
}

static int at_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_add_fetch(&returned, 1, __ATOMIC_RELAXED);
    return 0;
}

static int do_nothing(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

/* These probes are not on the stack of the thread: they contain addresses in the module,
 * and on a stack such an address would look like a return address.
 */
static struct kprobe middle, on_image;
static struct kretprobe on_return;

/* Registering a probe on the module may fail, if the module is not loaded. But if
 * it succeeds, then all further calls for the probe must succeed, even after the
 * module was unloaded.
 */
static int storm_registers(void *unused UNUSED)
{
    while (!READ_ONCE(storm.stop)) {
        bool in, rin;

        middle = (struct kprobe){ .symbol_name = "guest:guest_mix", .offset = 5 };
        on_image = (struct kprobe){ .symbol_name = "work_mix" };
        on_return = (struct kretprobe){ .kp.symbol_name = "guest:guest_mix",
                                        .handler = do_nothing };
        in = register_kprobe(&middle) == 0;
        rin = register_kretprobe(&on_return) == 0;
        __atomic_add_fetch(in ? &storm.armed : &storm.refused, 1, __ATOMIC_RELAXED);
        if (register_kprobe(&on_image))
            return -EIO;
        if (in && (disable_kprobe(&middle) || enable_kprobe(&middle)))
            return -EIO;
        thread_sleep_ns(1000000);
        if (in && unregister_kprobe(&middle))
            return -EIO;
        if (rin && unregister_kretprobe(&on_return))
            return -EIO;
        if (unregister_kprobe(&on_image))
            return -EIO;
    }
    return 0;
}

static struct ksym symbol;

static int storm_looks(void *unused UNUSED)
{
    size_t found = 0;

    while (!READ_ONCE(storm.stop)) {
        for (size_t i = ksyms_count(); ksyms_get(i, &symbol); i++)
            found += ksyms_at(symbol.start, &symbol) == 0;
        thread_sleep_ns(1000000);
    }
    return found ? 0 : -EIO;
}

/* ---- loading and unloading ---- */

/* These probes are registered before the module is loaded, and stay for all of its loads.
 */
static struct kprobe entry, behind;
static struct kretprobe calls;

static void register_all(void)
{
    entry = (struct kprobe){ .symbol_name = "guest:guest_twice",
                             .pre_handler = handled,
                             .post_handler = handled_behind,
                             .flags = KPROBE_FLAG_PENDING };
    behind = (struct kprobe){ .symbol_name = "guest:guest_twice",
                              .offset = 5, /* behind the NOP at the entry */
                              .flags = KPROBE_FLAG_PENDING };
    calls = (struct kretprobe){ .kp = { .symbol_name = "guest:guest_twice",
                                        .flags = KPROBE_FLAG_PENDING },
                                .handler = at_return };
    pre_handled = post_handled = returned = 0;
    register_kprobe(&entry);
    register_kprobe(&behind);
    register_kretprobe(&calls);
}

static void unregister_all(void)
{
    unregister_kprobe(&entry);
    unregister_kprobe(&behind);
    unregister_kretprobe(&calls);
}

/* reload - load the module, wait until the probe behind has @hits hits and a further
 * probe was registered, and unload the module. Return: was it loaded and unloaded?
 */
static bool reload(uint64_t hits)
{
    uint64_t armed = READ_ONCE(storm.armed);
    int err = load_guest();

    while (!err && (kprobe_hits(&behind) < hits || READ_ONCE(storm.armed) == armed))
        thread_sleep_ns(500000);
    while (!err && (err = module_unload("guest", loaded_why)) == -EBUSY) {
        storm.kept++;
        strlcpy(storm.why, loaded_why, sizeof(storm.why));
        thread_sleep_ns(500000);
        err = 0;
    }
    return err == 0;
}

static bool reloads(uint64_t rounds, uint64_t hits)
{
    static const struct {
        int (*fn)(void *arg);
        const char *arg;
    } threads[] = { { storm_calls, "guest" },
                    { storm_calls, "guest_spread" },
                    { storm_registers, NULL },
                    { storm_looks, NULL } };
    int tids[ARRAY_LEN(threads)], code = 0;
    bool good = true;

    memset(&storm, 0, sizeof(storm));
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        tids[i] = ktest_thread(threads[i].fn, (void *)threads[i].arg, 0);
    for (uint64_t i = 1; i <= rounds && good; i++)
        good = reload(hits * i / rounds);
    WRITE_ONCE(storm.stop, true);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        int one;

        thread_join(tids[i], &one);
        code |= one;
    }
    return good && !code;
}

/* ---- what must hold ---- */

#define FRAMES_KEPT 16

struct in_use {
    size_t bytes, blocks;
    struct frame_stats frames;
    struct exec_stats exec;
};

static void in_use_get(struct in_use *u)
{
    optimize_run();
    u->bytes = heap_in_use();
    u->blocks = heap_block_count();
    frame_stats_get(&u->frames);
    exec_stats_get(&u->exec);
}

static void report_leaks(const struct in_use *before)
{
    struct in_use after;

    in_use_get(&after);
    ktest_report(after.bytes == before->bytes && after.blocks == before->blocks,
                 "the heap is the same to the byte: %ld more in %ld blocks",
                 (long)(after.bytes - before->bytes),
                 (long)(after.blocks - before->blocks));
    /* The heap keeps pages for blocks of one size: as many as were in
     * use at the same time.
     */
    ktest_report(before->frames.free - after.frames.free + FRAMES_KEPT <= 2 * FRAMES_KEPT,
                 "whatever the number of loads, the heap keeps few frames: %ld more",
                 (long)(before->frames.free - after.frames.free));
    ktest_report(after.exec.arena_free_pages == before->exec.arena_free_pages &&
                     after.exec.pad_pages == before->exec.pad_pages,
                 "no cell or pad is left");
}

static void report_counts(uint64_t executed)
{
    ktest_report(kprobe_hits(&entry) + entry.nmissed == executed,
                 "the entry: %lu hits and %lu misses are %lu executions",
                 kprobe_hits(&entry), entry.nmissed, executed);
    ktest_report(kprobe_hits(&behind) + behind.nmissed == executed,
                 "behind it: %lu hits and %lu misses are as many", kprobe_hits(&behind),
                 behind.nmissed);
    ktest_report(pre_handled == kprobe_hits(&entry) && post_handled == pre_handled,
                 "both handlers were called for each hit");
    ktest_report(kprobe_hits(&calls.kp) + calls.kp.nmissed == executed,
                 "returns: %lu hits and %lu misses are as many", kprobe_hits(&calls.kp),
                 calls.kp.nmissed);
    ktest_report(returned + calls.nmissed == kprobe_hits(&calls.kp),
                 "%lu returns and %lu that were not followed are these hits", returned,
                 calls.nmissed);
}

/* module_sum - return a hash of the first page of the module's text,
 * while it has no probes.
 */
static uint64_t module_sum(void)
{
    const uint64_t *page;
    uint64_t sum = 0;

    load_guest();
    page = (const uint64_t *)(of("guest_twice") & ~(PAGE_SIZE - 1));
    for (size_t i = 0; i < PAGE_SIZE / sizeof(*page); i++)
        sum = (sum ^ page[i]) * UINT64_C(0x9e3779b97f4a7c15);
    unload("guest");
    return sum;
}

KTEST(module_storm, h101_h104_all_at_once)
{
    uint64_t rounds = ktest_rounds(10, 1000), hits = ktest_rounds(10000, 1000000);
    uint64_t image = text_sum(), module = module_sum();
    struct in_use before;
    bool good;

    jumps_by(OPTIMIZE_PUN);
    register_all();
    reloads(5, 5000); /* allocates what the kernel keeps: names, stacks of threads */
    unregister_all();
    in_use_get(&before);
    guest_total = 0;
    register_all();
    good = reloads(rounds, hits);
    unregister_all();
    ktest_report(good, "%lu loads under calls, registrations and look-ups", rounds);
    if (!good)
        ktest_note("%s", loaded_why);
    ktest_note("kept %lu times, %lu armed, %lu refused; %s", storm.kept, storm.armed,
               storm.refused, storm.why);
    ktest_report(storm.kept && storm.armed >= rounds,
                 "it was kept, and probes were armed");
    report_counts((uint64_t)guest_total);
    report_leaks(&before);
    jumps_as_before();
    ktest_report(text_sum() == image, "the text is the image's again");
    ktest_report(module_sum() == module, "and its own is as at first");
}
