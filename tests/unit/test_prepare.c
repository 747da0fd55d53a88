/* test_prepare.c - tests of kprobe_prepare(): the way in which an instruction will be
 * run, its cells, and operands that cells cannot reach.
 */
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "tests/unit/probes.h"

#include <stdio.h>
#include <string.h>

UNIT_TEST(the_copy_is_the_instruction_and_a_jump_back)
{
    struct kprobe p = { .pre_handler = no_pre };
    const uint8_t *slot;
    int32_t disp;

    p.addr = fake_function("fn", "48 89 e5 c3");
    CHECK_EQ(add(&p), 0);
    slot = p.site->boost_slot;
    CHECK_BYTES(slot, "48 89 e5 e9");
    memcpy(&disp, slot + 4, 4);
    CHECK_EQ((uintptr_t)slot + 8 + (uintptr_t)(intptr_t)disp, p.addr + 3);
    CHECK_EQ(slot[8], 0xcc);
    CHECK_EQ(p.site->way, WAY_BOOST);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(so_has_sti_in_front_of_a_branch)
{
    struct kprobe p = { .addr = fake_function("fn", "fb c3"), .pre_handler = no_pre };

    CHECK_EQ(add(&p), 0);
    CHECK_BYTES(site_pair(p.site)->slot, "fb c3 e9");
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TEST(sti_whose_successor_cannot_be_moved_stands_alone)
{
    static const char *const alone[] = { "fb 8e d0 c3", "fb" };

    for (size_t i = 0; i < 2; i++) {
        struct kprobe p = { .pre_handler = no_pre };

        fake_start();
        p.addr = fake_function("fn", alone[i]);
        CHECK_EQ(add(&p), 0);
        CHECK(!site_pair(p.site)->slot && !site_pair(p.site)->site);
        CHECK_BYTES(p.site->boost_slot, "fb e9");
        CHECK_EQ(unregister_kprobe(&p), 0);
        fake_end();
    }
}

UNIT_TEST(no_post_handler_behind_what_traps_go_by)
{
    static const char *const tables[] = { "0f 01 10 c3", "0f 01 1d 00 00 00 00 c3" };

    for (size_t i = 0; i < 2; i++) {
        struct kprobe pre = { .pre_handler = no_pre };
        struct kprobe post = { .post_handler = no_post };

        fake_start();
        pre.addr = post.addr = fake_function("fn", tables[i]);
        CHECK_REFUSED(&post, NO_STEP);
        CHECK_EQ(why.err, -EOPNOTSUPP);
        CHECK_EQ(add(&pre), 0);
        CHECK_REFUSED(&post, NO_STEP);
        CHECK_EQ(pre.site->way, WAY_BOOST);
        CHECK_EQ(unregister_kprobe(&pre), 0);
        fake_end();
    }
}

UNIT_TEST(an_operand_out_of_reach_is_refused)
{
    struct kprobe p = { .symbol_name = "fn" };

    /* lea -0x80000000(%rip),%rax: the cells lie above the text, so the operand is too far
     * from them. */
    fake_function("fn", "48 8d 05 00 00 00 80 c3");
    CHECK_REFUSED(&p, OUT_OF_REACH);
    CHECK_EQ(why.err, -ERANGE);
}

/* The cell of the boosted copy reaches the operand. The cell for steps is behind it, and
 * does not.
 */
UNIT_TEST(a_step_cell_out_of_reach_leaves_the_site_as_it_was)
{
    uintptr_t fn = (fake_bytes_at("90") + 16) & ~(uintptr_t)15, target;
    uint8_t hex[64];
    struct kprobe a = { .symbol_name = "fn", .pre_handler = no_pre };
    struct kprobe b = { .symbol_name = "fn", .post_handler = no_post };
    int64_t disp;

    target = fake_exec_start() + INSN_SLOT_LEN + INSN_INC_GS_LEN + 7 - 0x80000000u;
    disp = (int64_t)(target - (fn + 7));
    snprintf((char *)hex, sizeof(hex), "48 8d 05 %02x %02x %02x %02x c3",
             (unsigned)disp & 0xff, (unsigned)(disp >> 8) & 0xff,
             (unsigned)(disp >> 16) & 0xff, (unsigned)(disp >> 24) & 0xff);
    CHECK_EQ(fake_function("fn", (const char *)hex), fn);
    CHECK_EQ(add(&a), 0);
    for (int twice = 0; twice < 2; twice++) {
        CHECK_REFUSED(&b, OUT_OF_REACH);
        CHECK_EQ(a.site->way, WAY_BOOST);
        CHECK(a.site->step_slot == NULL);
    }
    CHECK_EQ(unregister_kprobe(&a), 0);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
