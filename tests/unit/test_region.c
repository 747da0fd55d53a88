/* test_region.c - regions: the rules one by one, the copies, the threads that are waited
 * for.
 */
#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/kprobe.h"
#include "probes/region/region.h"
#include "probes/region/targets.h"
#include "tests/unit/port_fake.h"

#include <stdlib.h>
#include <string.h>

static struct region region;
static struct probe_reject why;
static uintptr_t fn;

static enum probe_reason plan_at(uintptr_t addr)
{
    why = (struct probe_reject){ 0 };
    region_plan(addr, &region, &why);
    return why.reason;
}

/* plan - for the first instruction of a function made of @hex. */
static enum probe_reason plan(const char *hex)
{
    fn = fake_function("fn", hex);
    return plan_at(fn);
}

static void expect(const char *hex, enum probe_reason reason, size_t off)
{
    enum probe_reason got;

    fake_start();
    got = plan(hex);
    if (got != reason)
        unit_note("%s: %s, want %s", hex, probe_reason_name(got),
                  probe_reason_name(reason));
    CHECK_EQ(got, reason);
    if (reason != PROBE_OK)
        CHECK_EQ(why.at, fn + off);
    fake_end();
}

/* ---- which instructions ---- */

static void whole_instructions_up_to_five_bytes(void)
{
    fake_start();
    CHECK_EQ(plan("55 48 89 e5 41 57 90 c3"), PROBE_OK);
    CHECK_EQ(region.addr, fn);
    CHECK_EQ(region.len, 6);
    CHECK_EQ(region.count, 3);
    CHECK_EQ(region.padding, 0);
    CHECK_EQ(region.starts[0], 0);
    CHECK_EQ(region.starts[1], 1);
    CHECK_EQ(region.starts[2], 4);
    CHECK_BYTES(region.bytes, "55 48 89 e5 41 57");
    fake_end();
}

static void one_long_instruction_is_enough(void)
{
    fake_start();
    CHECK_EQ(plan("48 b8 01 02 03 04 05 06 07 08 c3"), PROBE_OK);
    CHECK_EQ(region.count, 1);
    CHECK_EQ(region.len, 10);
    fake_end();
}

static void the_longest_region_has_19_bytes(void)
{
    fake_start();
    CHECK_EQ(plan("90 90 90 90 2e 2e 2e 2e 2e 2e 2e 0f 1f 84 00 00 00 00 00 c3"),
             PROBE_OK);
    CHECK_EQ(region.count, 5);
    CHECK_EQ(region.len, REGION_MAX_LEN);
    fake_end();
}

static void branches_are_displaced_too(void)
{
    expect("74 10 31 c0 c3 90", PROBE_OK, 0);
    expect("31 c0 74 10 eb 10 c3", PROBE_OK, 0);
    expect("31 c0 e2 10 e3 10 c3", PROBE_OK, 0);
    expect("31 c0 31 c9 ff e0", PROBE_OK, 0);
    expect("31 c0 31 c9 c3", PROBE_OK, 0);
    expect("31 c0 9c 31 c9 c3", PROBE_OK, 0);
}

static void what_depends_on_its_place_is_not(void)
{
    expect("31 c0 9d 31 c9 c3", PROBE_REGION_MOVE, 2);  /* popf */
    expect("31 c0 fb 31 c9 c3", PROBE_REGION_MOVE, 2);  /* sti */
    expect("fb 31 c0 31 c9 c3", PROBE_REGION_MOVE, 0);  /* sti, and others behind */
    expect("31 c0 90 ff d0 c3", PROBE_REGION_MOVE, 3);  /* call *%rax */
    expect("31 c0 0f 01 f8 c3", PROBE_STATE_CHANGE, 2); /* swapgs */
    expect("31 c0 0f 01 c9 c3", PROBE_HALTS, 2);        /* mwait */
    expect("31 c0 cd 20 90 c3", PROBE_TRAP_INSN, 2);    /* int $0x20 */
    expect("31 c0 cc 90 90 c3", PROBE_TRAP_INSN, 2);    /* the program's own int3 */
}

static void the_first_may_be_what_the_engine_can_run(void)
{
    expect("9d 31 c0 31 c9 c3", PROBE_OK, 0);
    expect("fa 31 c0 31 c9 c3", PROBE_OK, 0);
}

static void a_call_comes_last_or_not_at_all(void)
{
    expect("ff d0 31 c0 31 c9 c3", PROBE_REGION_CALL, 0);
    expect("31 c0 e8 00 00 00 00 c3", PROBE_OK, 0);
    expect("e8 00 00 00 00 c3", PROBE_OK, 0);
    expect("ff 15 00 00 00 00 c3", PROBE_OK, 0);
}

/* ---- branches from elsewhere ---- */

static void no_code_may_jump_behind_the_first_byte(void)
{
    for (size_t off = 0; off < 8; off++) {
        fake_start();
        fn = fake_function("fn", "31 c0 48 8b 47 08 31 c9 c3");
        fake_target(fn + off);
        if (off >= 1 && off <= 4) {
            CHECK_EQ(plan_at(fn), PROBE_REGION_TARGET);
            CHECK_EQ(why.at, fn + off);
        } else {
            CHECK_EQ(plan_at(fn), PROBE_OK);
        }
        fake_end();
    }
}

static void where_anything_may_jump_is_said_so(void)
{
    fake_start();
    fn = fake_function("fn", "31 c0 48 8b 47 08 31 c9 c3");
    fake_opaque(fn + 3, fn + 40);
    CHECK_EQ(plan_at(fn), PROBE_REGION_OPAQUE);
    CHECK_EQ(why.at, fn + 3);
    fake_end();
}

static void a_branch_written_at_run_time_counts(void)
{
    fake_start();
    CHECK_EQ(plan("31 c0 31 c9 31 d2 c3"), PROBE_OK);
    CHECK_EQ(targets_add(fn + 20, fn + 2), 0);
    CHECK_EQ(plan_at(fn), PROBE_REGION_TARGET);
    CHECK_EQ(why.at, fn + 2);
    CHECK(targets_remove(fn + 20, fn + 2));
    CHECK_EQ(plan_at(fn), PROBE_OK);
    fake_end();
}

static void without_a_table_there_are_no_regions(void)
{
    fake_start();
    fake_no_targets();
    CHECK_EQ(plan("31 c0 31 c9 31 d2 c3"), PROBE_NO_TARGETS);
    fake_end();
}

static void code_that_was_changed_is_left_alone(void)
{
    fake_start();
    CHECK_EQ(plan("31 c0 31 c9 31 d2 c3"), PROBE_OK);
    fake_text_poke(fn + 5, 0xc9);
    boundary_forget();
    CHECK_EQ(plan_at(fn), PROBE_REGION_CHANGED);
    fake_text_poke(fn + 5, 0xd2);
    boundary_forget();
    CHECK_EQ(plan_at(fn), PROBE_OK);
    fake_end();
}

/* ---- ends of functions ---- */

/* twins - two functions and what lies between; the first is named by its size. */
static void twins(const char *hex, size_t size, size_t gap)
{
    fake_start();
    fn = fake_bytes_at(hex);
    fake_symbol("fn", fn, size);
    fake_symbol("other", fn + size + gap, 16);
}

static void padding_behind_a_function_may_be_overwritten(void)
{
    twins("31 c0 c3 90 90 90 31 c0 c3", 3, 3);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.len, 5);
    CHECK_EQ(region.count, 2);
    CHECK_EQ(region.padding, 2);
    fake_end();
    twins("c3 0f 1f 40 00 90 31 c0 c3", 1, 5);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.padding, 4);
    fake_end();
    twins("31 c0 eb fc cc cc cc 31 c0 c3", 4, 3);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.padding, 1);
    fake_end();
}

static void functions_of_one_to_six_bytes(void)
{
    static const char *const bodies[] = {
        "c3", "90 c3", "31 c0 c3", "90 31 c0 c3", "31 c0 31 c9 c3", "90 31 c0 31 c9 c3"
    };
    static const char *const fillers[] = { "90", "cc" };

    for (size_t size = 1; size <= 6; size++) {
        for (size_t gap = 0; gap <= 5; gap++) {
            for (size_t filler = 0; filler < 2; filler++) {
                char hex[64];

                strcpy(hex, bodies[size - 1]);
                for (size_t i = 0; i < gap; i++)
                    strcat(strcat(hex, " "), fillers[filler]);
                twins(strcat(hex, " 31 c0 c3"), size, gap);
                if (size + gap >= REGION_JUMP_LEN) {
                    CHECK_EQ(plan_at(fn), PROBE_OK);
                    CHECK_EQ(region.len, 5);
                } else {
                    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
                    CHECK_EQ(why.at, fn + size + gap);
                }
                fake_end();
            }
        }
    }
}

static void other_bytes_there_are_not_padding(void)
{
    twins("31 c0 c3 00 00 00 31 c0 c3", 3, 3);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 3);
    fake_end();
    twins("31 c0 c3 90 48 90 31 c0 c3", 3, 3); /* the end of a table, say */
    fake_target(fn + 4);
    CHECK_EQ(plan_at(fn), PROBE_REGION_TARGET);
    fake_end();
}

static void code_that_runs_into_the_end_is_refused(void)
{
    twins("31 c0 31 c9 90 90 90 31 c0 c3", 4, 3);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 4);
    fake_end();
}

static void a_call_that_never_returns_may_be_the_end(void)
{
    twins("31 ff e8 00 00 00 00 31 c0 c3", 7, 0);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(region.len, 7);
    CHECK_EQ(plan_at(fn + 2), PROBE_OK);
    CHECK_EQ(region.len, 5);
    fake_end();
    twins("31 ff ff d0 90 90 31 c0 c3", 4, 2);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(plan_at(fn + 2), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 4);
    fake_end();
}

static void data_between_functions_end_a_region(void)
{
    twins("31 c0 c3 90 55 89 31 c0 c3", 3, 0);
    CHECK_EQ(plan_at(fn), PROBE_REGION_END);
    CHECK_EQ(why.at, fn + 3);
    fake_end();
}

static void what_does_not_decode_is_named(void)
{
    expect("31 c0 06 90 90 90 c3", PROBE_UNDECODABLE, 2);
}

static void between_two_instructions_is_no_place(void)
{
    fake_start();
    plan("31 c0 31 c9 31 d2 c3");
    CHECK_EQ(plan_at(fn + 1), PROBE_NOT_BOUNDARY);
    CHECK_EQ(plan_at(fake_text_end() - 1), PROBE_NO_FUNCTION);
    fake_end();
}

static void what_must_never_be_changed_is_not(void)
{
    fake_start();
    fn = fake_function("fn", "31 c0 31 c9 31 d2 c3");
    fake_entry(fn + 2, fn + 4);
    CHECK_EQ(plan_at(fn), PROBE_ENTRY_CODE);
    CHECK_EQ(why.at, fn + 2);
    fake_end();
}

/* ---- probes ---- */

static void another_probe_inside_forbids_it(void)
{
    struct kprobe own = { 0 }, inner = { 0 }, behind = { 0 };

    fake_start();
    fn = fake_function("fn", "31 c0 31 c9 31 d2 c3");
    own.addr = fn;
    inner.addr = fn + 2;
    behind.addr = fn + 6;
    CHECK_EQ(register_kprobe(&own), 0);
    CHECK_EQ(register_kprobe(&behind), 0);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_BYTES(region.bytes, "31 c0 31 c9 31 d2");
    CHECK_EQ(register_kprobe(&inner), 0);
    CHECK_EQ(plan_at(fn), PROBE_REGION_PROBED);
    CHECK_EQ(why.at, fn + 2);
    CHECK_EQ(why.err, -EEXIST);
    CHECK_EQ(plan_at(fn + 2), PROBE_REGION_PROBED);
    CHECK_EQ(why.at, fn + 6);
    CHECK_BYTES(region.bytes, "31 c9 31 d2 c3");
    CHECK_EQ(unregister_kprobe(&inner), 0);
    CHECK_EQ(plan_at(fn), PROBE_OK);
    CHECK_EQ(unregister_kprobe(&own), 0);
    CHECK_EQ(unregister_kprobe(&behind), 0);
    fake_end();
}

/* ---- all rules ---- */

static unsigned rules_told, rules_broken;
static enum probe_reason last_told;

static void note_rule(enum probe_reason rule, const struct probe_reject *reject,
                      void *arg)
{
    CHECK(arg == &rules_told);
    rules_told++;
    rules_broken += reject->err != 0;
    last_told = rule;
}

static void each_rule_is_told_of(void)
{
    fake_start();
    fn = fake_function("fn", "ff d0 31 c0 31 c9 c3");
    fake_target(fn + 2);
    rules_told = rules_broken = 0;
    region_each_rule(fn, &region, note_rule, &rules_told);
    CHECK_EQ(rules_broken, 2);
    CHECK_EQ(last_told, PROBE_REGION_CHANGED);
    CHECK_EQ(region.len, 6);
    fake_no_targets();
    rules_told = rules_broken = 0;
    region_each_rule(fn, &region, note_rule, &rules_told);
    CHECK_EQ(rules_told, 1);
    CHECK_EQ(rules_broken, 1);
    fake_end();
}

/* ---- the copies ---- */

#define TO UINT64_C(0xffffffff7e000100)
#define AT UINT64_C(0xffffffff80200400)

static uint8_t code[REGION_COPY_MAX];
static size_t code_len;

/* copy - a region at AT, made of @hex, each instruction whole. */
static int copy(const char *hex)
{
    uint8_t bytes[64];
    struct insn insn;
    size_t len = 0, at = 0;

    for (const char *p = hex; *p; p += p[2] ? 3 : 2)
        bytes[len++] = (uint8_t)strtoul(p, NULL, 16);
    region = (struct region){ .addr = AT, .cell = (uint8_t *)TO };
    while (at < len) {
        CHECK_EQ(insn_decode(&insn, bytes + at, len - at, AT + at), 0);
        region.starts[region.count++] = (uint8_t)at;
        at += insn.len;
    }
    memcpy(region.bytes, bytes, len);
    region.len = (uint8_t)len;
    memset(code, 0xcc, sizeof(code));
    return region_copy(&region, TO, code, &code_len, &why);
}

static void copies_then_the_jump_back(void)
{
    CHECK_EQ(copy("55 48 89 e5 41 57"), 0);
    CHECK_BYTES(code, "55 48 89 e5 41 57 e9 fb 02 20 02");
    CHECK_EQ(code_len, 11);
    CHECK_EQ(region.copies[1], 1);
    CHECK_EQ(region.copies[2], 4);
    CHECK_EQ(region.copies[3], 6);
}

static void displacements_are_counted_anew(void)
{
    CHECK_EQ(copy("55 48 8b 05 10 00 00 00"), 0);
    CHECK_BYTES(code, "55 48 8b 05 10 03 20 02 e9");
    CHECK_EQ(copy("31 c0 74 10 90"), 0);
    CHECK_BYTES(code, "31 c0 0f 84 0c 03 20 02 90 e9");
    CHECK_EQ(region.copies[2], 8);
}

static void no_jump_back_where_the_program_does_not_go_on(void)
{
    CHECK_EQ(copy("31 c0 31 c9 c3"), 0);
    CHECK_EQ(code_len, 5);
    CHECK_EQ(copy("31 c0 31 c9 eb 10"), 0);
    CHECK_EQ(code_len, 9);
}

static void a_call_returns_behind_the_original(void)
{
    CHECK_EQ(copy("31 c0 e8 10 00 00 00"), 0);
    /* push $AT+7; jmp AT+7+0x10 */
    CHECK_BYTES(code, "31 c0 68 07 04 20 80 e9 0b 03 20 02");
    CHECK_EQ(code_len, 12);
    CHECK_EQ(region_original(&region, 2), AT + 2);
    CHECK_EQ(region_original(&region, 7), AT + 2);
}

static void the_longest_copies_fit(void)
{
    CHECK_EQ(copy("e2 10 e3 10 2e 2e 2e 2e 2e 2e 2e 0f 1f 84 00 00 00 00 00"), 0);
    CHECK(code_len <= REGION_COPY_MAX);
    CHECK_EQ(copy("e2 10 67 e3 10"), 0);
    CHECK_EQ(copy("90 90 90 90 2e 2e 2e 2e 2e 2e 2e 0f 1f 84 00 00 00 00 00"), 0);
}

static void out_of_reach_is_refused(void)
{
    CHECK_EQ(copy("31 c0 31 c9 90"), 0);
    region.addr = 0x1000;
    CHECK_EQ(region_copy(&region, TO - ((uintptr_t)3 << 32), code, &code_len, &why),
             -ERANGE);
    CHECK_EQ(why.reason, PROBE_OUT_OF_REACH);
    CHECK_EQ(copy("31 c0 e8 10 00 00 00"), 0);
    region.addr = (uintptr_t)1 << 40;
    CHECK_EQ(region_copy(&region, region.addr, code, &code_len, &why), -ERANGE);
}

static void each_ip_means_an_original_and_back(void)
{
    CHECK_EQ(copy("55 48 89 e5 41 57"), 0);
    CHECK_EQ(region_original(&region, 0), AT);
    CHECK_EQ(region_original(&region, 1), AT + 1);
    CHECK_EQ(region_original(&region, 3), AT + 1);
    CHECK_EQ(region_original(&region, 4), AT + 4);
    CHECK_EQ(region_original(&region, 6), AT + 6);
    CHECK_EQ(region_original(&region, 10), AT + 6);
    CHECK_EQ(region_enter(&region, AT), AT);
    CHECK_EQ(region_enter(&region, AT + 1), TO + 1);
    CHECK_EQ(region_enter(&region, AT + 4), TO + 4);
    CHECK_EQ(region_enter(&region, AT + 6), AT + 6);
    CHECK_EQ(region_enter(&region, 0), 0);
}

/* ---- open and closed ---- */

static struct kprobe p;
static struct pt_regs regs;
static unsigned posts;
static uintptr_t post_ip, go_to;

static void note_post(struct kprobe *probe, struct pt_regs *r, unsigned long flags)
{
    (void)probe;
    (void)flags;
    posts++;
    post_ip = r->ip;
}

static int set_ip(struct kprobe *probe, struct pt_regs *r)
{
    (void)probe;
    r->ip = go_to;
    return 1;
}

static void probe_start(const char *hex)
{
    fake_start();
    fn = fake_function("fn", hex);
    p = (struct kprobe){ .addr = fn };
    posts = 0;
}

static void open_region(void)
{
    plat_lock(PLAT_PROBES);
    CHECK_EQ(region_prepare(p.site, &why), 0);
    plat_sync_cores();
    region_open(p.site);
    plat_unlock(PLAT_PROBES);
}

static void close_region(void)
{
    plat_lock(PLAT_PROBES);
    region_close(p.site);
    plat_quiesce();
    detour_release(p.site);
    region_release(p.site);
    plat_unlock(PLAT_PROBES);
}

static void hit(void)
{
    regs = fake_regs();
    CHECK(fake_int3(&regs, fn));
}

static void a_boosted_hit_runs_the_copies(void)
{
    uint8_t *own;

    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    own = p.site->boost_slot;
    open_region();
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell);
    CHECK_BYTES((uint8_t *)regs.ip, "55 48 89 e5 41 57 e9");
    close_region();
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)own);
    CHECK(!region_is_open(p.site));
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void behind_a_step_it_goes_on_at_the_copies(void)
{
    probe_start("55 48 89 e5 41 57 90 c3");
    p.post_handler = note_post;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)p.site->step_slot);
    CHECK(fake_int3(&regs, (uintptr_t)p.site->step_slot + 1));
    CHECK_EQ(posts, 1);
    CHECK_EQ(post_ip, fn + 1);
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 1);
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void behind_an_emulated_one_too(void)
{
    probe_start("74 10 31 c0 31 c9 c3"); /* je */
    p.post_handler = note_post;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    regs = fake_regs();
    regs.flags &= ~FLAGS_ZF;
    CHECK(fake_int3(&regs, fn));
    CHECK_EQ(post_ip, fn + 2);
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell +
                          jump_site(p.site)->region->copies[1]);
    regs.flags |= FLAGS_ZF;
    CHECK(fake_int3(&regs, fn));
    CHECK_EQ(regs.ip, fn + 18);
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void a_thread_sent_under_the_jump_goes_to_the_copies(void)
{
    probe_start("55 48 89 e5 41 57 90 c3");
    p.pre_handler = set_ip;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    go_to = fn + 4;
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)jump_site(p.site)->region->cell + 4);
    go_to = fn + 6;
    hit();
    CHECK_EQ(regs.ip, fn + 6);
    close_region();
    go_to = fn + 4;
    hit();
    CHECK_EQ(regs.ip, fn + 4);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void the_detour_leads_to_the_copies(void)
{
    struct insn jmp;

    probe_start("74 10 31 c0 31 c9 c3"); /* je: a detour with a cell of its own */
    p.pre_handler = set_ip;
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    plat_lock(PLAT_PROBES);
    CHECK_EQ(detour_prepare(p.site, &why), 0);
    plat_unlock(PLAT_PROBES);
    /* call, je near, jmp */
    CHECK_EQ(insn_decode(&jmp, site_detour(p.site) + 11, 5,
                         (uintptr_t)site_detour(p.site) + 11),
             0);
    CHECK_EQ(jmp.target, (uintptr_t)jump_site(p.site)->region->cell +
                             jump_site(p.site)->region->copies[1]);
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void a_fault_in_a_copy_is_where_its_original_lies(void)
{
    probe_start("55 48 8b 07 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    regs = fake_regs();
    CHECK(!fake_fault(&regs, 14, (uintptr_t)jump_site(p.site)->region->cell + 1));
    CHECK_EQ(regs.ip, fn + 1);
    CHECK_EQ(copy_original((uintptr_t)jump_site(p.site)->region->cell), fn);
    CHECK_EQ(copy_original((uintptr_t)jump_site(p.site)->region->cell + 4), fn + 4);
    CHECK_EQ(copy_original((uintptr_t)jump_site(p.site)->region->cell + 6), fn + 6);
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void step_from(uintptr_t ip)
{
    regs = fake_regs();
    regs.flags |= FLAGS_TF;
    regs.ip = ip;
    regs.dr6 = 1ul << 14;
    fake.raised_steps = 0;
    CHECK(kprobe_debug_handler(&regs, plat_this_cpu()));
}

static void a_program_that_steps_itself_sees_the_originals(void)
{
    uintptr_t cell;

    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    cell = (uintptr_t)jump_site(p.site)->region->cell;
    for (size_t i = 0; i < 3; i++) {
        static const unsigned off[] = { 1, 4, 6 };

        step_from(cell + off[i]);
        CHECK_EQ(fake.raised_steps, 1);
        CHECK_EQ(regs.ip, i < 2 ? cell + off[i] : fn + 6);
    }
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void it_sees_each_iteration_in_either_copy(void)
{
    uintptr_t copies[2];

    probe_start("f3 a4 48 89 e5 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    copies[0] = (uintptr_t)jump_site(p.site)->region->cell;
    copies[1] = (uintptr_t)p.site->boost_slot;
    for (size_t i = 0; i < 2; i++) {
        step_from(copies[i]);
        CHECK_EQ(fake.raised_steps, 1);
        CHECK_EQ(fake.raised_ip, fn);
        CHECK_EQ(regs.ip, copies[i]);
    }
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

/* No quiescence has been since the region was opened, or closed. */
static void a_thread_in_the_other_copy_is_where_its_original_lies(void)
{
    uintptr_t own, cell;

    probe_start("55 48 89 e5 41 57 90 c3");
    p.post_handler = note_post; /* the detour's copy has a front */
    CHECK_EQ(register_kprobe(&p), 0);
    own = (uintptr_t)p.site->boost_slot;
    open_region();
    cell = (uintptr_t)jump_site(p.site)->region->cell;
    plat_lock(PLAT_PROBES);
    CHECK_EQ(detour_prepare(p.site, &why), 0);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(copy_original(own), fn);
    CHECK_EQ(copy_original(own + 1), fn + 1);
    plat_lock(PLAT_PROBES);
    region_close(p.site);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(copy_original(cell), fn);
    CHECK_EQ(copy_original(cell + 1), fn + 1);
    step_from(cell + 1);
    CHECK_EQ(fake.raised_steps, 1);
    CHECK_EQ(regs.ip, fn + 1);
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void one_instruction_needs_no_copies(void)
{
    probe_start("48 b8 01 02 03 04 05 06 07 08 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    open_region();
    CHECK(!jump_site(p.site)->region->cell);
    hit();
    CHECK_EQ(regs.ip, (uintptr_t)p.site->boost_slot);
    CHECK_EQ(region_behind(p.site), fn + 10);
    close_region();
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void a_refusal_leaves_nothing(void)
{
    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    fake_target(fn + 1);
    plat_lock(PLAT_PROBES);
    CHECK_EQ(region_prepare(p.site, &why), -EOPNOTSUPP);
    CHECK_EQ(why.reason, PROBE_REGION_TARGET);
    CHECK(!region_is_open(p.site));
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void no_memory_leaves_nothing(void)
{
    unsigned n = 0;
    int err;

    probe_start("55 48 89 e5 41 57 90 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    plat_lock(PLAT_PROBES);
    do {
        region_free(p.site);
        boundary_forget();
        fake_fail_at(++n);
        err = region_prepare(p.site, &why);
        CHECK_EQ(err, fake_failed() ? -ENOMEM : 0);
        CHECK_EQ(!jump_site(p.site)->region || !jump_site(p.site)->region->cell,
                 fake_failed());
    } while (fake_failed());
    CHECK(n > 2);
    region_release(p.site);
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

/* ---- threads that are waited for ---- */

static void watched_is_what_lies_behind_the_first_byte(void)
{
    static const uintptr_t addrs[] = { 100, 105, 300 };

    CHECK(!region_is_watched(101));
    region_watch(addrs, 3);
    for (uintptr_t ip = 90; ip < 320; ip++) {
        bool inside = false;

        for (size_t i = 0; i < 3; i++)
            inside |= ip > addrs[i] && ip < addrs[i] + 5;
        CHECK_EQ(region_is_watched(ip), inside);
    }
    region_unwatch();
    CHECK(!region_is_watched(101));
}

static void too_many_at_a_time_are_a_bug(void)
{
    static uintptr_t addrs[REGION_WATCH_MAX + 1];

    CHECK(FAKE_BUG(region_watch(addrs, REGION_WATCH_MAX + 1)));
    region_watch(addrs, REGION_WATCH_MAX);
    CHECK(FAKE_BUG(region_watch(addrs, 1)));
    region_unwatch();
}

/* ---- the picture ---- */

static char drawn[2048];

static void note_line(const char *text, void *arg)
{
    CHECK(arg == &region);
    CHECK(strlen(text) < REGION_LINE_MAX);
    strcat(strcat(drawn, text), "\n");
}

static const char *draw(uintptr_t addr)
{
    drawn[0] = '\0';
    region_draw(addr, note_line, &region);
    return drawn;
}

static void a_region_is_drawn(void)
{
    fake_start();
    fn = fake_function("fn", "55 48 89 e5 41 57 90 c3");
    CHECK_STR(draw(fn), "IA\n"
                        "|\n"
                        "[ 0][ 1][ 2][ 3][ 4][ 5]\n"
                        "[55][48  89  e5][41  57]\n"
                        "[<- DCR -------------->]\n"
                        "    [<- JTPR ----->]\n");
    fake_end();
}

static void obstacles_are_drawn(void)
{
    struct kprobe inner = { 0 };

    fake_start();
    fn = fake_function("fn", "31 c0 31 c9 31 d2 c3");
    fake_target(fn + 2);
    fake_opaque(fn + 3, fn + 4);
    inner.addr = fn + 4;
    CHECK_EQ(register_kprobe(&inner), 0);
    CHECK_STR(draw(fn),
              "IA\n"
              "|\n"
              "[ 0][ 1][ 2][ 3][ 4][ 5]\n"
              "[31  c0][31  c9][31  d2]\n"
              "[<- DCR -------------->]\n"
              "    [<- JTPR ----->]\n"
              "         T              T: a branch, a pointer or a fix-up leads there\n"
              "             ?          ?: it is not known what leads there\n"
              "                 P      P: another probe\n");
    CHECK_EQ(unregister_kprobe(&inner), 0);
    fake_end();
}

static void what_is_too_narrow_for_a_name_has_none(void)
{
    twins("90 31 c0", 1, 0);
    CHECK(strstr(draw(fn), "\n[90]\n[--]\n    [<- JTPR ----->]\n"));
    fake_end();
    twins("31 c0 31 c0", 2, 0);
    CHECK(strstr(draw(fn), "\n[31  c0]\n[------]\n    [<- JTPR ----->]\n"));
    CHECK(!strcmp(draw(fn + 1), "IA\n|\n[ 0][ 1][ 2][ 3][ 4]\n    [<- JTPR ----->]\n"));
    fake_end();
}

static void padding_and_what_is_missing_are_drawn(void)
{
    twins("31 c0 c3 90 90 90 31 c0 c3", 3, 3);
    CHECK(strstr(draw(fn), "\n[31  c0][c3](90)(90)\n[<- DCR ---------->]\n"));
    fake_end();
    twins("31 c0 31 c9 31 c0 c3", 4, 0);
    CHECK(strstr(draw(fn), "\n[ 0][ 1][ 2][ 3][ 4]\n[31  c0][31  c9]\n[<- DCR ------>]\n"
                           "    [<- JTPR ----->]\n"));
    fake_end();
}

UNIT_TESTS(whole_instructions_up_to_five_bytes, one_long_instruction_is_enough,
           the_longest_region_has_19_bytes, branches_are_displaced_too,
           what_depends_on_its_place_is_not, the_first_may_be_what_the_engine_can_run,
           a_call_comes_last_or_not_at_all, no_code_may_jump_behind_the_first_byte,
           where_anything_may_jump_is_said_so, a_branch_written_at_run_time_counts,
           without_a_table_there_are_no_regions, code_that_was_changed_is_left_alone,
           padding_behind_a_function_may_be_overwritten, functions_of_one_to_six_bytes,
           other_bytes_there_are_not_padding, code_that_runs_into_the_end_is_refused,
           a_call_that_never_returns_may_be_the_end, data_between_functions_end_a_region,
           what_does_not_decode_is_named, between_two_instructions_is_no_place,
           what_must_never_be_changed_is_not, another_probe_inside_forbids_it,
           each_rule_is_told_of, copies_then_the_jump_back,
           displacements_are_counted_anew, no_jump_back_where_the_program_does_not_go_on,
           a_call_returns_behind_the_original, the_longest_copies_fit,
           out_of_reach_is_refused, each_ip_means_an_original_and_back,
           a_boosted_hit_runs_the_copies, behind_a_step_it_goes_on_at_the_copies,
           behind_an_emulated_one_too, a_thread_sent_under_the_jump_goes_to_the_copies,
           the_detour_leads_to_the_copies, a_fault_in_a_copy_is_where_its_original_lies,
           a_program_that_steps_itself_sees_the_originals,
           it_sees_each_iteration_in_either_copy,
           a_thread_in_the_other_copy_is_where_its_original_lies,
           one_instruction_needs_no_copies, a_refusal_leaves_nothing,
           no_memory_leaves_nothing, watched_is_what_lies_behind_the_first_byte,
           too_many_at_a_time_are_a_bug, a_region_is_drawn, obstacles_are_drawn,
           padding_and_what_is_missing_are_drawn, what_is_too_narrow_for_a_name_has_none)
