/* test_prepare.c - tests of kprobe_prepare(): the way in which an instruction will be
 * run, its cells, and operands that cells cannot reach.
 */
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "tests/unit/probes.h"

#include <stdio.h>
#include <string.h>

static void the_copy_is_the_instruction_and_a_jump_back(void)
{
    struct kprobe p = { .pre_handler = no_pre };
    const uint8_t *slot;
    int32_t disp;

    fake_start();
    p.addr = fake_function("fn", "48 89 e5 c3");
    CHECK_EQ(add(&p), 0);
    slot = p.site->boost_slot;
    CHECK_BYTES(slot, "48 89 e5 e9");
    memcpy(&disp, slot + 4, 4);
    CHECK_EQ((uintptr_t)slot + 8 + (uintptr_t)(intptr_t)disp, p.addr + 3);
    CHECK_EQ(slot[8], 0xcc);
    CHECK_EQ(p.site->way, WAY_BOOST);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void what_is_emulated_needs_no_cell(void)
{
    struct kprobe p = { .pre_handler = no_pre, .post_handler = no_post };

    fake_start();
    p.addr = fake_function("fn", "c3");
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(p.site->way, WAY_EMULATE);
    CHECK_EQ(insn_slot_pages(), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void a_post_handler_asks_for_steps_as_long_as_it_is_there(void)
{
    struct kprobe pre = { .pre_handler = no_pre };
    struct kprobe post = { .post_handler = no_post };

    fake_start();
    pre.addr = post.addr = fake_function("fn", "48 89 e5 c3");
    CHECK_EQ(add(&pre), 0);
    CHECK_EQ(pre.site->way, WAY_BOOST);
    CHECK_EQ(add(&post), 0);
    CHECK_EQ(pre.site->way, WAY_STEP);
    CHECK_BYTES(pre.site->step_slot, "48 89 e5 cc");
    CHECK_EQ(unregister_kprobe(&post), 0);
    CHECK_EQ(pre.site->way, WAY_BOOST);
    CHECK_EQ(unregister_kprobe(&pre), 0);
    fake_end();
}

static void sti_has_a_copy_together_with_its_successor(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "fb 48 89 e5 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_BYTES(site_pair(p.site)->slot, "fb 48 89 e5 e9");
    CHECK_BYTES(p.site->boost_slot, "fb e9");
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void so_has_sti_in_front_of_a_branch(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "fb c3");
    CHECK_EQ(add(&p), 0);
    CHECK_BYTES(site_pair(p.site)->slot, "fb c3 e9");
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void in_front_of_a_call_it_is_emulated_with_it(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "fb e8 00 00 00 00 c3");
    CHECK_EQ(add(&p), 0);
    CHECK(site_pair(p.site)->slot == NULL);
    CHECK_EQ(site_pair(p.site)->site->addr, p.addr + 1);
    CHECK_EQ(site_pair(p.site)->site->emul.kind, INSN_CALL_REL);
    CHECK_BYTES(p.site->boost_slot, "fb e9");
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void sti_whose_successor_cannot_be_moved_stands_alone(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "fb 8e d0 c3");
    CHECK_EQ(add(&p), 0);
    CHECK(!site_pair(p.site)->slot && !site_pair(p.site)->site);
    CHECK_BYTES(p.site->boost_slot, "fb e9");
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void no_post_handler_behind_what_traps_go_by(void)
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

static void a_step_cell_for_an_armed_site_is_known_before_it_is_used(void)
{
    struct kprobe a = { .pre_handler = no_pre }, b = { .post_handler = no_post };

    fake_start();
    a.addr = b.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&a), 0);
    fake_log_start(a.addr);
    CHECK_EQ(add(&b), 0);
    CHECK_STR(fake_log(), "cell sync");
    CHECK_EQ(unregister_kprobe(&a), 0);
    CHECK_EQ(unregister_kprobe(&b), 0);
    fake_end();
}

static void an_operand_out_of_reach_is_refused(void)
{
    struct kprobe p = { .symbol_name = "fn" };

    fake_start();
    /* lea -0x80000000(%rip),%rax: the cells lie above the text, so the operand is too far
     * from them. */
    fake_function("fn", "48 8d 05 00 00 00 80 c3");
    CHECK_REFUSED(&p, OUT_OF_REACH);
    CHECK_EQ(why.err, -ERANGE);
    fake_end();
}

/* The cell of the boosted copy reaches the operand. The cell for steps is behind it, and
 * does not.
 */
static void a_step_cell_out_of_reach_leaves_the_site_as_it_was(void)
{
    uintptr_t fn, target;
    uint8_t hex[64];
    struct kprobe a = { .symbol_name = "fn", .pre_handler = no_pre };
    struct kprobe b = { .symbol_name = "fn", .post_handler = no_post };
    int64_t disp;

    fake_start();
    fn = (fake_bytes_at("90") + 16) & ~(uintptr_t)15;
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
    fake_end();
}

UNIT_TESTS(the_copy_is_the_instruction_and_a_jump_back, what_is_emulated_needs_no_cell,
           a_post_handler_asks_for_steps_as_long_as_it_is_there,
           sti_has_a_copy_together_with_its_successor, so_has_sti_in_front_of_a_branch,
           in_front_of_a_call_it_is_emulated_with_it,
           sti_whose_successor_cannot_be_moved_stands_alone,
           no_post_handler_behind_what_traps_go_by,
           a_step_cell_for_an_armed_site_is_known_before_it_is_used,
           an_operand_out_of_reach_is_refused,
           a_step_cell_out_of_reach_leaves_the_site_as_it_was)
