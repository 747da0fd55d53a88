/* test_link.c - tests of links: when a detour is linked to the next one, and that the
 * link is cut before the text changes.
 */
#include "probes/jump/link.h"

#include "kernel/base/bits.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/unit/port_fake.h"

/* Each instruction has five bytes or more, so that no jump reads bytes of the next one:
 * mov, lea, mov, and a call.
 */
#define FUNCTION                                                                         \
    "48 c7 c0 01 00 00 00 48 8d 44 38 01 48 c7 c1 02 00 00 00 e8 00 00 00 00 "           \
    "48 c7 c2 03 00 00 00 c3"

enum { FIRST, SECOND, THIRD, CALL, BEHIND, COUNT };
static const unsigned offs[COUNT] = { 0, 7, 12, 19, 24 };
static struct kprobe probes[COUNT];
static struct kprobe *pointers[COUNT];

static void start(void)
{
    uintptr_t text;

    fake_start();
    text = fake_function("fn", FUNCTION);
    for (size_t i = 0; i < COUNT; i++) {
        probes[i] = (struct kprobe){ .addr = text + offs[i] };
        pointers[i] = &probes[i];
    }
    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
}

static void start_all(void)
{
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    optimize_run();
}

static void end(void)
{
    CHECK(fake_text_is_original());
    CHECK_EQ(link_count(), 0);
    fake_end();
}

static void end_all(void)
{
    unregister_kprobes(pointers, COUNT);
    end();
}

static bool is_jump(int i)
{
    return probes[i].site->state == SITE_OPTIMIZED;
}

/* leads_to - return the target of the jump behind the copy, in the detour of
 * probes[i].
 */
static uintptr_t leads_to(int i)
{
    const struct site *site = probes[i].site;
    uintptr_t cell = (uintptr_t)insn_slot_start(site_detour(site));
    uintptr_t at = detour_start(site, cell) + site->len;

    return insn_jmp32_target((const uint8_t *)at, at);
}

static bool is_linked(int i)
{
    return leads_to(i) == (uintptr_t)site_detour(probes[i + 1].site);
}

static bool is_not_linked(int i)
{
    return leads_to(i) == probes[i + 1].addr;
}

UNIT_TEST(jumps_in_a_row_are_linked)
{
    start_all();
    CHECK(is_linked(FIRST) && is_linked(SECOND));
    CHECK_EQ(link_count(), 2);
    CHECK_EQ(insn_jmp32_target((const uint8_t *)link_into(probes[SECOND].addr),
                               link_into(probes[SECOND].addr)),
             (uintptr_t)site_detour(probes[SECOND].site));
    CHECK_EQ(link_into(probes[FIRST].addr), 0);
}

/* The detour of a call expects the return address on the stack. */
UNIT_TEST(a_call_is_not_jumped_into)
{
    start_all();
    CHECK(is_jump(CALL) && is_jump(THIRD));
    CHECK(is_not_linked(THIRD));
    CHECK_EQ(link_into(probes[CALL].addr), 0);
    CHECK_EQ(link_into(probes[BEHIND].addr), 0);
}

/* ---- coming ---- */

static unsigned syncs, early, before_jump, late;

static void look_coming(void)
{
    if (!syncs++)
        early += link_count() != 0;
    before_jump += link_count() && *(const uint8_t *)probes[FIRST].addr == INSN_INT3;
}

/* Links are made after the first synchronisation, when all CPUs see the complete detours.
 * They are made before the jumps are written, because the code that makes links may
 * itself run through these jumps.
 */
UNIT_TEST(are_made_before_the_jumps)
{
    syncs = early = before_jump = 0;
    fake.on_sync = look_coming;
    CHECK_EQ(register_kprobes(pointers, COUNT), 0);
    fake.on_sync = NULL;
    CHECK(syncs && !early && before_jump);
    CHECK(is_linked(FIRST) && is_linked(SECOND));
}

/* ---- going ---- */

/* look - count the synchronisations at which the first detour is still linked. There must
 * be none: after the first one no CPU may take the link.
 */
static void look(void)
{
    late += !is_not_linked(FIRST);
    syncs++;
}

static void start_look(void)
{
    start_all();
    syncs = late = 0;
    fake.on_sync = look;
}

UNIT_TEST(is_cut_before_the_text_changes)
{
    start_look();
    CHECK_EQ(disable_kprobe(&probes[SECOND]), 0);
    fake.on_sync = NULL;
    CHECK(syncs && !late);
    CHECK(is_not_linked(FIRST));
    CHECK_EQ(link_into(probes[SECOND].addr), 0);
    CHECK_EQ(enable_kprobe(&probes[SECOND]), 0);
    optimize_run();
    CHECK(is_linked(FIRST) && is_linked(SECOND));
}

UNIT_TEST(is_cut_before_a_breakpoint_comes)
{
    start_look();
    CHECK_EQ(optimize_switch(false), 0);
    fake.on_sync = NULL;
    CHECK(syncs && !late);
    CHECK_EQ(link_count(), 0);
    CHECK_EQ(optimize_switch(true), 0);
    CHECK_EQ(link_count(), 2);
}

/* The new detour is at another address, and the link must lead to that. */
UNIT_TEST(follows_when_the_detour_changes)
{
    struct kprobe more = { .pre_handler = no_pre };
    const uint8_t *before;

    start_all();
    before = site_detour(probes[SECOND].site);
    more.addr = probes[SECOND].addr;
    CHECK_EQ(register_kprobe(&more), 0);
    optimize_run();
    CHECK(site_detour(probes[SECOND].site) != before);
    CHECK(is_linked(FIRST) && is_linked(SECOND));
    CHECK_EQ(unregister_kprobe(&more), 0);
    optimize_run();
    CHECK(is_linked(FIRST) && is_linked(SECOND));
}

/* A set becomes jumps at once, without being breakpoints before. FIRST has no link, since
 * SECOND is still disabled.
 */
UNIT_TEST(a_set_that_comes_back_leads_nowhere_else)
{
    struct kprobe *two[] = { &probes[FIRST], &probes[THIRD] };

    start_all();
    CHECK_EQ(disable_kprobes(pointers, CALL), 0);
    CHECK_EQ(enable_kprobes(two, 2), 0);
    CHECK(is_jump(FIRST) && is_not_linked(FIRST));
}

/* A thread in the detour of FIRST goes on in the text, not in another old detour. */
UNIT_TEST(is_cut_when_both_jumps_go)
{
    start_look();
    CHECK_EQ(disable_kprobes(pointers, CALL), 0);
    fake.on_sync = NULL;
    CHECK(syncs && !late);
    CHECK(is_not_linked(FIRST) && is_not_linked(SECOND));
    CHECK_EQ(link_count(), 0);
}

/* ---- bytes ---- */

/* The length of a copy decides where the jump behind it lies, and whether one store can
 * change its displacement.
 */
UNIT_TEST(copies_of_all_lengths_are_linked)
{
    static const char *const functions[] = {
        "0f 1f 44 00 00 0f 1f 44 00 00 c3",
        "66 0f 1f 44 00 00 0f 1f 44 00 00 c3",
        "0f 1f 80 00 00 00 00 0f 1f 44 00 00 c3",
        "0f 1f 84 00 00 00 00 00 0f 1f 44 00 00 c3",
        "66 0f 1f 84 00 00 00 00 00 0f 1f 44 00 00 c3",
        "66 2e 0f 1f 84 00 00 00 00 00 0f 1f 44 00 00 c3",
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        struct kprobe first = { 0 }, second = { 0 };

        fake_start();
        CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
        first.addr = fake_function("fn", functions[i]);
        second.addr = first.addr + 5 + i;
        CHECK_EQ(register_kprobe(&first), 0);
        CHECK_EQ(register_kprobe(&second), 0);
        optimize_run();
        CHECK_EQ(link_count(), 1);
        CHECK_EQ(unregister_kprobe(&first), 0);
        CHECK_EQ(unregister_kprobe(&second), 0);
        end();
    }
}

UNIT_TEST(displacements_lie_in_one_word)
{
    for (uintptr_t at = 0; at < 64; at++) {
        uintptr_t disp = at + link_room_before(at) + 1;

        CHECK(link_jump_fits(disp - 1));
        CHECK_EQ(align_down(disp, 8), align_down(disp + 3, 8));
        CHECK(link_room_before(at) <= 3);
    }
}

UNIT_TESTS_BETWEEN(start, end_all)
