/* test_xmc.c - tests of xmc(): which exchanges are refused, the order in which bytes are
 * written, and the instruction that a CPU runs if it traps meanwhile.
 */
#include "probes/xmc/xmc.h"

#include "probes/core/registry.h"
#include "probes/core/text_poke.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/region/targets.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_phases.h"
#include "tests/unit/port_fake.h"

#define LEN_MAX 32

static uint8_t new_bytes[LEN_MAX];
static size_t new_len;
static struct probe_reject why;

/* ---- the function of each test ---- */

#define OLD "55 48 c7 c0 01 00 00 00 89 c8 c3 90 90 90 90 90" /* push mov mov ret */

static uintptr_t fn;
static bool is_exchanged; /* then the end of the test puts the original bytes back */

static void begin(void)
{
    fake_start();
    fn = fake_function("fn", OLD);
    is_exchanged = false;
}

static void end(void)
{
    if (is_exchanged)
        fake_text_put(fn, OLD);
    fake_end();
}

static void parse(const char *hex)
{
    for (new_len = 0; *hex; new_len++, hex += hex[2] ? 3 : 2)
        new_bytes[new_len] = (uint8_t)strtoul(hex, NULL, 16);
}

static int exchange(uintptr_t addr, const char *hex, enum xmc_mode mode)
{
    int err;

    parse(hex);
    why = (struct probe_reject){ 0 };
    err = xmc_why(addr, new_bytes, new_len, mode, &why);
    is_exchanged |= !err;
    return err;
}

/* ---- what is written ---- */

UNIT_TEST(int3_first_then_the_tail_then_the_first_byte)
{
    fake_log_start(fn + 8);
    CHECK_EQ(exchange(fn + 8, "31 db", XMC_INT3), 0);
    CHECK_STR(fake_log(), "header cell found sync int3 sync original sync original sync "
                          "quiesce lost sync clear free sync");
}

UNIT_TEST(one_becomes_several)
{
    CHECK_EQ(exchange(fn + 1, "31 c0 31 db 0f 1f 00", XMC_INT3), 0);
    CHECK_BYTES((const uint8_t *)fn, "55 31 c0 31 db 0f 1f 00 89 c8 c3");
    CHECK_EQ(exchange(fn + 3, "31 c9", XMC_INT3), 0); /* an instruction begins there */
    CHECK_BYTES((const uint8_t *)fn, "55 31 c0 31 c9 0f 1f 00 89 c8 c3");
}

UNIT_TEST(several_become_one)
{
    CHECK_EQ(exchange(fn, "0f 1f 84 00 00 00 00 00", XMC_INT3), 0);
    CHECK_BYTES((const uint8_t *)fn, "0f 1f 84 00 00 00 00 00 89 c8 c3");
}

UNIT_TEST(or_one_that_goes_elsewhere)
{
    CHECK_EQ(exchange(fn + 1, "eb 05 31 c0 31 db 90", XMC_INT3), 0);
    CHECK_BYTES((const uint8_t *)fn, "55 eb 05 31 c0 31 db 90 89 c8 c3");
    CHECK(targets_inside(fn + 8, fn + 9)); /* xmc() has added the target */
    CHECK(!targets_inside(fn + 9, fn + 10));
    /* The same exchange again does not add the target a second time. */
    CHECK_EQ(exchange(fn + 1, "eb 05 31 c0 31 db 90", XMC_INT3), 0);
    CHECK_EQ(exchange(fn + 1, "90 90", XMC_INT3), 0);
    CHECK(!targets_inside(fn + 8, fn + 9));
}

/* ---- targets of the new instructions ---- */

static bool leads_to(uintptr_t addr)
{
    return targets_inside(addr, addr + 1);
}

UNIT_TEST(what_the_build_knows_stays)
{
    uintptr_t code = fake_function("code", "eb 01 90 31 c0 c3 90 90");

    fake_target(code + 3);
    CHECK_EQ(exchange(code, "31 c9", XMC_INT3), 0);
    CHECK(leads_to(code + 3)); /* the build may have found other jumps to it */
    CHECK_EQ(exchange(code, "eb 01", XMC_INT3), 0);
    CHECK(fake_text_is_original());
    CHECK(targets_remove(code, code + 3));
}

/* Code may jump to an address that an instruction has as its operand. */
UNIT_TEST(addresses_that_are_taken_count)
{
    uintptr_t code =
        fake_function("code", "48 b8 01 02 03 04 05 06 07 08 48 8d 05 00 f0 ff 7f c3");
    char lea[] = "48 8d 05 00 00 00 00", mov[64] = "48 b8";

    for (unsigned i = 0; i < 8; i++)
        snprintf(mov + strlen(mov), 4, " %02x", (uint8_t)((code + 3) >> (8 * i)));
    CHECK_EQ(exchange(code, mov, XMC_INT3), 0);
    CHECK(leads_to(code + 3));
    CHECK_EQ(exchange(code + 10, lea, XMC_INT3), 0);
    CHECK(leads_to(code + 17));
    CHECK_EQ(exchange(code, "48 b8 01 02 03 04 05 06 07 08", XMC_INT3), 0);
    CHECK_EQ(exchange(code + 10, "48 8d 05 00 f0 ff 7f", XMC_INT3), 0);
    CHECK(!targets_inside(code, code + 18));
}

UNIT_TEST(by_a_single_store_as_well)
{
    uintptr_t code = fake_function("code", "90 90 31 c0 90 c3 90 90");

    CHECK_EQ(exchange(code + 2, "eb 01", XMC_STORE), 0);
    CHECK(leads_to(code + 5));
    CHECK_EQ(exchange(code + 2, "31 c0", XMC_STORE), 0);
    CHECK(!leads_to(code + 5));
}

UNIT_TEST(each_engine_does_it)
{
    for (size_t i = 0; i < text_engine_count; i++) {
        text_engine_set(text_engines[i]);
        CHECK_EQ(exchange(fn + 1, "48 c7 c0 02 03 00 00", XMC_INT3), 0);
        CHECK_BYTES((const uint8_t *)fn, "55 48 c7 c0 02 03 00 00 89 c8 c3");
        fake_text_put(fn, OLD);
    }
}

UNIT_TEST(the_short_form_asks_no_more)
{
    static const uint8_t code[] = { 0x31, 0xdb };

    is_exchanged = true;
    CHECK_EQ(xmc(fn + 8, code, 2), 0);
    CHECK_BYTES((const uint8_t *)fn + 8, "31 db c3");
    CHECK_EQ(xmc(fn + 9, code, 2), -EILSEQ);
}

/* ---- CPUs that trap meanwhile ---- */

static uintptr_t trap_at;
static struct {
    uintptr_t ip;
    uint64_t sp;
    uint8_t copy[8];
    unsigned count;
} trapped;

/* trap - let another CPU run into the int3, when the new bytes are behind it. */
static void trap(const struct text_phase *p)
{
    struct pt_regs regs = fake_regs();

    if (!p->cpus || p->step != TEXT_POKE_TAIL || trapped.count)
        return;
    trapped.count++;
    CHECK(fake_int3(&regs, trap_at));
    trapped.ip = regs.ip;
    trapped.sp = regs.sp;
    if (plat_exec_contains(regs.ip))
        memcpy(trapped.copy, (const void *)regs.ip, sizeof(trapped.copy));
}

static void exchange_trapping(uintptr_t at, const char *hex)
{
    memset(&trapped, 0, sizeof(trapped));
    trap_at = at;
    fake_watch_phases(trap);
    CHECK_EQ(exchange(at, hex, XMC_INT3), 0);
    fake_watch_phases(NULL);
    CHECK_EQ(trapped.count, 1);
}

UNIT_TEST(it_runs_the_new_one)
{
    exchange_trapping(fn + 1, "48 c7 c0 02 03 00 00");
    CHECK_BYTES(trapped.copy, "48 c7 c0 02 03 00 00 e9");
}

/* ---- several old instructions, with threads between them ---- */

static uintptr_t watched_from;
static unsigned quiesced;

static void look_inside(void)
{
    CHECK_BYTES((const uint8_t *)watched_from, "cc 48 c7 c0 01 00 00 00 89");
    CHECK(!xmc_is_inside(watched_from));
    for (uintptr_t ip = watched_from + 1; ip < watched_from + 8; ip++)
        CHECK(xmc_is_inside(ip));
    CHECK(!xmc_is_inside(watched_from + 8));
    quiesced++;
}

UNIT_TEST(those_are_waited_for_behind_the_int3)
{
    watched_from = fn;
    quiesced = 0;
    fake.on_quiesce = look_inside;
    CHECK_EQ(exchange(fn, "0f 1f 84 00 00 00 00 00", XMC_INT3), 0);
    CHECK_EQ(quiesced, 1);
    CHECK_EQ(fake.quiesces, 2);
    CHECK(!xmc_is_inside(fn + 1));
}

/* ---- under probes ---- */

static unsigned hits;

static int count_hit(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    hits++;
    return 0;
}

static void count_step(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                       unsigned long flags UNUSED)
{
}

static void check_hit(uintptr_t at, const char *copy)
{
    struct pt_regs regs = fake_regs();
    unsigned before = hits;

    CHECK(fake_int3(&regs, at));
    CHECK_EQ(hits, before + 1);
    CHECK(plat_exec_contains(regs.ip));
    CHECK_BYTES((const uint8_t *)regs.ip, copy);
}

UNIT_TEST(probes_stay_and_the_new_one_runs)
{
    struct kprobe p = { .addr = fn + 1, .pre_handler = count_hit },
                  post = { .addr = fn + 1, .post_handler = count_step };

    CHECK_EQ(register_kprobe(&p), 0);
    check_hit(fn + 1, "48 c7 c0 01 00 00 00 e9");
    CHECK_EQ(exchange(fn + 1, "48 c7 c0 02 03 00 00", XMC_INT3), 0);
    CHECK_BYTES((const uint8_t *)fn, "55 cc c7 c0 02 03 00 00 89 c8 c3");
    CHECK(registry_find(fn + 1) == p.site && registry_count() == 1);
    check_hit(fn + 1, "48 c7 c0 02 03 00 00 e9");
    CHECK_EQ(p.hits, 2);
    CHECK_EQ(register_kprobe(&post), 0);
    CHECK_EQ(exchange(fn + 1, "48 c7 c0 04 05 00 00", XMC_INT3), 0);
    check_hit(fn + 1, "48 c7 c0 04 05 00 00 cc"); /* the copy for steps, and an int3 */
    CHECK_EQ(unregister_kprobe(&post), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)fn, "55 48 c7 c0 04 05 00 00 89 c8 c3");
    CHECK_EQ(registry_count(), 0);
}

/* An emulated instruction has no copy for steps; the one that it becomes may need it. */
UNIT_TEST(a_post_handler_stays_whatever_the_instruction_was)
{
    struct kprobe p = { .addr = fn + 8,
                        .pre_handler = count_hit,
                        .post_handler = count_step };

    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(exchange(fn + 8, "eb 00", XMC_INT3), 0);
    CHECK_EQ(exchange(fn + 8, "31 db", XMC_INT3), 0);
    check_hit(fn + 8, "31 db cc");
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* The CPU that traps while the text changes is in no hit of the probe. */
static void exchange_unseen(struct kprobe *p, const char *hex)
{
    unsigned before = hits;

    exchange_trapping(fn + 8, hex);
    CHECK_EQ(hits, before);
    CHECK_EQ(p->hits, before);
    CHECK_BYTES((const uint8_t *)fn + 8, hex);
}

UNIT_TEST(a_probe_that_is_off_stays_off)
{
    struct kprobe p = { .addr = fn + 8, .pre_handler = count_hit };

    hits = 0;
    CHECK_EQ(register_kprobe(&p), 0);
    check_hit(fn + 8, "89 c8 e9"); /* the CPU knows the old site */
    CHECK_EQ(kprobes_switch(false), 0);
    exchange_unseen(&p, "31 c9");
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_EQ(kprobes_switch(true), 0);
    exchange_unseen(&p, "31 db");
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)fn + 8, "cc db c3");
    check_hit(fn + 8, "31 db e9");
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)fn + 8, "31 db c3");
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* A hit may have found the old site, and not have used it yet. Or its CPU is in the copy for
 * steps, and then finds the old site by this copy.
 */
static struct site *seen_before;

static void look_at_sites(void)
{
    const struct site *now = registry_find(trap_at);
    struct pt_regs regs = fake_regs();

    CHECK(fake_int3(&regs, (uintptr_t)seen_before->step_slot + seen_before->len));
    CHECK(now && now != seen_before);
    CHECK(seen_before->probes == now->probes); /* not freed before quiescence */
    CHECK_BYTES(seen_before->boost_slot, "48 c7 c0 01 00 00 00 e9");
    quiesced++;
}

UNIT_TEST(the_old_copy_stays_until_quiescence)
{
    struct kprobe p = { .addr = fn + 1, .post_handler = count_step };
    const struct probe_cpu *cpu = plat_this_cpu();

    CHECK_EQ(register_kprobe(&p), 0);
    seen_before = p.site;
    quiesced = 0;
    fake.on_quiesce = look_at_sites;
    trapped.count = 0;
    exchange_trapping(fn + 1, "48 c7 c0 02 03 00 00");
    CHECK_BYTES(trapped.copy, "48 c7 c0 02 03 00 00 cc");
    CHECK_EQ(quiesced, 1);
    for (size_t i = 0; i < PROBE_CACHE_LEN; i++) /* it is freed now */
        CHECK(!cpu->cache[i].addr || cpu->cache[i].site != seen_before);
    fake.on_quiesce = NULL;
    CHECK_EQ(unregister_kprobe(&p), 0);
}

/* A handler that has begun by the old site comes to the same instruction. */
static void hit_again(void)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct pt_regs outer = fake_regs(), inner = fake_regs();
    struct probe_hit *hit = hit_enter(cpu, seen_before, &outer, HIT_PRE);

    CHECK(registry_find(trap_at) != seen_before);
    CHECK(fake_int3(&inner, trap_at));
    hit_leave(cpu, hit, false);
    quiesced++;
}

UNIT_TEST(a_handler_of_the_old_site_does_not_hit_the_new_one)
{
    struct kprobe p = { .addr = fn + 8, .pre_handler = count_hit };
    unsigned before = hits;

    CHECK_EQ(register_kprobe(&p), 0);
    seen_before = p.site;
    quiesced = 0;
    trap_at = fn + 8;
    fake.on_quiesce = hit_again;
    CHECK_EQ(exchange(fn + 8, "31 c9", XMC_INT3), 0);
    CHECK_EQ(quiesced, 1);
    CHECK_EQ(hits, before);
    CHECK_EQ(p.missed[MISS_RECURSION], 1);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(a_jump_that_reads_the_bytes_is_planned_again)
{
    struct kprobe p = { .addr = fn + 8, .pre_handler = count_hit };

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    CHECK_EQ(register_kprobe(&p), 0);
    optimize_run();
    CHECK_EQ(jump_site(p.site)->jump_span, 5);
    CHECK_EQ(exchange(fn + 12, "99", XMC_INT3), 0);
    CHECK_EQ(p.site->state, SITE_ARMED); /* until the optimizer runs */
    CHECK_BYTES((const uint8_t *)fn + 8, "cc c8 c3 90 99 90");
    optimize_run();
    CHECK_EQ(p.site->state, SITE_OPTIMIZED);
    CHECK_EQ(((const uint8_t *)fn)[12], 0x99);
    CHECK_EQ(exchange(fn + 8, "31 db", XMC_INT3), 0); /* the probed instruction itself */
    check_hit(fn + 8, "31 db e9");
    optimize_run();
    CHECK_EQ(p.site->state, SITE_OPTIMIZED);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)fn + 8, "31 db c3 90 99 90");
}

/* ---- several places at once ---- */

static const uint8_t batch_bytes[][7] = { { 0x53 },
                                          { 0x48, 0xc7, 0xc0, 2, 3, 0, 0 },
                                          { 0x31, 0xdb } };

UNIT_TEST(all_places_take_as_many_steps_as_one)
{
    struct kprobe p = { .addr = fn + 1, .pre_handler = count_hit };
    struct xmc_change changes[] = { { fn, batch_bytes[0], 1 },
                                    { fn + 1, batch_bytes[1], 7 },
                                    { fn + 8, batch_bytes[2], 2 } };
    unsigned syncs;

    CHECK_EQ(exchange(fn + 8, "31 c9", XMC_INT3), 0);
    syncs = fake.syncs;
    CHECK_EQ(exchange(fn + 8, "89 c8", XMC_INT3), 0);
    syncs = fake.syncs - syncs;
    CHECK_EQ(register_kprobe(&p), 0);
    fake.syncs = 0;
    CHECK_EQ(xmc_batch(changes, 3, &why), 0);
    CHECK(fake.syncs <= syncs + 1); /* one more, before the caches of sites are emptied */
    CHECK_BYTES((const uint8_t *)fn, "53 cc c7 c0 02 03 00 00 31 db c3");
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)fn, "53 48 c7 c0 02 03 00 00 31 db c3");
}

UNIT_TEST(all_or_none)
{
    struct xmc_change cut[] = { { fn, batch_bytes[0], 1 },
                                { fn + 1, batch_bytes[1], 6 } },
                      twice[] = { { fn + 8, batch_bytes[2], 2 },
                                  { fn + 8, batch_bytes[2], 2 } };

    CHECK_EQ(xmc_batch(cut, 2, &why), -EILSEQ);
    CHECK_EQ(why.reason, PROBE_XMC_CUT);
    CHECK_EQ(xmc_batch(twice, 2, &why), -EEXIST);
    CHECK_EQ(xmc_batch(cut, 0, &why), 0);
    CHECK(fake_text_is_original());
    CHECK_EQ(registry_count(), 0);
}

/* ---- what is refused ---- */

static void expect(uintptr_t addr, const char *hex, enum probe_reason reason,
                   uintptr_t at)
{
    unsigned syncs = fake.syncs;
    int err = exchange(addr, hex, XMC_INT3);

    CHECK_EQ(why.reason, reason);
    CHECK_EQ(why.at, at);
    CHECK(err < 0 && err == why.err);
    CHECK_EQ(fake.syncs, syncs);
}

UNIT_TEST(no_boundary_no_text_no_function)
{
    uintptr_t loose = fake_bytes_at("90 90 90 90");

    expect(fn + 2, "90 90", PROBE_NOT_BOUNDARY, fn + 1);
    expect(fake_text_end(), "90", PROBE_NOT_TEXT, fake_text_end());
    expect(fake_text_end() - 1, "90 90", PROBE_NOT_TEXT, fake_text_end() - 1);
    expect(0, "90", PROBE_NOT_TEXT, 0);
    expect(UINTPTR_MAX - 3, "0f 1f 84 00 00 00 00 00", PROBE_NOT_TEXT, UINTPTR_MAX - 3);
    expect(loose, "90", PROBE_NO_FUNCTION, loose);
}

UNIT_TEST(nothing_blacklisted)
{
    uintptr_t core = fake_function("core", "90 90 c3"),
              entry = fake_function("entry", "90 90 c3");

    fake_nokprobe(core);
    fake_take_marks();
    fake_entry(entry, entry + 3);
    expect(core, "f3 90", PROBE_BLACKLISTED, core);
    expect(entry, "f3 90", PROBE_ENTRY_CODE, entry);
    expect(fake_exec_start(), "90", PROBE_NOT_TEXT, fake_exec_start());
}

UNIT_TEST(no_length_that_does_not_fit)
{
    uintptr_t last = fake_function("last", "31 c0 c3");

    fake_function("next", "90 90 c3");
    expect(fn, "", PROBE_XMC_LENGTH, fn);
    expect(fn, "90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 90", PROBE_XMC_LENGTH, fn);
    expect(fn + 1, "90", PROBE_XMC_CUT, fn + 2);
    expect(fn + 1, "31 c0 31 db 31 c9", PROBE_XMC_CUT, fn + 7);
    expect(fn, "31 c0", PROBE_XMC_CUT, fn + 2);
    CHECK(exchange(last + 2, "31 c0", XMC_INT3) < 0); /* beyond the end of the function */
}

UNIT_TEST(no_bytes_that_are_no_code)
{
    expect(fn + 1, "06 90 90 90 90 90 90", PROBE_XMC_CODE, fn + 1);
    expect(fn + 1, "90 90 90 90 90 90 e9", PROBE_XMC_CODE, fn + 7);
    expect(fn + 1, "31 c0 06 90 90 90 90", PROBE_XMC_CODE, fn + 3);
    CHECK_EQ(exchange(fn + 1, "06 90 90 90 90 90 90", XMC_INT3), -EILSEQ);
}

UNIT_TEST(nothing_that_a_probe_uses)
{
    uintptr_t sti = fake_function("sti", "fb 31 c0 90 c3");
    uintptr_t prefixed = fake_function("prefixed", "2e fb 31 c0 c3");
    uintptr_t minus_5 = fake_function("minus_5", "83 c0 fb 90 c3");
    struct kprobe p = { .addr = fn + 1 }, pair = { .addr = sti };
    struct kprobe longer = { .addr = prefixed }, none = { .addr = minus_5 };

    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(register_kprobe(&pair), 0);
    CHECK_EQ(register_kprobe(&longer), 0);
    CHECK_EQ(register_kprobe(&none), 0);
    expect(fn, "0f 1f 84 00 00 00 00 00", PROBE_XMC_PROBED, fn + 1);
    /* Several new instructions in place of a probed one are refused. */
    expect(fn + 1, "31 c0 0f 1f 44 00 00", PROBE_XMC_PROBED, fn + 1);
    expect(fn + 1, "66 90 90 90 90 90 fb", PROBE_XMC_PROBED, fn + 1);
    expect(sti, "90", PROBE_XMC_PROBED, sti);
    expect(sti + 1, "31 db", PROBE_XMC_PROBED, sti); /* the pair of sti has its copy */
    expect(prefixed + 2, "31 db", PROBE_XMC_PROBED, prefixed);
    CHECK_EQ(exchange(fn, "53", XMC_INT3), 0);
    CHECK_EQ(exchange(sti + 3, "99", XMC_INT3), 0);
    CHECK_EQ(exchange(minus_5 + 3, "99", XMC_INT3), 0); /* the FB in front is no STI */
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(unregister_kprobe(&pair), 0);
    CHECK_EQ(unregister_kprobe(&longer), 0);
    CHECK_EQ(unregister_kprobe(&none), 0);
    fake_text_poke(sti + 3, 0x90);
    fake_text_poke(minus_5 + 3, 0x90);
}

UNIT_TEST(nothing_that_a_jump_is_made_of_by_a_store)
{
    struct kprobe p = { .addr = fn + 8 };

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    CHECK_EQ(register_kprobe(&p), 0);
    optimize_run();
    CHECK_EQ(jump_site(p.site)->jump_span, 5);
    CHECK_EQ(exchange(fn + 10, "cb", XMC_STORE), -EEXIST);
    CHECK_EQ(exchange(fn + 8, "89 d8", XMC_STORE), -EEXIST);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(several_only_for_one)
{
    expect(fn, "90 48 c7 c0 02 00 00 00", PROBE_XMC_SEVERAL, fn);
    expect(fn, "8e d0 90 90 90 90 90 90", PROBE_XMC_SEVERAL, fn);
}

UNIT_TEST(and_no_branch_may_lead_between_them)
{
    uintptr_t calls = fake_function("calls", "ff d0 31 c0 ff d0 c3");

    fake_target(fn + 1);
    expect(fn, "0f 1f 84 00 00 00 00 00", PROBE_XMC_ENTERED, fn + 1);
    expect(calls, "0f 1f 40 00", PROBE_XMC_ENTERED, calls);
    /* A call may be the last of the old instructions, and a target may be their start. */
    CHECK_EQ(exchange(calls + 2, "0f 1f 40 00", XMC_INT3), 0);
    CHECK_EQ(exchange(fn + 1, "48 c7 c0 02 03 00 00", XMC_INT3), 0);
    fake_text_poke(calls + 2, 0x31);
    fake_text_poke(calls + 3, 0xc0);
    fake_text_poke(calls + 4, 0xff);
    fake_text_poke(calls + 5, 0xd0);
}

UNIT_TEST(without_the_table_of_targets_one_only)
{
    fake_no_targets();
    expect(fn, "0f 1f 84 00 00 00 00 00", PROBE_XMC_ENTERED, fn + 1);
    CHECK_EQ(exchange(fn + 8, "31 db", XMC_INT3), 0);
}

static int refused_in_handler;

static int handler(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    refused_in_handler = exchange(p->addr + 8, "31 db", XMC_INT3);
    return 0;
}

UNIT_TEST(not_from_a_handler)
{
    struct kprobe p = { .addr = fn, .pre_handler = handler };
    struct pt_regs regs = fake_regs();

    CHECK_EQ(register_kprobe(&p), 0);
    CHECK(fake_int3(&regs, fn));
    CHECK_EQ(refused_in_handler, -EDEADLK);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake.context = PLAT_IRQ;
    CHECK_EQ(exchange(fn + 8, "31 db", XMC_INT3), -EDEADLK);
    fake.context = PLAT_THREAD;
}

UNIT_TEST(without_memory_nothing_has_changed)
{
    unsigned n = 1;

    for (;; n++) {
        fake_fail_at(n);
        if (!exchange(fn + 1, "eb 05 31 c0 31 db 90", XMC_INT3))
            break;
        CHECK(fake_failed() && why.err == -ENOMEM);
        CHECK(fake_text_is_original());
        CHECK_EQ(registry_count(), 0);
        CHECK(!targets_inside(fn, fn + 16));
    }
    CHECK(n > 2);
    fake_fail_at(0);
    CHECK(targets_remove(fn + 1, fn + 8));
}

/* ---- the limited mode ---- */

static int store(uintptr_t at, const char *hex)
{
    return exchange(at, hex, XMC_STORE);
}

UNIT_TEST(a_store_is_one_write_and_one_synchronisation)
{
    fake_log_start(0);
    CHECK_EQ(store(fn + 8, "89 d8"), 0);
    CHECK_STR(fake_log(), "original sync");
    CHECK_BYTES((const uint8_t *)fn + 8, "89 d8 c3");
    CHECK_EQ(fake.quiesces, 0);
}

UNIT_TEST(of_an_aligned_power_of_two)
{
    uintptr_t code = fake_function(
        "code", "0f 1f 00 90 b8 01 00 00 00 48 b8 01 02 03 04 05 06 07 08 c3 90");

    CHECK_EQ(store(code, "0f 1f 00"), -EINVAL);
    CHECK_EQ(why.reason, PROBE_XMC_STORE);
    CHECK_EQ(store(code + 4, "b8 02 00 00 00"), -EINVAL);
    CHECK_EQ(store(code + 9, "48 b8 01 02 03 04 05 06 07 07"), -EINVAL);
    CHECK_EQ(store(code + 19, "cb"), 0);
    CHECK_EQ(store(code + 3, "99"), 0);
    CHECK_EQ(why.reason, PROBE_OK);
    fake_text_poke(code + 3, 0x90);
    fake_text_poke(code + 19, 0xc3);
}

UNIT_TEST(unaligned_is_refused)
{
    uintptr_t code = fake_function("code", "90 31 c0 31 c0 90 c3");

    CHECK_EQ(store(code + 1, "31 db"), -EINVAL);
    CHECK_EQ(why.reason, PROBE_XMC_STORE);
    CHECK_EQ(exchange(code + 1, "31 db", XMC_INT3), 0);
    fake_text_poke(code + 2, 0xc0);
}

UNIT_TEST(and_one_instruction_only)
{
    uintptr_t code = fake_function("code", "31 c0 31 c9 c3");

    CHECK_EQ(store(code, "0f 1f 40 00"), -EOPNOTSUPP);
    CHECK_EQ(why.reason, PROBE_XMC_SEVERAL);
    CHECK_EQ(store(code + 1, "90"), -EILSEQ);
}

UNIT_TESTS_BETWEEN(begin, end)
