/* test_explain.c - tests that probe_explain() says of an address what really happens to a
 * probe there.
 */
#include "probes/explain/explain.h"

#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/unit/port_fake.h"

static struct explanation e;
static char said[1024]; /* the rules: "RULE " if kept, "RULE! " if broken */

static void note(enum probe_reason rule, const struct probe_reject *why, void *arg UNUSED)
{
    size_t len = strlen(said);

    snprintf(said + len, sizeof(said) - len, "%s%s ", probe_reason_name(rule),
             why->err ? "!" : "");
}

static void explain(uintptr_t addr)
{
    said[0] = '\0';
    probe_explain(addr, &e, note, NULL);
}

static bool is_broken(const char *rule)
{
    char word[32];

    snprintf(word, sizeof(word), "%s! ", rule);
    return strstr(said, word) != NULL;
}

UNIT_TEST(every_rule_is_told_in_order)
{
    explain(fake_function("fn", "90 c3"));
    CHECK_STR(
        said,
        "OWN_CODE NOT_TEXT ENTRY_CODE BLACKLISTED NO_FUNCTION UNDECODABLE "
        "NOT_BOUNDARY FOREIGN_INT3 TRAP_INSN FAR_BRANCH MASKS_TRAPS STATE_CHANGE HALTS "
        "TRANSACTION VIRTUALIZATION SHORT_OPERAND CANNOT_MOVE STI_HLT ");
    CHECK_EQ(e.why.err, 0);
}

UNIT_TEST(one_broken_rule_does_not_hide_the_others)
{
    uintptr_t addr = fake_function("fn", "90 cb c3");

    fake_entry(addr, addr + 3);
    explain(addr + 1);
    CHECK(is_broken("ENTRY_CODE"));
    CHECK(is_broken("FAR_BRANCH"));
    CHECK(!is_broken("CANNOT_MOVE"));
    CHECK_EQ(e.why.reason, PROBE_ENTRY_CODE);
}

UNIT_TEST(rules_that_make_no_sense_are_left_out)
{
    explain(fake_text_end() + 4096);
    CHECK(is_broken("NOT_TEXT"));
    CHECK(!strstr(said, "NO_FUNCTION"));
    explain(fake_bytes_at("90"));
    CHECK(is_broken("NO_FUNCTION"));
    CHECK(!strstr(said, "UNDECODABLE"));
    CHECK_EQ(e.map_count, 0);
    CHECK(!e.in_function);
}

UNIT_TEST(the_map_has_the_neighbours)
{
    uintptr_t addr = fake_function("fn", "90 90 90 90 90 90 90 90 90 90 90 90");

    explain(addr);
    CHECK(e.map_at == 0 && e.map_count == EXPLAIN_AROUND + 1);
    CHECK_EQ(e.map[0].addr, addr);
    explain(addr + 6);
    CHECK(e.map_at == EXPLAIN_AROUND && e.map_count == EXPLAIN_MAP);
    CHECK_EQ(e.map[0].addr, addr + 6 - EXPLAIN_AROUND);
    CHECK_EQ(e.map[EXPLAIN_MAP - 1].addr, addr + 6 + EXPLAIN_AROUND);
    explain(addr + 11);
    CHECK(e.map_at == EXPLAIN_AROUND && e.map_count == EXPLAIN_AROUND + 1);
}

UNIT_TEST(where_nothing_decodes_the_map_ends)
{
    uintptr_t addr = fake_function("fn", "90 06 90 90");

    explain(addr + 2);
    CHECK_EQ(e.why.reason, PROBE_UNDECODABLE);
    CHECK_EQ(e.why.at, addr + 1);
    CHECK_EQ(e.map_count, 1);
    CHECK_EQ(e.map_at, e.map_count);
}

UNIT_TEST(the_way_is_what_a_probe_would_get)
{
    uintptr_t addr = fake_function("fn", "48 89 e5 e8 00 00 00 00 c3");

    explain(addr);
    CHECK(!e.is_probed);
    CHECK_EQ(e.way, WAY_BOOST);
    CHECK_EQ(e.copy_count, 2);
    CHECK_STR(e.copies[0].what, "boost");
    CHECK_STR(e.copies[1].what, "detour");
    CHECK_BYTES(e.copies[0].code, "48 89 e5 e9");
    explain(addr + 3);
    CHECK_EQ(e.way, WAY_EMULATE);
    CHECK_EQ(e.copy_count, 1);
    CHECK_STR(e.copies[0].what, "detour");
    CHECK_EQ(registry_count(), 0);
    CHECK(fake_text_is_original());
}

UNIT_TEST(of_a_probed_address_it_tells_what_is)
{
    struct kprobe a = { .pre_handler = no_pre };
    struct kprobe b = { .post_handler = no_post, .flags = KPROBE_FLAG_DISABLED };

    a.addr = b.addr = fake_function("fn", "48 89 e5 c3");
    CHECK_EQ(register_kprobe(&a), 0);
    CHECK_EQ(register_kprobe(&b), 0);
    a.hits = 5;
    b.hits = 7;
    a.missed[MISS_NESTED] = 2;
    explain(a.addr);
    CHECK(e.is_probed);
    CHECK_EQ(e.state, SITE_ARMED);
    CHECK_EQ(e.bytes[0].owner, OWNER_ENGINE);
    CHECK_EQ(e.bytes[0].now, 0xcc);
    CHECK_BYTES(e.map[0].bytes, "48 89 e5");
    CHECK(e.probes == 2 && e.disabled == 1 && e.with_post == 1);
    CHECK(e.hits == 12 && e.missed[MISS_NESTED] == 2);
    CHECK_EQ(e.copy_count, 2);
    CHECK_EQ(unregister_kprobe(&b), 0);
    CHECK_EQ(unregister_kprobe(&a), 0);
    explain(a.addr);
    CHECK(!e.is_probed);
    CHECK_EQ(e.bytes[0].owner, OWNER_ORIGINAL);
}

UNIT_TEST(bytes_have_an_owner)
{
    uintptr_t addr = fake_function("fn", "90 cc c3");

    explain(addr);
    CHECK_EQ(e.bytes[0].owner, OWNER_ORIGINAL);
    explain(addr + 1);
    CHECK_EQ(e.bytes[0].owner, OWNER_OTHER);
    CHECK(is_broken("TRAP_INSN"));
    fake_bad(addr, 1);
    explain(addr);
    CHECK_EQ(e.bytes[0].owner, OWNER_NOBODY);
    addr = fake_function("operand", "b0 cc c3");
    explain(addr);
    CHECK_EQ(e.bytes[1].owner, OWNER_ORIGINAL); /* not an int3: no instruction starts */
}

/* owners - return one letter for the owner of each byte, from e.addr on. */
static const char *owners(void)
{
    static char text[INSN_MAX_LEN + 1];

    memset(text, 0, sizeof(text));
    for (size_t i = 0; i < e.byte_count; i++)
        text[i] = "-oEJX"[e.bytes[i].owner];
    return text;
}

UNIT_TEST(bytes_of_a_jump_have_two_owners)
{
    uintptr_t fn = fake_function("fn", "48 89 d8 31 c9 90 c3 0f 1f 44 00 00");
    struct kprobe p = { .addr = fn, .pre_handler = no_pre };

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    CHECK_EQ(register_kprobe(&p), 0);
    explain(fn);
    CHECK_STR(owners(), "Eoo");
    CHECK(e.bytes[0].now == 0xcc && e.bytes[0].original == 0x48);
    optimize_run();
    explain(fn);
    CHECK_STR(owners(), "JJJoo");
    for (size_t i = 0; i < 3; i++)
        CHECK(e.bytes[i].jump == fn && !e.bytes[i].reader);
    CHECK(e.bytes[0].now == 0xe9 && e.bytes[0].original == 0x48);
    CHECK(!e.bytes[3].jump && e.bytes[3].reader == fn);
    CHECK(e.bytes[3].now == 0x31 && e.bytes[3].original == 0x31);
    explain(fn + 2);
    CHECK_STR(owners(), "J");
    CHECK_EQ(e.bytes[0].jump, fn);
    explain(fn + 5);
    CHECK_STR(owners(), "o");
    CHECK(!e.bytes[0].reader);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(what_may_not_be_stepped_is_told)
{
    explain(fake_function("fn", "0f 01 18 c3"));
    CHECK_EQ(e.why.err, 0);
    CHECK_EQ(e.way, WAY_BOOST);
    CHECK_EQ(e.post.reason, PROBE_NO_STEP);
    explain(fake_function("other", "48 89 e5 c3"));
    CHECK_EQ(e.post.err, 0);
    CHECK_EQ(e.copy_count, 2);
}

UNIT_TEST(the_detour_is_what_a_jump_would_run)
{
    struct kprobe p = { .addr = fake_function("fn", "48 89 e5 48 01 c8 c3") };

    explain(p.addr);
    CHECK_EQ(e.detour, DETOUR_CALL);
    CHECK(e.flags_live);
    CHECK_EQ(register_kprobe(&p), 0);
    explain(p.addr);
    CHECK_EQ(e.detour, DETOUR_PROGRAM);
    CHECK_EQ(e.copy_count, 1);
    plat_lock(PLAT_PROBES);
    CHECK_EQ(detour_prepare(p.site, NULL), 0);
    plat_unlock(PLAT_PROBES);
    explain(p.addr);
    CHECK_STR(e.copies[1].what, "detour");
    CHECK_EQ(e.copies[1].addr, (uintptr_t)site_detour(p.site));
    CHECK_EQ(unregister_kprobe(&p), 0);
    explain(fake_function("other", "48 01 c8 c3"));
    CHECK(!e.flags_live);
}

/* ---- jumps ---- */

#define LADDER                                                                           \
    "48 b8 01 02 03 04 05 06 07 08 e8 00 00 00 00 48 89 d8 31 c9 90 c3 90 90 90 90"

UNIT_TEST(the_jump_is_what_a_probe_would_get)
{
    static const struct {
        unsigned off;
        enum pun_rung rung;
    } rows[] = { { 0, PUN_DIRECT }, { 10, PUN_CALL }, { 15, PUN_PLAIN } };
    uintptr_t fn = fake_function("fn", LADDER);

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kprobe p = { .addr = fn + rows[i].off, .pre_handler = no_pre };
        uintptr_t pad;

        explain(p.addr);
        CHECK_EQ(e.jump.state, JUMP_POSSIBLE);
        CHECK_EQ(e.jump.rung, rows[i].rung);
        pad = e.jump.pad;
        CHECK(fake_text_is_original() && registry_count() == 0);
        CHECK_EQ(register_kprobe(&p), 0);
        explain(p.addr);
        CHECK_EQ(e.jump.state, JUMP_SOON);
        optimize_run();
        explain(p.addr);
        CHECK_EQ(e.jump.state, JUMP_IS_THERE);
        CHECK_EQ(e.jump.rung, rows[i].rung);
        CHECK_EQ(e.jump.pad, pad);
        CHECK_EQ(disable_kprobe(&p), 0);
        explain(p.addr);
        CHECK_EQ(e.jump.state, JUMP_UNARMED);
        CHECK_EQ(unregister_kprobe(&p), 0);
    }
}

UNIT_TEST(it_is_told_why_there_is_no_jump)
{
    struct kprobe p = { .pre_handler = no_pre };
    uintptr_t fn = p.addr = fake_function("fn", LADDER);

    CHECK_EQ(optimize_set_method(OPTIMIZE_OFF), 0);
    explain(fn);
    CHECK_EQ(e.jump.state, JUMP_OFF);
    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    CHECK_EQ(optimize_switch(false), 0);
    CHECK_EQ(register_kprobe(&p), 0);
    explain(fn);
    CHECK_EQ(e.jump.state, JUMP_OFF);
    CHECK_EQ(optimize_switch(true), 0);
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_EQ(enable_kprobe(&p), 0);
    fake_fail_at(1);
    optimize_run();
    fake_fail_at(0);
    explain(fn);
    CHECK_EQ(e.jump.state, JUMP_NONE);
    CHECK_EQ(e.jump.why, PROBE_NO_MEMORY);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(regions_are_jumps_too)
{
    struct kprobe p = { .pre_handler = no_pre };
    uintptr_t fn = p.addr = fake_function("fn", "31 c0 31 c9 31 d2 c3 90 90 90 90");

    fake_target(fn + 4);
    CHECK_EQ(optimize_set_method(OPTIMIZE_REGION), 0);
    explain(fn);
    CHECK(e.jump.state == JUMP_NONE && e.jump.why == PROBE_REGION_TARGET);
    p.addr = fn + 4;
    explain(p.addr);
    CHECK(e.jump.state == JUMP_POSSIBLE && e.jump.by_region);
    CHECK_EQ(register_kprobe(&p), 0);
    optimize_run();
    explain(p.addr);
    CHECK(e.jump.state == JUMP_IS_THERE && e.jump.by_region);
    CHECK_STR(e.copies[0].what, "boost");
    CHECK_BYTES(e.copies[0].code, "31 d2 c3"); /* the copies of all instructions */
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(what_stage_3_refuses_is_told_last)
{
    unsigned refused = 0;
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        uintptr_t addr = fake_function("fn", "48 89 e5 c3");

        fake_fail_at(n);
        explain(addr);
        failed = fake_failed();
        fake_fail_at(0);
        refused += e.why.err == -ENOMEM;
        CHECK(!e.why.err || (is_broken(probe_reason_name(e.why.reason)) &&
                             said[strlen(said) - 2] == '!'));
        CHECK_EQ(registry_count(), 0);
    }
    CHECK(refused > 0);
    CHECK_EQ(e.why.err, 0);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
