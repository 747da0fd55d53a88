/* test_region.c - regions in the running kernel. Before a jump displaces several
 * instructions, the engine waits for each thread that is between two of them.
 *
 * The test holds a thread there: the second instruction of the region is repe scasb,
 * which goes on until it comes to a byte that is not 0.
 *
 * The test also writes a jump and removes it, in the steps that region_watch.c describes,
 * while all CPUs execute the instructions that it displaces.
 */
#include "kernel/sync/quiesce.h"
#include "probes/core/text_poke.h"
#include "probes/explain/totals.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/region/region.h"
#include "probes/xmc/xmc.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/share.h"
#include "tests/kernel/text_sum.h"

#define MS UINT64_C(1000000)
#define LONG_ENOUGH (15 * MS) /* ten times what quiesce() takes with no thread inside */
#define BYTES ((size_t)32 << 20)
#define STEP 4096 /* distance of the bytes that scan_end() sets */

size_t region_scan(const char *from, size_t len);
extern const char region_scan_at[];

static char *bytes;
static size_t scanned;
static bool has_begun, is_scanning, came_back;

static int scan(void *arg UNUSED)
{
    WRITE_ONCE(is_scanning, true);
    WRITE_ONCE(has_begun, true);
    scanned = region_scan(bytes, BYTES);
    WRITE_ONCE(is_scanning, false);
    return 0;
}

static int quiesce_and_tell(void *arg UNUSED)
{
    quiesce();
    WRITE_ONCE(came_back, true);
    return 0;
}

/* scan_end - end the scan: wherever it is, it soon comes to one of these bytes. */
static void scan_end(void)
{
    for (size_t i = 0; i < BYTES; i += STEP)
        WRITE_ONCE(bytes[i + STEP - 1], 1);
}

static bool sleep_until(const bool *value)
{
    for (unsigned n = 0; n < 400 && !READ_ONCE(*value); n++)
        thread_sleep_ns(5 * MS);
    return READ_ONCE(*value);
}

struct parked {
    unsigned count;
};

static void find_parked(struct thread *t, void *arg)
{
    struct parked *p = arg;

    if (t->preempted_regs && region_is_watched(t->preempted_regs->ip))
        p->count++;
}

static unsigned parked_count(void)
{
    struct parked p = { 0 };

    preempt_disable();
    thread_for_each(find_parked, &p);
    preempt_enable();
    return p.count;
}

static void watch(void)
{
    uintptr_t addr = (uintptr_t)region_scan_at;

    region_watch(&addr, 1);
}

static bool is_planned(void)
{
    struct region r;
    struct probe_reject why;
    int err = region_plan((uintptr_t)region_scan_at, &r, &why);

    if (err)
        ktest_note("%s at 0x%lx", why.why, why.at);
    return !err && r.count == 4 && r.len == 5 && r.starts[1] == 1;
}

/* waits_for_the_scan - check that quiesce(), called on @waiter_cpus, waits for a thread
 * that scans on @cpus. @is_preempted: the scanning thread is preempted meanwhile
 */
static void waits_for_the_scan(uint64_t cpus, uint64_t waiter_cpus, bool is_preempted)
{
    int scanner, waiter;
    bool early;

    WRITE_ONCE(came_back, false);
    WRITE_ONCE(has_begun, false);
    scanner = ktest_thread(scan, NULL, cpus);
    ktest_report(sleep_until(&has_begun), "a thread has come to the region");
    if (is_preempted && READ_ONCE(is_scanning))
        ktest_report(parked_count() == 1, "it is preempted behind its first byte");
    waiter = ktest_thread(quiesce_and_tell, NULL, waiter_cpus);
    thread_sleep_ns(LONG_ENOUGH);
    early = READ_ONCE(came_back);
    if (READ_ONCE(is_scanning))
        ktest_report(!early, "quiescence waits");
    else
        ktest_skip("the scan was over too early");
    scan_end();
    ktest_report(sleep_until(&came_back), "it comes when the thread has left");
    thread_join(waiter, NULL);
    thread_join(scanner, NULL);
    ktest_report(scanned && scanned <= BYTES, "which has scanned %zu bytes", scanned);
}

static void park(uint64_t cpus, uint64_t waiter_cpus, bool is_preempted)
{
    bytes = kzalloc(BYTES);
    if (!bytes) {
        ktest_skip("needs %zu MiB of memory", BYTES >> 20);
        return;
    }
    thread_set_affinity(BIT(0));
    plat_lock(PLAT_PROBES);
    ktest_report(is_planned(), "a jump may displace what is there");
    watch();
    waits_for_the_scan(cpus, waiter_cpus, is_preempted);
    region_unwatch();
    plat_unlock(PLAT_PROBES);
    kfree(bytes);
}

KTEST(region, a_thread_that_runs_inside_is_waited_for)
{
    if (ktest_lacks_cpus(2))
        return;
    park(BIT(1), BIT(0), false);
}

KTEST(region, a_thread_that_is_preempted_inside_is_waited_for)
{
    park(BIT(0), BIT(0), true);
}

KTEST(region, quiesce_does_not_wait_where_nothing_is_watched)
{
    int scanner;

    bytes = kzalloc(BYTES);
    if (!bytes || cpu_count() < 2) {
        kfree(bytes);
        ktest_skip("needs memory and two CPUs");
        return;
    }
    WRITE_ONCE(has_begun, false);
    thread_set_affinity(BIT(0));
    scanner = ktest_thread(scan, NULL, BIT(1));
    ktest_report(sleep_until(&has_begun), "a thread has come to the region");
    quiesce();
    if (READ_ONCE(is_scanning))
        ktest_report(true, "it is there still");
    else
        ktest_skip("the scan was over too early");
    scan_end();
    thread_join(scanner, NULL);
    kfree(bytes);
}

/* ---- a jump comes and goes ------------------------------------------------------------- */

uint32_t region_mix(uint32_t x);
uint32_t region_choose(uint32_t x);
uint32_t region_late(uint32_t x);
uint32_t region_side(uint32_t x);
uint32_t region_outer(uint32_t x);
extern const char region_mix_at[], region_choose_at[], region_late_at[],
    region_enter_at[];

static uint32_t mix(uint32_t x)
{
    uint32_t y = x + 1;

    return (y >> 1 | y << 31) ^ x;
}

static uint32_t choose(uint32_t x)
{
    return x & 1 ? x + 3 : x - 5;
}

static struct {
    uint32_t (*probed)(uint32_t x);
    uint32_t (*expected)(uint32_t x);
    bool stop;
    uint64_t calls, wrong;
} worked;

static int work(void *arg UNUSED)
{
    uint64_t calls = 0, wrong = 0;

    for (uint32_t x = 1; !READ_ONCE(worked.stop); x = x * 1664525 + 1013904223) {
        wrong += worked.probed(x) != worked.expected(x);
        if (++calls % 4096 == 0)
            thread_yield(); /* a thread that is always in copies keeps quiescence waiting */
    }
    __atomic_add_fetch(&worked.calls, calls, __ATOMIC_RELAXED);
    __atomic_add_fetch(&worked.wrong, wrong, __ATOMIC_RELAXED);
    return 0;
}

static void poke(const struct site *site, const uint8_t first[REGION_JUMP_LEN])
{
    struct text_poke p = { .addr = site->addr, .len = REGION_JUMP_LEN };

    for (size_t i = 0; i < REGION_JUMP_LEN; i++)
        p.bytes[i] = first[i];
    plat_lock(PLAT_TEXT);
    text_poke_batch(&p, 1);
    plat_unlock(PLAT_TEXT);
}

/* jump_in - write the jump over the region at @site. Return: false when
 * there can be none.
 * jump_out - replace it by the int3 of @site.
 */
static bool jump_in(struct site *site)
{
    uint8_t jmp[REGION_JUMP_LEN];
    struct probe_reject why;

    if (region_prepare(site, &why)) {
        ktest_note("%s at 0x%lx", why.why, why.at);
        return false;
    }
    plat_sync_cores();
    region_open(site);
    if (detour_prepare(site, &why))
        return false;
    region_watch(&site->addr, 1);
    plat_quiesce();
    region_unwatch();
    insn_encode_jmp32(jmp, site->addr, (uintptr_t)site_detour(site));
    poke(site, jmp);
    return true;
}

static void jump_out(struct site *site)
{
    uint8_t original[REGION_JUMP_LEN] = { INSN_INT3 };

    for (size_t i = 1; i < REGION_JUMP_LEN; i++)
        original[i] = jump_site(site)->region->bytes[i];
    poke(site, original);
    region_close(site);
    plat_quiesce();
    detour_release(site);
    region_release(site);
}

static uint64_t traps(void)
{
    struct probe_totals totals;

    account_totals(&totals);
    return totals.traps;
}

static uint64_t pre_hits, post_hits;

static int note_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    __atomic_add_fetch(&pre_hits, 1, __ATOMIC_RELAXED);
    return 0;
}

static void note_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                      unsigned long flags UNUSED)
{
    __atomic_add_fetch(&post_hits, 1, __ATOMIC_RELAXED);
}

/* come_and_go - register @p, write its jump and remove it several times while all CPUs
 * call the function, and unregister @p.
 */
static void come_and_go(struct kprobe *p)
{
    uint64_t rounds = ktest_rounds(5, 100), in = 0;
    int tids[MAX_CPUS];
    unsigned threads = cpu_count() * 2;

    WRITE_ONCE(worked.stop, false);
    worked.calls = worked.wrong = 0;
    pre_hits = post_hits = 0;
    ktest_report(!register_kprobe(p), "a probe is set");
    if (threads > MAX_CPUS)
        threads = MAX_CPUS;
    for (unsigned i = 0; i < threads; i++)
        tids[i] = ktest_thread(work, NULL, 0);
    for (uint64_t i = 0; i < rounds; i++) {
        plat_lock(PLAT_PROBES);
        if (jump_in(p->site)) {
            in++;
            thread_sleep_ns(2 * MS);
            jump_out(p->site);
        }
        plat_unlock(PLAT_PROBES);
    }
    WRITE_ONCE(worked.stop, true);
    for (unsigned i = 0; i < threads; i++)
        thread_join(tids[i], NULL);
    ktest_report(in == rounds, "a jump was put in and taken out %lu times", in);
    ktest_report(worked.wrong == 0, "none of %lu calls was wrong", worked.calls);
    ktest_report(!unregister_kprobe(p), "the probe is out");
    ktest_report(p->hits + p->nmissed == worked.calls,
                 "and was hit %lu times, %lu missed", p->hits, p->nmissed);
}

static void jump_alone(struct kprobe *p, uint32_t (*probed)(uint32_t x),
                       uint32_t (*expected)(uint32_t x))
{
    uint64_t before;
    bool same = true, in;

    pre_hits = post_hits = 0;
    ktest_report(!register_kprobe(p), "a probe is set");
    plat_lock(PLAT_PROBES);
    in = jump_in(p->site);
    before = traps();
    for (uint32_t x = 0; x < 1000; x++)
        same &= probed(x) == expected(x);
    before = traps() - before;
    if (in)
        jump_out(p->site);
    plat_unlock(PLAT_PROBES);
    ktest_report(in && same, "1000 calls under a jump are right");
    ktest_report(before == 0, "without a trap");
    unregister_kprobe(p);
    ktest_report(p->hits == 1000, "%lu hits", p->hits);
    ktest_report(!p->pre_handler || pre_hits == 1000, "%lu pre-handlers", pre_hits);
    ktest_report(!p->post_handler || post_hits == 1000, "%lu post-handlers", post_hits);
}

KTEST(region, each_detour_leads_to_the_copies)
{
    struct kprobe count = { .addr = (uintptr_t)region_mix_at };
    struct kprobe call = { .addr = (uintptr_t)region_mix_at, .pre_handler = note_pre };
    struct kprobe both = { .addr = (uintptr_t)region_mix_at,
                           .pre_handler = note_pre,
                           .post_handler = note_post };
    struct kprobe branch = { .addr = (uintptr_t)region_choose_at,
                             .pre_handler = note_pre };
    struct kprobe image = { .addr = (uintptr_t)region_choose_at,
                            .post_handler = note_post };

    optimize_set_method(OPTIMIZE_OFF);
    jump_alone(&count, region_mix, mix);
    jump_alone(&call, region_mix, mix);
    jump_alone(&both, region_mix, mix);
    jump_alone(&branch, region_choose, choose);
    jump_alone(&image, region_choose, choose);
    optimize_set_method(OPTIMIZE_OFF);
}

KTEST(region, jumps_come_and_go_while_all_cpus_are_there)
{
    struct kprobe boosted = { .addr = (uintptr_t)region_mix_at, .pre_handler = note_pre };
    struct kprobe stepped = { .addr = (uintptr_t)region_mix_at,
                              .post_handler = note_post };

    optimize_set_method(OPTIMIZE_OFF);
    worked.probed = region_mix;
    worked.expected = mix;
    come_and_go(&boosted);
    come_and_go(&stepped);
    optimize_set_method(OPTIMIZE_OFF);
}

KTEST(region, and_so_they_do_over_branches)
{
    struct kprobe counted = { .addr = (uintptr_t)region_choose_at };
    struct kprobe told = { .addr = (uintptr_t)region_choose_at,
                           .post_handler = note_post };

    optimize_set_method(OPTIMIZE_OFF);
    worked.probed = region_choose;
    worked.expected = choose;
    come_and_go(&counted);
    come_and_go(&told);
    optimize_set_method(OPTIMIZE_OFF);
}

/* ---- by the optimizer ------------------------------------------------------------------ */

static bool is_jump(const struct kprobe *p)
{
    return p->flags & KPROBE_FLAG_OPTIMIZED;
}

static bool mix_is_right(void)
{
    for (uint32_t x = 0; x < 50; x++)
        if (region_mix(x) != mix(x))
            return false;
    return true;
}

/* second_insn - return the address of the second instruction of the region at
 * @at. The build must not see that this address is taken: it would note the
 * instruction as a target.
 */
static uintptr_t second_insn(const char *at)
{
    uintptr_t addr = (uintptr_t)at;

    __asm__ volatile("" : "+r"(addr));
    return addr + 2;
}

/* H70, H78: the second probe is on an instruction that the jump of the
 * first has displaced.
 */
KTEST(region, h70_a_second_probe_inside)
{
    struct kprobe a = { .addr = (uintptr_t)region_mix_at, .pre_handler = note_pre };
    struct kprobe b = { .addr = second_insn(region_mix_at), .pre_handler = note_pre };
    uint64_t before = text_sum();

    optimize_set_method(OPTIMIZE_REGION);
    register_kprobe(&a);
    optimize_run();
    ktest_report(is_jump(&a), "the first is a jump");
    b.addr = second_insn(region_mix_at) + 1;
    ktest_report(register_kprobe(&b) == -EILSEQ, "between two instructions is no place");
    b.addr = second_insn(region_mix_at);
    ktest_report(!register_kprobe(&b),
                 "where one is displaced, a second one is registered");
    ktest_report(!is_jump(&a) && mix_is_right(), "then the first is none any more");
    ktest_report(kprobe_hits(&a) == 50 && kprobe_hits(&b) == 50, "both are hit");
    optimize_run();
    ktest_report(!is_jump(&a) && jump_site(a.site)->jump_why == PROBE_REGION_PROBED,
                 "it stays so, and it is known why");
    ktest_report(is_jump(&b) && mix_is_right(), "the second may be one");
    unregister_kprobe(&b);
    optimize_run();
    ktest_report(is_jump(&a) && mix_is_right(), "with the second gone, the first is");
    ktest_report(kprobe_hits(&a) == 150 && kprobe_hits(&b) == 100, "no hit is lost");
    unregister_kprobe(&a);
    optimize_set_method(OPTIMIZE_OFF);
    ktest_report(text_sum() == before, "the text is as it was");
}

/* The code behind the call in region_outer() is left out. */
static int return_to_second(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    regs->ip = second_insn(region_mix_at);
    return 0;
}

static uint64_t outer(uint64_t x)
{
    return region_outer((uint32_t)x);
}

KTEST(region, a_return_handler_sends_to_the_copies)
{
    struct kprobe p = { .addr = (uintptr_t)region_mix_at, .pre_handler = note_pre };
    struct kretprobe rp = { .kp.symbol_name = "region_side",
                            .handler = return_to_second };
    struct own_steps steps;

    optimize_set_method(OPTIMIZE_REGION);
    register_kprobe(&p);
    ktest_report(!register_kretprobe(&rp), "a return handler sets ip");
    optimize_run();
    ktest_report(is_jump(&p), "to an instruction that a jump displaces");
    ktest_report(region_outer(6) == 5, "the copy is executed: %u", region_outer(6));
    ktest_report(own_steps_of(&steps, outer, 6) == 5, "also if the program steps itself");
    unregister_kretprobe(&rp);
    unregister_kprobe(&p);
    optimize_set_method(OPTIMIZE_OFF);
}

/* H63: after the jump was written, a branch to the middle of its region is written. */
KTEST(region, h63_a_branch_is_written_later)
{
    static const uint8_t long_nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
    struct kprobe p = { .addr = (uintptr_t)region_late_at, .pre_handler = note_pre };
    uint8_t jmp[INSN_JMP32_LEN];

    insn_encode_jmp32(jmp, (uintptr_t)region_enter_at, second_insn(region_late_at));
    optimize_set_method(OPTIMIZE_REGION);
    register_kprobe(&p);
    optimize_run();
    ktest_report(is_jump(&p), "it is a jump");
    ktest_report(!xmc((uintptr_t)region_enter_at, jmp, sizeof(jmp)),
                 "a branch to its second instruction is written");
    ktest_report(!is_jump(&p), "then it is none");
    ktest_report(region_side(6) == 5, "the branch leads there: %u", region_side(6));
    optimize_run();
    ktest_report(!is_jump(&p) && jump_site(p.site)->jump_why == PROBE_REGION_TARGET,
                 "it stays so, and it is known why");
    ktest_report(region_late(6) == mix(6), "and so does the function");
    ktest_report(!xmc((uintptr_t)region_enter_at, long_nop, sizeof(long_nop)),
                 "the branch is taken out");
    optimize_run();
    ktest_report(is_jump(&p), "then it is a jump again");
    ktest_report(region_late(6) == mix(6), "which does what it should");
    unregister_kprobe(&p);
    optimize_set_method(OPTIMIZE_OFF);
}

/* ---- all over the image ---------------------------------------------------------------- */

/* No instruction of the engine gets a probe: with breakpoints in the engine, each plan
 * would take a hundred times longer.
 */
static void one_density(unsigned percent, unsigned jumps_at_least)
{
    uint64_t before = text_sum(), jumps = 0;

    share_register(percent, false);
    optimize_run();
    for (size_t i = 0; i < share.count; i++)
        jumps += is_jump(share.pointers[i]);
    ktest_report(jumps * 100 >= share.count * jumps_at_least,
                 "%u %%: %lu of %lu are jumps", percent, jumps, share.count);
    ktest_report(mix_is_right(), "%u %%: the kernel works", percent);
    unregister_kprobes(share.pointers, share.count);
    ktest_report(text_sum() == before, "%u %%: the text is as it was", percent);
}

KTEST(region, any_density_in_and_out)
{
    share_begin();
    optimize_set_method(OPTIMIZE_REGION);
    one_density(1, 85);
    if (ktest_count(0, 1)) {
        one_density(10, 70);
        one_density(50, 40);
    }
    optimize_set_method(OPTIMIZE_OFF);
    share_end();
}
