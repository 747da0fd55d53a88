/* test_optimize.c - tests of stages 11 and 12: which bytes are written, in which order
 * sites become jumps and breakpoints, and what happens without memory.
 */
#include "probes/jump/optimize.h"

#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/pad.h"
#include "probes/jump/retired.h"
#include "probes/region/region.h"
#include "probes/text/text_phases.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/symbol_list.h"

/* One long instruction, then short ones. The jump at a short instruction reads bytes of
 * the next ones.
 */
#define FUNCTION                                                                         \
    "48 c7 c0 01 00 00 00 50 5b 48 89 d8 31 c9 90 c3 0f 1f 44 00 00 0f 1f 44 00 00"
static uintptr_t text;
static const unsigned offs[] = { 0, 7, 8, 9, 12, 14, 15 };
#define COUNT (sizeof(offs) / sizeof(offs[0]))
static struct kprobe probes[COUNT];
static struct kprobe *pointers[COUNT];

static void start(void)
{
    fake_start();
    text = fake_function("fn", FUNCTION);
    for (size_t i = 0; i < COUNT; i++) {
        probes[i] = (struct kprobe){ .addr = text + offs[i], .pre_handler = no_pre };
        pointers[i] = &probes[i];
    }
    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
}

static void end(void)
{
    for (size_t i = 0; i < COUNT; i++)
        if (probes[i].site)
            CHECK_EQ(unregister_kprobe(&probes[i]), 0);
    fake_end();
}

static uint8_t byte_at(uintptr_t addr)
{
    return *(const uint8_t *)addr;
}

static bool is_jump(size_t i)
{
    return probes[i].site && probes[i].site->state == SITE_OPTIMIZED;
}

static size_t jumps(void)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT; i++)
        n += is_jump(i);
    return n;
}

/* lands - decode the text at probes[i]: is there a jump that leads to the detour of the
 * site, directly or by a pad?
 */
static bool lands(size_t i)
{
    uint8_t bytes[INSN_MAX_LEN];
    struct insn insn;

    if (plat_text_read(bytes, probes[i].addr, sizeof(bytes)) ||
        insn_decode(&insn, bytes, sizeof(bytes), probes[i].addr) ||
        insn.kind != INSN_JMP_REL)
        return false;
    return insn.target == (uintptr_t)site_detour(probes[i].site) ||
           pad_target(insn.target) == (uintptr_t)site_detour(probes[i].site);
}

UNIT_TEST(one_waits_for_the_thread)
{
    unsigned kicks = fake.kicks;

    CHECK_EQ(register_kprobe(&probes[0]), 0);
    CHECK_EQ(byte_at(text), 0xcc);
    CHECK_EQ(fake.kicks, kicks + 1);
    optimize_run();
    CHECK(is_jump(0) && lands(0));
    CHECK(probes[0].flags & KPROBE_FLAG_OPTIMIZED);
    optimize_run();
    CHECK(is_jump(0));
    CHECK_EQ(unregister_kprobe(&probes[0]), 0);
    CHECK(fake_text_is_original());
    CHECK_EQ(probes[0].flags, 0);
}

UNIT_TEST(a_hit_before_the_jump_is_written_runs_the_copy)
{
    struct pt_regs regs = fake_regs();

    CHECK_EQ(register_kprobe(&probes[0]), 0);
    CHECK(!is_jump(0));
    CHECK(fake_int3(&regs, probes[0].addr));
    CHECK_EQ(regs.ip, (uintptr_t)probes[0].site->boost_slot);
    CHECK(!(regs.flags & FLAGS_TF)); /* no step */
    CHECK_EQ(kprobe_hits(&probes[0]), 1);
    CHECK_EQ(fake_totals().ran[WAY_BOOST], 1);
    optimize_run();
    CHECK(is_jump(0));
}

UNIT_TEST(a_disabled_probe_shows_no_jump)
{
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    optimize_run();
    CHECK_EQ(probes[0].flags, KPROBE_FLAG_OPTIMIZED);
    CHECK_EQ(disable_kprobe(&probes[0]), 0);
    CHECK_EQ(probes[0].flags, KPROBE_FLAG_DISABLED);
    CHECK_EQ(enable_kprobe(&probes[0]), 0);
    optimize_run();
    CHECK_EQ(probes[0].flags, KPROBE_FLAG_OPTIMIZED);
}

/* H80: at boot there is no thread yet that could run the optimizer. */
UNIT_TEST(h80_before_there_is_a_thread_it_waits)
{
    for (size_t i = 0; i < COUNT; i++) {
        struct pt_regs regs = fake_regs();
        unsigned kicks = fake.kicks;

        CHECK_EQ(register_kprobe(&probes[i]), 0);
        CHECK(!is_jump(i) && fake.kicks == kicks + 1);
        CHECK(fake_int3(&regs, probes[i].addr));
        CHECK_EQ(kprobe_hits(&probes[i]), 1);
    }
    CHECK_EQ(disable_kprobe(&probes[1]), 0);
    CHECK_EQ(unregister_kprobe(&probes[2]), 0);
    optimize_run(); /* as the thread does when it starts */
    CHECK_EQ(jumps(), COUNT - 2);
}

UNIT_TEST(a_set_comes_as_jumps)
{
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    CHECK_EQ(jumps(), COUNT);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(lands(i));
}

static size_t smallest_batch;

static void look_at_size(const struct text_phase *p)
{
    if (p->count < smallest_batch)
        smallest_batch = p->count;
}

UNIT_TEST(all_that_wait_come_in_one_batch)
{
    unsigned quiesces;

    for (size_t i = 0; i < COUNT; i++)
        CHECK_EQ(register_kprobe(&probes[i]), 0);
    CHECK_EQ(jumps(), 0);
    quiesces = fake.quiesces;
    smallest_batch = SIZE_MAX;
    fake_watch_phases(look_at_size);
    optimize_run();
    fake_watch_phases(NULL);
    CHECK_EQ(jumps(), COUNT);
    CHECK(smallest_batch >= COUNT && smallest_batch != SIZE_MAX);
    CHECK(fake.quiesces == quiesces);
}

/* While a thread is on a pad or in a detour, in front of the copy, its ip counts as the
 * address of the instruction.
 */
UNIT_TEST(an_ip_behind_a_jump_is_at_its_instruction)
{
    size_t pads = 0;

    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    for (size_t i = 0; i < COUNT; i++) {
        const struct site *site = probes[i].site;
        uintptr_t pad = site_pad(site);

        CHECK_EQ(copy_original((uintptr_t)site_detour(site)), site->addr);
        if (pad)
            CHECK_EQ(copy_original(pad), site->addr);
        pads += pad != 0;
    }
    CHECK(pads > 0);
}

/* When bytes change that a jump reads, the site remains a jump. The site of the new probe
 * becomes a jump at once.
 */
UNIT_TEST(a_reader_remains_a_jump)
{
    CHECK_EQ(register_kprobe(&probes[3]), 0);
    optimize_run();
    CHECK(is_jump(3));
    CHECK(unoptimize_reader(probes[4].addr) == probes[3].site);
    CHECK_EQ(register_kprobe(&probes[4]), 0);
    CHECK(is_jump(4) && lands(4));
    CHECK(is_jump(3) && lands(3));
    CHECK_EQ(disable_kprobe(&probes[4]), 0);
    CHECK(is_jump(3) && lands(3));
    CHECK_EQ(enable_kprobe(&probes[4]), 0);
    CHECK_EQ(unregister_kprobe(&probes[4]), 0);
    CHECK(is_jump(3) && lands(3));
}

UNIT_TEST(when_its_bytes_have_changed_it_is_asked_again)
{
    unsigned kicks;

    CHECK_EQ(register_kprobe(&probes[0]), 0);
    optimize_run();
    kicks = fake.kicks;
    plat_lock(PLAT_PROBES);
    unoptimize_around(&probes[0].site, 1);
    plat_unlock(PLAT_PROBES);
    CHECK(!is_jump(0));
    CHECK(fake.kicks > kicks);
    optimize_run();
    CHECK(is_jump(0));
}

static void no_refusal(struct kprobe *p UNUSED, const struct probe_reject *why,
                       void *unused UNUSED)
{
    unit_check(false, __func__, 0, why->why);
}

/* While a debugger holds the machine, its breakpoint comes among jumps. These become
 * breakpoints, because a new place for a jump would need a wait. An old pad, which waits for
 * quiescence, stays. Later all are jumps.
 */
UNIT_TEST(while_the_machine_is_held_nothing_waits)
{
    struct kprobe *p = &probes[3];
    struct site_list list;
    unsigned kicks, quiesces;

    CHECK_EQ(register_kprobe(&probes[1]), 0);
    optimize_run();
    CHECK_EQ(register_kprobe(&probes[2]), 0);
    CHECK(retired_pending() && unoptimize_reader(p->addr));
    kicks = fake.kicks;
    quiesces = fake.quiesces;
    fake.context = PLAT_HELD;
    CHECK_EQ(register_kprobe(p), -EDEADLK);
    site_list_make(&list, 1, NULL);
    CHECK_EQ(register_some(&p, 1, &list, 0, no_refusal, NULL), 1);
    site_list_free(&list);
    CHECK_EQ(jumps(), 0);
    CHECK_EQ(byte_at(p->addr), 0xcc);
    CHECK_EQ(fake.kicks, kicks);
    CHECK_EQ(fake.quiesces, quiesces);
    fake.context = PLAT_THREAD;
    optimize_run();
    CHECK_EQ(jumps(), 3);
}

static size_t strays;

/* look_for_strays - count the sites with a jump in the text that does not lead to the
 * detour of the site.
 */
static void look_for_strays(const struct text_phase *p)
{
    for (size_t i = 0; p->cpus && i < COUNT; i++) {
        uint8_t first = byte_at(probes[i].addr);

        strays += first != 0xcc && first != probes[i].site->bytes[0] && !lands(i);
    }
}

/* While the bytes that a jump reads are changing, its first byte is an int3. This holds
 * for a jump that stays as it is, and for one that is moved.
 */
UNIT_TEST(no_jump_leads_elsewhere_on_the_way)
{
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    strays = 0;
    fake_watch_phases(look_for_strays);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(disable_kprobe(&probes[i]), 0);
        CHECK_EQ(enable_kprobe(&probes[i]), 0);
        optimize_run();
    }
    for (size_t i = 0; i < COUNT; i += 2)
        CHECK_EQ(disable_kprobe(&probes[i]), 0);
    for (size_t i = 0; i < COUNT; i += 2)
        CHECK_EQ(enable_kprobe(&probes[i]), 0);
    optimize_run();
    CHECK_EQ(jumps(), COUNT);
    fake_watch_phases(NULL);
    CHECK_EQ(strays, 0);
}

static bool seen_whole;

/* look_at_detour - has there been a synchronisation when the detour was written, but of
 * the jump only the guard?
 */
static void look_at_detour(void)
{
    const struct site *site = probes[0].site;

    seen_whole |= site_detour(site) && *site_detour(site) != INSN_INT3 &&
                  byte_at(text) == INSN_INT3 && byte_at(text + 1) == site->bytes[1];
}

UNIT_TEST(a_detour_is_whole_for_all_before_a_jump_leads_there)
{
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    seen_whole = false;
    fake.on_sync = look_at_detour;
    optimize_run();
    fake.on_sync = NULL;
    CHECK(is_jump(0) && seen_whole);
}

static bool seen_watched;

static void look_at_watched(void)
{
    uintptr_t addr = probes[1].addr;

    seen_watched |= byte_at(addr) == INSN_INT3 && region_is_watched(addr + 1) &&
                    region_is_watched(addr + INSN_JMP32_LEN - 1);
    fake.on_quiesce = look_at_watched;
}

UNIT_TEST(inside_of_a_region_they_are_waited_for)
{
    CHECK_EQ(optimize_set_method(OPTIMIZE_REGION), 0);
    CHECK_EQ(register_kprobe(&probes[1]), 0);
    seen_watched = false;
    fake.on_quiesce = look_at_watched;
    optimize_run();
    fake.on_quiesce = NULL;
    CHECK(is_jump(1) && seen_watched);
    CHECK(!region_is_watched(probes[1].addr + 1));
}

/* A jump that gets another pad keeps the old one until no thread can be on it. */
UNIT_TEST(its_old_pad_is_freed_after_quiescence)
{
    uintptr_t pad;

    CHECK_EQ(register_kprobe(&probes[1]), 0);
    optimize_run();
    pad = site_pad(probes[1].site);
    fake.quiesces = 0;
    CHECK_EQ(register_kprobe(&probes[2]), 0);
    CHECK(is_jump(1) && site_pad(probes[1].site) != pad);
    CHECK_EQ(fake.quiesces, 0);
    CHECK_EQ(pad_target(pad), (uintptr_t)site_detour(probes[1].site));
    optimize_run();
    CHECK(fake.quiesces > 0);
    CHECK_EQ(pad_target(pad), 0);
}

/* in_order - register all probes one by one, in the order @come, and unregister them one
 * by one, in the order @go. @runs: the optimizer runs after each
 */
static void in_order(const size_t *come, const size_t *go, bool runs)
{
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(register_kprobe(&probes[come[i]]), 0);
        if (runs)
            optimize_run();
    }
    optimize_run();
    CHECK_EQ(jumps(), COUNT);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(lands(i));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(unregister_kprobe(&probes[go[i]]), 0);
        if (runs)
            optimize_run();
        for (size_t j = 0; j < COUNT; j++)
            CHECK(!is_jump(j) || lands(j));
    }
}

UNIT_TEST(any_order_in_and_out)
{
    static const size_t orders[][COUNT] = { { 0, 1, 2, 3, 4, 5, 6 },
                                            { 6, 5, 4, 3, 2, 1, 0 },
                                            { 3, 0, 5, 1, 6, 2, 4 },
                                            { 2, 4, 6, 1, 3, 5, 0 } };

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        for (size_t j = 0; j < sizeof(orders) / sizeof(orders[0]); j++) {
            start();
            in_order(orders[i], orders[j], (i + j) % 2);
            fake_end();
        }
}

UNIT_TEST(switched_off_all_are_breakpoints_at_once)
{
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    CHECK_EQ(optimize_switch(false), 0);
    CHECK(!optimize_is_on());
    CHECK_EQ(jumps(), 0);
    CHECK_BYTES((const uint8_t *)text, "cc c7 c0 01 00 00 00 cc cc cc 89 d8 cc c9 cc cc");
    CHECK_EQ(optimize_switch(true), 0);
    CHECK_EQ(jumps(), COUNT);
    CHECK_EQ(optimize_set_method(OPTIMIZE_OFF), 0);
    CHECK_EQ(jumps(), 0);
}

UNIT_TEST(pads_are_freed_only_after_quiescence)
{
    size_t pads;

    CHECK_EQ(register_kprobe(&probes[1]), 0);
    optimize_run();
    pads = pad_count();
    CHECK_EQ(pads, 1);
    CHECK_EQ(disable_kprobe(&probes[1]), 0);
    CHECK_EQ(pad_count(), 1);
    fake.quiesces = 0;
    CHECK_EQ(unregister_kprobe(&probes[1]), 0);
    CHECK_EQ(fake.quiesces, 1);
    CHECK_EQ(pad_count(), 0);
}

UNIT_TEST(a_second_probe_gets_the_handlers_called)
{
    struct kprobe second;

    probes[0].pre_handler = NULL;
    second = (struct kprobe){ .addr = text, .pre_handler = no_pre };
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    optimize_run();
    CHECK_EQ(detour_kind_wanted(probes[0].site), DETOUR_PROGRAM);
    CHECK_EQ(register_kprobe(&second), 0);
    CHECK_EQ(byte_at(text), 0xcc);
    optimize_run();
    CHECK_EQ(detour_kind_wanted(probes[0].site), DETOUR_CALL);
    CHECK(is_jump(0) && lands(0));
    CHECK(second.flags & KPROBE_FLAG_OPTIMIZED);
    CHECK_EQ(unregister_kprobe(&probes[0]), 0);
    CHECK_EQ(unregister_kprobe(&second), 0);
}

/* Of two counters, one comes first in the code. Without the other one its code is the
 * same, as far as it goes: no flags are saved in front of an instruction that writes them.
 */
UNIT_TEST(the_code_of_a_counter_that_leaves_goes_as_well)
{
    uintptr_t sums = fake_function("sums", "48 81 c1 01 00 00 00 c3");

    for (size_t leaves = 0; leaves < 2; leaves++) {
        for (size_t i = 0; i < 2; i++) {
            probes[i] = (struct kprobe){ .addr = sums };
            CHECK_EQ(register_kprobe(&probes[i]), 0);
        }
        optimize_run();
        CHECK(is_jump(0));
        CHECK_EQ(unregister_kprobe(&probes[leaves]), 0);
        CHECK_EQ(byte_at(sums), 0xcc);
        CHECK_EQ(unregister_kprobe(&probes[!leaves]), 0);
    }
}

UNIT_TEST(the_code_of_a_program_that_is_exchanged_goes_as_well)
{
    static struct kprobe_op ops[2] = { KPROBE_COUNT(0), KPROBE_COUNT(1) };
    struct kprobe_program program[2];

    for (size_t i = 0; i < 2; i++)
        program[i] = (struct kprobe_program){ &ops[i], 1, .words = 2 };
    probes[0] = (struct kprobe){ .addr = text, .program = &program[0] };
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    optimize_run();
    CHECK(is_jump(0) && detour_is_current(probes[0].site));
    CHECK_EQ(
        kprobe_exchange(&(struct kprobe_exchange){ &probes[0], &program[1], NULL }, 1),
        0);
    CHECK(!is_jump(0) || detour_is_current(probes[0].site));
    CHECK_EQ(unregister_kprobe(&probes[0]), 0);
    kprobe_program_end(&program[0]);
}

/* A detour for several probes counts hits for the first one. Each of them may become the
 * first one, so each needs a counter.
 */
UNIT_TEST(a_probe_that_joins_a_jump_has_a_counter)
{
    struct kprobe others[3];

    for (size_t i = 0; i < 3; i++)
        others[i] = (struct kprobe){ .addr = text, .pre_handler = no_pre };
    CHECK_EQ(register_kprobe(&others[0]), 0);
    CHECK_EQ(register_kprobe(&others[1]), 0);
    optimize_run();
    fake_fail_at(1);
    for (unsigned n = 2; register_kprobe(&others[2]); n++) {
        CHECK_EQ(others[2].counter, 0);
        fake_fail_at(n);
    }
    fake_fail_at(0);
    CHECK_EQ(others[0].site->state, SITE_OPTIMIZED);
    CHECK(others[2].counter && others[2].counter != others[1].counter);
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ(unregister_kprobe(&others[i]), 0);
}

/* expect_left - unregister or disable the second of two probes that are counted at a place:
 * while it is a jump, the code of its detour counts for both.
 */
static void expect_left(bool disabled)
{
    struct kprobe second = { .addr = text };

    probes[0] = second;
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    CHECK_EQ(register_kprobe(&second), 0);
    optimize_run();
    CHECK(is_jump(0));
    CHECK_EQ(disabled ? disable_kprobe(&second) : unregister_kprobe(&second), 0);
    CHECK(!is_jump(0)); /* before the verb returns, nothing leads there any more */
    optimize_run();
    CHECK(is_jump(0) && lands(0));
    if (disabled)
        CHECK_EQ(unregister_kprobe(&second), 0);
    CHECK_EQ(unregister_kprobe(&probes[0]), 0);
}

UNIT_TEST(a_probe_that_leaves_a_jump_is_counted_there_no_more)
{
    expect_left(false);
    expect_left(true);
}

/* ---- sites that become no jumps, and the reasons ---- */

static bool lacks_memory(size_t i)
{
    switch (jump_site(probes[i].site)->jump_why) {
    case PROBE_NO_MEMORY:
    case PROBE_NO_SLOT:
    case PROBE_NO_PAGE:
        return true;
    default:
        return false;
    }
}

static void run_without_memory(unsigned n, bool *failed)
{
    fake_fail_at(n);
    optimize_run();
    *failed = fake_failed();
    fake_fail_at(0);
}

/* Whichever allocation fails, each probe is a breakpoint or a jump, and no memory is
 * lost.
 */
UNIT_TEST(without_memory_they_stay_breakpoints)
{
    bool failed = true;

    for (unsigned n = 1; n < 200 && failed; n++) {
        start();
        for (size_t i = 0; i < COUNT; i++)
            CHECK_EQ(register_kprobe(&probes[i]), 0);
        run_without_memory(n, &failed);
        for (size_t i = 0; i < COUNT; i++)
            CHECK(is_jump(i) ? lands(i)
                             : byte_at(probes[i].addr) == 0xcc && lacks_memory(i));
        CHECK_EQ(unregister_kprobe(&probes[6]), 0); /* so the optimizer tries again */
        optimize_run();
        CHECK_EQ(jumps(), COUNT - 1);
        CHECK_EQ(unregister_kprobes(pointers, COUNT - 1), 0);
        CHECK(fake_text_is_original());
        fake_end();
    }
    CHECK(!failed);
}

UNIT_TEST(without_memory_there_are_no_regions_either)
{
    bool failed = true;

    for (unsigned n = 1; n < 200 && failed; n++) {
        start();
        CHECK_EQ(optimize_set_method(OPTIMIZE_REGION), 0);
        CHECK_EQ(register_kprobe(&probes[1]), 0);
        run_without_memory(n, &failed);
        CHECK(is_jump(1) || (byte_at(probes[1].addr) == 0xcc && lacks_memory(1)));
        CHECK(is_jump(1) == !failed);
        CHECK_EQ(unregister_kprobe(&probes[1]), 0);
        CHECK(fake_text_is_original());
        fake_end();
    }
    CHECK(!failed);
}

/* Two of these six jumps would have the same displacement, with pads that overlap; see
 * docs/optimize.md.
 */
UNIT_TEST(where_no_pad_can_be_one_stays_a_breakpoint)
{
    size_t stay = 0;

    text = fake_function("row", "f8 f8 f8 f8 f8 f8 b8 01 00 00 00 c3");
    for (size_t i = 0; i < 6; i++) {
        probes[i].addr = text + i;
        CHECK_EQ(register_kprobe(&probes[i]), 0);
    }
    optimize_run();
    for (size_t i = 0; i < 6; i++) {
        enum probe_reason why = (enum probe_reason)jump_site(probes[i].site)->jump_why;

        CHECK(is_jump(i) ? !why : why == PROBE_NO_LANDING || why == PROBE_PADS_TAKEN);
        CHECK(is_jump(i) ? lands(i) : byte_at(text + i) == 0xcc);
        stay += !is_jump(i);
    }
    CHECK_EQ(stay, 1);
}

static void refuse(size_t i)
{
    plat_lock(PLAT_PROBES);
    optimize_refuse(probes[i].site, PROBE_PADS_TAKEN);
    plat_unlock(PLAT_PROBES);
}

UNIT_TEST(refused_it_waits_until_something_goes)
{
    struct optimize_stats stats;

    CHECK_EQ(register_kprobe(&probes[0]), 0);
    CHECK_EQ(register_kprobe(&probes[6]), 0);
    refuse(0);
    optimize_run();
    CHECK(!is_jump(0) && is_jump(6));
    optimize_stats_get(&stats);
    CHECK_EQ(stats.refused, 1);
    CHECK_EQ(unregister_kprobe(&probes[6]), 0);
    optimize_run();
    CHECK(is_jump(0));
}

/* The refused jump would read an instruction whose bytes change twice: to a jump, and
 * back. Both times the refused site waits again.
 */
UNIT_TEST(refused_it_is_asked_again_when_what_it_would_read_changes)
{
    struct optimize_stats stats;

    CHECK_EQ(register_kprobe(&probes[1]), 0);
    refuse(1);
    optimize_run();
    CHECK(!is_jump(1));
    CHECK_EQ(register_kprobe(&probes[2]), 0);
    optimize_run();
    CHECK(is_jump(1) && is_jump(2));
    CHECK_EQ(unregister_kprobe(&probes[1]), 0);
    CHECK_EQ(register_kprobe(&probes[1]), 0);
    refuse(1);
    CHECK_EQ(disable_kprobe(&probes[2]), 0);
    optimize_run();
    CHECK(is_jump(1) && lands(1));
    optimize_stats_get(&stats);
    CHECK_EQ(stats.refused, 0);
}

/* When a waiting site becomes a jump, bytes change that the jump of the refused site
 * would read.
 */
UNIT_TEST(refused_it_is_asked_again_with_those_that_wait)
{
    CHECK_EQ(register_kprobe(&probes[1]), 0);
    CHECK_EQ(register_kprobe(&probes[2]), 0);
    refuse(1);
    optimize_run();
    CHECK(is_jump(1) && is_jump(2));
}

/* ---- more sites than one batch takes ---- */

/* ADDs of four bytes: each jump reads the first byte of the next one. These are three
 * batches.
 */
#define MANY 4200

static struct kprobe many[MANY];
static struct kprobe *many_pointers[MANY];

static void start_many(void)
{
    static char hex[MANY * 12 + sizeof("c3 ") * 16];
    char *end = hex;

    for (size_t i = 0; i < MANY; i++)
        end += sprintf(end, "48 83 c0 01 ");
    for (size_t i = 0; i < 16; i++)
        end += sprintf(end, "c3 ");
    text = fake_function("many", hex);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = (struct kprobe){ .addr = text + 4 * i };
        many_pointers[i] = &many[i];
    }
    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    CHECK_EQ(register_kprobes(many_pointers, MANY), 0);
}

static size_t many_jumps(void)
{
    size_t n = 0;

    for (size_t i = 0; i < MANY; i++)
        n += many[i].site->state == SITE_OPTIMIZED;
    return n;
}

/* look_for_strays_of_many - as look_for_strays() for many[], but faster. */
static void look_for_strays_of_many(const struct text_phase *p)
{
    for (size_t i = 0; p->cpus && i < MANY; i++) {
        const struct site *site = many[i].site;
        const uint8_t *at = (const uint8_t *)site->addr;
        uintptr_t target, end = site->addr + jump_site(site)->jump_span;
        int32_t disp;

        if (at[0] == INSN_INT3 || at[0] == site->bytes[0])
            continue;
        memcpy(&disp, (const void *)(end - sizeof(disp)), sizeof(disp));
        target = end + (uintptr_t)(intptr_t)disp;
        strays += target != (uintptr_t)site_detour(site) &&
                  pad_target(target) != (uintptr_t)site_detour(site);
    }
}

UNIT_TEST(where_many_read_each_other_the_lowest_goes_first)
{
    struct site *last;

    start_many();
    CHECK_EQ(many_jumps(), MANY);
    last = many[MANY - 1].site;
    strays = 0;
    fake_watch_phases(look_for_strays_of_many);
    plat_lock(PLAT_PROBES);
    unoptimize_around(&last, 1);
    plat_unlock(PLAT_PROBES);
    fake_watch_phases(NULL);
    CHECK_EQ(strays, 0);
    CHECK_EQ(many_jumps(), 0);
    CHECK_EQ(unoptimize_jumps(), 0);
    for (size_t i = 0; i < MANY; i++)
        CHECK_EQ(byte_at(many[i].addr), INSN_INT3);
    CHECK_EQ(unregister_kprobes(many_pointers, MANY), 0);
}

/* When the last jump is removed, all jumps in front of it are planned again, because each
 * reads a byte of the next one.
 */
UNIT_TEST(where_many_read_each_other_all_but_one_remain)
{
    start_many();
    strays = 0;
    fake_watch_phases(look_for_strays_of_many);
    CHECK_EQ(disable_kprobe(&many[MANY - 1]), 0);
    CHECK_EQ(many_jumps(), MANY - 1);
    CHECK_EQ(enable_kprobe(&many[MANY - 1]), 0);
    CHECK_EQ(many_jumps(), MANY);
    fake_watch_phases(NULL);
    CHECK_EQ(strays, 0);
    CHECK_EQ(unregister_kprobes(many_pointers, MANY), 0);
}

/* A jump at `push` is possible only if `lea` is evicted. But cells are farther away from
 * the operand of `lea` than the text is, so a copy of `lea` cannot reach it.
 */
UNIT_TEST(a_neighbour_whose_copy_would_not_reach_stays)
{
    const char *beyond = "55 48 8d 05 7d ff ff 7f c3",
               *before = "55 48 8d 05 7d 00 00 80 c3";
    struct kprobe p = { .pre_handler = no_pre }, *both[] = { &probes[0], &p };
    uintptr_t cells;
    size_t len;

    plat_exec_window(&cells, &len);
    p.addr = fake_function("far", cells < text ? beyond : before);
    CHECK_EQ(register_kprobes(both, 2), 0);
    CHECK(is_jump(0));
    CHECK_EQ(byte_at(p.addr), INSN_INT3);
    CHECK_EQ(jump_site(p.site)->jump_why, PROBE_NO_LANDING);
    CHECK_EQ(unregister_kprobes(both, 2), 0);
}

/* covers - how many bytes behind a function does the jump at its last instruction write?
 * @size:   bytes of @hex that are the function. The last one is the instruction
 * @target: offset of a byte that a branch leads to; 0: there is none
 */
static size_t covers(const char *hex, size_t size, size_t target)
{
    uintptr_t end;
    size_t n;

    boundary_forget();
    text = fake_bytes_at(hex);
    end = text + size;
    symbol_add("fn", text, size);
    if (target)
        fake_target(text + target);
    probes[0] = (struct kprobe){ .addr = end - 1, .pre_handler = no_pre };
    CHECK_EQ(register_kprobe(&probes[0]), 0);
    optimize_run();
    n = is_jump(0) ? jump_site(probes[0].site)->jump_len - 1u : 0;
    CHECK_EQ(unregister_kprobe(&probes[0]), 0);
    CHECK(fake_text_is_original());
    return n;
}

UNIT_TEST(a_jump_covers_filler_only_and_only_where_no_cpu_comes)
{
    CHECK(covers("31 c0 c3 90 90 90 90 90 90 90 90", 3, 0) >= 4);
    CHECK(covers("31 c0 c3 0f 1f 84 00 00 00 00 00", 3, 0) >= 4);
    CHECK(covers("31 c0 c3 cc cc cc cc cc cc cc cc", 3, 0) >= 4);
    CHECK_EQ(covers("31 c0 c3 b8 2a 00 00 00 c3 90 90", 3, 0), 0); /* code */
    CHECK_EQ(covers("31 c0 c3 2a 00 00 00 00 00 00 00", 3, 0), 0); /* a constant */
    CHECK(covers("31 c0 c3 90 90 b8 2a 00 00 00 c3", 3, 0) <= 2);
    CHECK_EQ(covers("31 c0 c3 90 90 90 90 90 90 90 90", 3, 3), 0);
    CHECK(covers("31 c0 c3 90 90 90 90 90 90 90 90", 3, 5) <= 2);
    CHECK_EQ(covers("31 c0 90 90 90 90 90 90 90 90 90", 3, 0), 0); /* it runs on */
}

UNIT_TESTS_BETWEEN(start, end)
