/* test_detour.c - tests of detours: the kind and the bytes of a detour for an instruction
 * and its probes.
 */
#include "probes/jump/detour.h"

#include "kernel/base/bits.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "probes/insn/insn.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/return_point.h"
#include "tests/unit/port_fake.h"

static struct kprobe p;

static int prepare(struct probe_reject *why)
{
    int err;

    plat_lock(PLAT_PROBES);
    err = detour_prepare(p.site, why);
    plat_unlock(PLAT_PROBES);
    return err;
}

static void start_probe(bool pre, bool post)
{
    struct probe_reject why;

    p.pre_handler = pre ? no_pre : NULL;
    p.post_handler = post ? no_post : NULL;
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK_EQ(prepare(&why), 0);
}

/* start - put a probe on the first instruction of the function @hex, which a compiler has
 * made.
 */
static void start(const char *hex, bool pre, bool post)
{
    p = (struct kprobe){ .addr = fake_function("fn", hex) };
    fake_compiled(p.addr);
    start_probe(pre, post);
}

/* start_inside - as start(), but put the probe on the second instruction, while the method
 * of the optimizer is @method. The first instruction of @hex is a nop of one byte.
 */
static enum optimize_method method = OPTIMIZE_PUN;

static void start_inside(const char *hex, bool pre, bool post)
{
    uintptr_t fn;

    optimize_set_method(method);
    fn = fake_function("fn", hex);
    fake_compiled(fn);
    p = (struct kprobe){ .addr = fn + 1 };
    start_probe(pre, post);
}

static void release(void)
{
    plat_lock(PLAT_PROBES);
    detour_release(p.site);
    plat_unlock(PLAT_PROBES);
}

static void end(void)
{
    if (p.site)
        CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static enum detour_kind kind(void)
{
    return (enum detour_kind)jump_site(p.site)->kind;
}

/* decode - decode the instruction at @at. Return: the address of the next instruction. */
static uintptr_t decode(uintptr_t at, struct insn *insn)
{
    CHECK_EQ(insn_decode(insn, (const uint8_t *)at, INSN_MAX_LEN, at), 0);
    return insn_next(insn);
}

static uintptr_t skip(uintptr_t at, enum insn_kind expected)
{
    struct insn insn;
    uintptr_t next = decode(at, &insn);

    CHECK_EQ(insn.kind, expected);
    return next;
}

static uintptr_t skip_to(uintptr_t at, enum insn_kind expected, uintptr_t target)
{
    struct insn insn;
    uintptr_t next = decode(at, &insn);

    CHECK_EQ(insn.kind, expected);
    CHECK_EQ(insn.target, target);
    return next;
}

/* finds_its_site - check that the code which a cell calls can find the site by its return
 * address.
 */
static void finds_its_site(uintptr_t return_address)
{
    uintptr_t last = (return_address + 1) | 31;

    CHECK_EQ(*(const uintptr_t *)(last - 7), (uintptr_t)p.site);
}

static uintptr_t detour(void)
{
    return (uintptr_t)site_detour(p.site);
}

/* ---- kinds ---- */

UNIT_TEST(flags_are_restored_whatever_stands_behind)
{
    start_inside("90 48 89 e5 48 01 c8 c3", true, false); /* mov, add */
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
}

UNIT_TEST(flags_that_the_instruction_writes_are_not_restored)
{
    start_inside("90 48 01 c8 c3", true, false); /* add */
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL_DEAD));
    end();
    start_inside("90 d3 e0 c3", true, false); /* shl %cl writes no flags if cl is 0 */
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
    end();
    start_inside("90 ff c0 c3", true, false); /* inc leaves CF alone */
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
}

UNIT_TEST(flags_are_restored_where_a_fixup_may_read_them)
{
    static const char hex[] = "90 48 03 03 c3"; /* add from memory */

    start_inside(hex, true, false);
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL_DEAD));
    release();
    fake_fixup(p.addr);
    CHECK_EQ(prepare(NULL), 0);
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
}

UNIT_TEST(only_compilers_keep_to_the_convention)
{
    p = (struct kprobe){ .addr = fake_function("fn", "48 89 e5 c3") };
    start_probe(true, false);
    skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
}

UNIT_TEST(a_counter_is_one_instruction_where_flags_are_dead)
{
    uint8_t inc[INSN_INC_GS_LEN] = { 0x65, 0x48, 0xff, 0x04, 0x25 };

    start("48 89 e5 48 01 c8 c3", false, false);
    CHECK_EQ(kind(), DETOUR_PROGRAM);
    insn_encode_disp32(inc + 5, (uint32_t)plat_counter_disp(p.counter));
    CHECK(memcmp(site_detour(p.site), inc, sizeof(inc)) == 0);
    CHECK_EQ(detour() + sizeof(inc), (uintptr_t)p.site->boost_slot);
}

UNIT_TEST(a_counter_saves_flags_that_are_live)
{
    uintptr_t at;

    start_inside("90 0f 94 c0 48 01 c8 c3", false, false); /* sete */
    CHECK_BYTES(site_detour(p.site), "50 9f 0f 90 c0 65 48 ff 04 25");
    CHECK_BYTES(site_detour(p.site) + 14, "04 7f 9e 58 0f 94 c0");
    at = detour() + 21;
    skip_to(at, INSN_JMP_REL, p.addr + 3);
}

/* has_cell - is the cell of the detour one of @len bytes, which has the site at its end? */
static bool has_cell(size_t len)
{
    const uint8_t *cell = insn_slot_start(site_detour(p.site));
    size_t off;

    return insn_slot_room(cell) + sizeof(uintptr_t) == len &&
           insn_slot_owner((uintptr_t)cell + len - 1, &off) == p.site && off == len - 1 &&
           *(struct site *const *)(cell + len - 8) == p.site;
}

UNIT_TEST(it_shares_the_cell_and_the_copy_of_a_boost)
{
    static const char *const hex[] = { "90 0f 94 c0 c3", "90 41 50 c3",
                                       "90 48 8b 44 24 08 c3",
                                       "90 64 48 8b 0c 25 08 00 00 00 c3" };

    for (size_t i = 0; i < ARRAY_LEN(hex); i++) {
        start_inside(hex[i], false, false);
        CHECK(jump_site(p.site)->saves_flags && !detour_cell(p.site));
        CHECK(has_cell(INSN_SLOT_COUNTED_LEN));
        CHECK_EQ(detour_start(p.site, (uintptr_t)insn_slot_start(site_detour(p.site))),
                 (uintptr_t)p.site->boost_slot);
        CHECK_EQ(copy_original(detour() + 9), p.addr);
        CHECK_EQ(copy_original((uintptr_t)p.site->boost_slot + p.site->len),
                 p.addr + p.site->len);
        CHECK(link_jump_fits((uintptr_t)p.site->boost_slot + p.site->len));
        end();
    }
}

UNIT_TEST(so_has_one_without_a_boosted_copy)
{
    start_inside("90 74 01 c3 c3", false, false); /* je */
    CHECK(jump_site(p.site)->saves_flags && detour_cell(p.site));
    CHECK(has_cell(INSN_SLOT_COUNTED_LEN));
}

UNIT_TEST(while_no_site_becomes_a_jump_cells_are_short)
{
    method = OPTIMIZE_OFF;
    start_inside("90 0f 94 c0 c3", false, false);
    method = OPTIMIZE_PUN;
    CHECK_EQ(insn_slot_room(insn_slot_start(p.site->boost_slot)), INSN_SLOT_CODE_MAX);
    CHECK(jump_site(p.site)->saves_flags && detour_cell(p.site));
    CHECK(has_cell(INSN_SLOT_COUNTED_LEN)); /* another cell, made with the detour */
    CHECK_EQ(copy_original(detour() + 9), p.addr);
}

UNIT_TEST(handlers_are_not_called_from_such_a_cell)
{
    uintptr_t at;

    start_inside("90 0f 94 c0 48 01 c8 c3", true, false);
    CHECK_EQ(kind(), DETOUR_CALL);
    CHECK(jump_site(p.site)->saves_flags && detour_cell(p.site));
    at = skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
    finds_its_site(at);
}

/* start_return - put a return probe on the function @hex. */
static struct kretprobe rp;

static int no_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static struct site *start_return(const char *hex)
{
    rp = (struct kretprobe){ .kp.addr = fake_function("fn", hex), .handler = no_return };
    fake_compiled(rp.kp.addr);
    CHECK_EQ(register_kretprobe(&rp), 0);
    p.site = rp.kp.site;
    CHECK_EQ(prepare(NULL), 0);
    return p.site;
}

static void end_return(void)
{
    CHECK_EQ(unregister_kretprobe(&rp), 0);
    p.site = NULL;
}

UNIT_TEST(a_followed_function_is_called_where_it_can_return_to)
{
    const struct site *site = start_return("48 89 e5 48 01 c8 c3");
    uintptr_t boosted = (uintptr_t)site->boost_slot, at, cell = detour();

    CHECK_EQ(kind(), DETOUR_RETURN);
    at = skip_to(cell, INSN_CALL_REL, plat_detour(PLAT_DETOUR_RETURN));
    finds_its_site(at);
    at = skip_to(at, INSN_CALL_REL, boosted);
    CHECK_EQ(at, cell + RETURN_POINT_OFF);
    at = skip_to(at, INSN_JMP_REL, (uintptr_t)kretprobe_trampoline);
    finds_its_site(at);
    CHECK_EQ(detour_start(site, cell), at);
    skip_to(at, INSN_JMP_REL, boosted);
    CHECK(detour_cell(site) == site_detour(site));
    rp.kp.flags |= KPROBE_FLAGS_IDLE;
    CHECK(detour_is_current(site));
    rp.kp.flags &= ~KPROBE_FLAGS_IDLE;
    for (uintptr_t ip = cell; ip <= at; ip += INSN_CALL32_LEN) {
        bool is_point = ip == cell + RETURN_POINT_OFF;

        CHECK_EQ(return_point_is(ip), is_point);
        CHECK_EQ(copy_original(ip),
                 is_point ? (uintptr_t)kretprobe_trampoline : rp.kp.addr);
    }
    CHECK(!return_point_is(boosted));
    end_return();
}

UNIT_TEST(what_has_no_boosted_copy_is_not_called)
{
    start_return("74 00 c3");
    CHECK_EQ(kind(), DETOUR_CALL);
    end_return();
}

UNIT_TEST(a_branch_is_copied_unless_a_post_handler_waits_for_it)
{
    uintptr_t at, target;

    start_inside("90 74 10 c3", true, false);
    CHECK_EQ(kind(), DETOUR_CALL);
    target = p.addr + 0x12;
    at = skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALL));
    at = skip_to(at, INSN_JCC, target);
    skip_to(at, INSN_JMP_REL, p.addr + 2);
    end();
    start("74 10 c3", true, true);
    CHECK_EQ(kind(), DETOUR_IMAGE);
    at = skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_IMAGE));
    finds_its_site(at);
}

UNIT_TEST(a_direct_call_has_pushed_already)
{
    uintptr_t at, target;

    start("e8 10 00 00 00 c3", true, false);
    target = p.addr + 0x15;
    at = skip_to(detour(), INSN_CALL_REL, plat_detour(PLAT_DETOUR_CALLED));
    finds_its_site(at);
    skip_to(at, INSN_JMP_REL, target);
    end();
    start("e8 10 00 00 00 c3", false, false);
    target = p.addr + 0x15;
    at = skip(detour(), INSN_OTHER); /* inc */
    skip_to(at, INSN_JMP_REL, target);
    CHECK_EQ(copy_original(detour()), target);
}

UNIT_TEST(what_no_copy_can_do_is_done_to_the_image)
{
    static const char *const hex[] = { "ff d0 c3", "ff 10 c3", "9d c3", "fb 90 c3" };

    for (size_t i = 0; i < sizeof(hex) / sizeof(hex[0]); i++) {
        start(hex[i], false, false);
        CHECK_EQ(kind(), DETOUR_IMAGE);
        CHECK_EQ(copy_original(detour()), p.addr);
        CHECK_EQ(copy_original(detour() + INSN_CALL32_LEN), p.addr);
        end();
    }
}

/* ---- coming and going ---- */

UNIT_TEST(it_is_current_until_the_probes_change)
{
    struct kprobe other = { .pre_handler = no_pre };

    start("48 89 e5 c3", false, false);
    CHECK(detour_is_current(p.site));
    CHECK_EQ(prepare(NULL), 0); /* nothing to do */
    other.addr = p.addr;
    CHECK_EQ(register_kprobe(&other), 0);
    CHECK(!detour_is_current(p.site));
    CHECK(FAKE_BUG(detour_prepare(p.site, NULL)));
    release();
    CHECK(!site_detour(p.site) && !detour_is_current(p.site));
    CHECK_EQ(*(p.site->boost_slot - 1), INSN_INT3);
    CHECK_EQ(prepare(NULL), 0);
    CHECK_EQ(kind(), DETOUR_CALL);
    CHECK(detour_is_current(p.site));
    CHECK_EQ(unregister_kprobe(&other), 0);
    CHECK(!detour_is_current(p.site)); /* a counter would do now */
}

UNIT_TEST(a_counter_counts_for_one_probe_only)
{
    uint32_t counter;

    start("48 89 e5 c3", false, false);
    counter = p.counter;
    p.counter++;
    CHECK(!detour_is_current(p.site));
    p.counter = counter;
}

UNIT_TEST(a_disabled_probe_leaves_the_copy_alone)
{
    start("48 89 e5 c3", true, false);
    release();
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_EQ(prepare(NULL), 0);
    CHECK_EQ(kind(), DETOUR_NONE);
    CHECK(site_detour(p.site) == p.site->boost_slot);
}

UNIT_TEST(what_is_counted_is_the_probes_also_afterwards)
{
    start("48 89 e5 c3", false, false);
    plat_probe_cpu(0)->plat.counters[p.counter] = 3;
    CHECK_EQ(kprobe_hits(&p), 3);
    CHECK_EQ(p.hits, 0);
    end();
    CHECK_EQ(p.hits, 3);
    CHECK_EQ(kprobe_hits(&p), 3);
}

UNIT_TEST(an_operand_must_be_in_reach_of_all_cells)
{
    struct insn insn;

    decode(fake_function("near", "48 8d 05 00 00 00 00 c3"), &insn); /* lea (%rip),%rax */
    CHECK(detour_can_reach(&insn));
    decode(fake_function("far", "48 8d 05 00 00 00 80 c3"), &insn);
    CHECK(!detour_can_reach(&insn));
}

UNIT_TEST(out_of_reach_or_memory_there_is_none)
{
    struct probe_reject why;

    start("0f 94 c0 c3", true, false);
    release();
    fake.detours_far = true;
    CHECK_EQ(prepare(&why), -ERANGE);
    CHECK_EQ(why.reason, PROBE_OUT_OF_REACH);
    CHECK(!site_detour(p.site));
    fake.detours_far = false;
    CHECK_EQ(prepare(&why), 0);
    end();
    fake_start();
    p = (struct kprobe){ .addr = fake_function("fn", "74 00 c3") };
    CHECK_EQ(register_kprobe(&p), 0);
    for (unsigned n = 1; n <= 3; n++) {
        fake_fail_at(n);
        CHECK_EQ(prepare(&why), -ENOMEM);
        CHECK(fake_failed() && !site_detour(p.site));
    }
    fake_fail_at(0);
    CHECK_EQ(prepare(&why), 0);
}

/* A CPU may give up the handler after the engine has decided to keep the detour. Then
 * detour_prepare() must accept the old detour.
 */
UNIT_TEST(a_handler_may_be_given_up_at_any_moment)
{
    struct probe_reject why;
    const uint8_t *detour;

    start("48 8d 7f 01 90 c3", true, false);
    detour = site_detour(p.site);
    CHECK(detour);
    p.flags |= KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED;
    CHECK_EQ(prepare(&why), 0);
    CHECK(site_detour(p.site) == detour);
    p.flags &= ~(KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED);
}

UNIT_TEST(kinds_have_names)
{
    CHECK_STR(detour_kind_name(DETOUR_PROGRAM), "program");
    CHECK_STR(detour_kind_name(DETOUR_KINDS), "?");
}

UNIT_TESTS_BETWEEN(fake_start, end)
