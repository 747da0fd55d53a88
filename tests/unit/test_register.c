/* test_register.c - probes come in and go out: refusals, sets, order of the steps, and what
 * is left when memory runs out half way.
 */
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "probes/jump/optimize.h"
#include "tests/unit/port_fake.h"

#include <stdio.h>
#include <string.h>

static struct probe_reject why;

static int no_pre(struct kprobe *p, struct pt_regs *regs)
{
    (void)p;
    (void)regs;
    return 0;
}

static void no_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
    (void)p;
    (void)regs;
    (void)flags;
}

static int add(struct kprobe *p)
{
    why = (struct probe_reject){ 0 };
    return register_kprobe_why(p, &why);
}

#define CHECK_REFUSED(p, reason_name)                                                    \
    do {                                                                                 \
        CHECK(add(p) < 0);                                                               \
        CHECK_STR(probe_reason_name(why.reason), #reason_name);                          \
        CHECK((p)->site == NULL);                                                        \
    } while (0)

static uint8_t byte_at(uintptr_t addr)
{
    return *(const uint8_t *)addr;
}

/* ---- in and out ---- */

static void armed_means_int3_in_the_text(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 48 89 e5 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_BYTES((const uint8_t *)p.addr, "cc 48 89 e5 c3");
    CHECK_EQ(p.site->state, SITE_ARMED);
    CHECK(registry_find(p.addr) == p.site);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_BYTES((const uint8_t *)p.addr, "55 48 89 e5 c3");
    CHECK(p.site == NULL);
    CHECK(registry_find(p.addr) == NULL);
    fake_end();
}

static void by_symbol_and_offset(void)
{
    struct kprobe p = { .symbol_name = "fn", .offset = 1 };
    uintptr_t fn;

    fake_start();
    fn = fake_function("fn", "55 48 89 e5 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(p.addr, fn + 1);
    CHECK_EQ(byte_at(fn + 1), 0xcc);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void by_address_and_offset(void)
{
    struct kprobe p = { .offset = 4 };
    uintptr_t fn;

    fake_start();
    fn = fake_function("fn", "55 48 89 e5 c3");
    p.addr = fn;
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(p.addr, fn + 4);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

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

static void many_at_one_address_share_a_site(void)
{
    struct kprobe p[3];
    struct site *site;

    fake_start();
    memset(p, 0, sizeof(p));
    p[0].addr = p[1].addr = p[2].addr = fake_function("fn", "55 c3");
    for (int i = 0; i < 3; i++)
        CHECK_EQ(add(&p[i]), 0);
    site = p[0].site;
    CHECK(p[1].site == site && p[2].site == site);
    CHECK_EQ(registry_count(), 1);
    CHECK_EQ(unregister_kprobe(&p[0]), 0);
    CHECK_EQ(unregister_kprobe(&p[2]), 0);
    CHECK_EQ(byte_at(p[1].addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&p[1]), 0);
    fake_end();
}

/* ---- the order of the steps ---- */

static void the_cell_is_written_and_known_before_anyone_can_be_sent_there(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    fake_log_start(p.addr);
    CHECK_EQ(add(&p), 0);
    CHECK_STR(fake_log(), "header cell found sync int3 sync");
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void out_is_disarm_wait_unpublish_wait_free(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    fake_log_start(p.addr);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_STR(fake_log(), "original sync quiesce lost sync clear free sync");
    fake_end();
}

/* What a jump has needed is given back when no hit can find the site any more. */
static void a_detour_is_freed_when_its_site_is_lost(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    p.addr = fake_function("fn", "48 c7 c0 01 00 00 00 c3");
    CHECK_EQ(add(&p), 0);
    optimize_run();
    CHECK_EQ(p.site->state, SITE_OPTIMIZED);
    fake_log_start(p.addr);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_STR(fake_log(),
              "int3 sync original original original sync original sync quiesce "
              "lost sync clear clear free sync");
    fake_end();
}

static void one_of_several_goes_after_quiescence_and_the_text_stays(void)
{
    struct kprobe a = { .pre_handler = no_pre }, b = { .pre_handler = no_pre };

    fake_start();
    a.addr = b.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&a), 0);
    CHECK_EQ(add(&b), 0);
    fake_log_start(a.addr);
    CHECK_EQ(unregister_kprobe(&a), 0);
    CHECK_STR(fake_log(), "quiesce");
    CHECK_EQ(byte_at(b.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&b), 0);
    fake_end();
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

static void a_second_probe_touches_no_text(void)
{
    struct kprobe a = { .pre_handler = no_pre }, b = { .pre_handler = no_pre };

    fake_start();
    a.addr = b.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&a), 0);
    fake_log_start(a.addr);
    CHECK_EQ(add(&b), 0);
    CHECK_STR(fake_log(), "");
    CHECK_EQ(unregister_kprobe(&a), 0);
    CHECK_EQ(unregister_kprobe(&b), 0);
    fake_end();
}

/* ---- on and off ---- */

static void disabled_at_birth_it_is_not_armed(void)
{
    struct kprobe p = { .pre_handler = no_pre, .flags = KPROBE_FLAG_DISABLED };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(byte_at(p.addr), 0x55);
    fake_log_start(p.addr);
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_STR(fake_log(), "sync int3 sync");
    fake_log_start(p.addr);
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_STR(fake_log(), "original sync");
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_EQ(byte_at(p.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void disabling_one_of_two_leaves_the_other(void)
{
    struct kprobe a = { .pre_handler = no_pre }, b = { .pre_handler = no_pre };

    fake_start();
    a.addr = b.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&a), 0);
    CHECK_EQ(add(&b), 0);
    CHECK_EQ(disable_kprobe(&a), 0);
    CHECK_EQ(byte_at(a.addr), 0xcc);
    CHECK_EQ(disable_kprobe(&b), 0);
    CHECK_EQ(byte_at(a.addr), 0x55);
    CHECK_EQ(enable_kprobe(&a), 0);
    CHECK_EQ(byte_at(a.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&a), 0);
    CHECK_EQ(byte_at(a.addr), 0x55);
    CHECK_EQ(unregister_kprobe(&b), 0);
    fake_end();
}

static void twice_on_or_off_is_once(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    fake_log_start(p.addr);
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_STR(fake_log(), "");
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_STR(fake_log(), "original sync");
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void enabling_forgives_a_tripped_probe(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    p.flags |= KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED;
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK_EQ(byte_at(p.addr), 0x55);
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_EQ(p.flags, 0);
    CHECK_EQ(byte_at(p.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void only_what_is_registered_can_be_switched(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(enable_kprobe(&p), -EINVAL);
    CHECK_EQ(disable_kprobe(&p), -EINVAL);
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(enable_kprobe(&p), -EINVAL);
    fake_end();
}

/* ---- refusals ---- */

static void neither_or_both_places_are_refused(void)
{
    struct kprobe neither = { .pre_handler = no_pre };
    struct kprobe both = { .symbol_name = "fn", .addr = 1 };

    fake_start();
    fake_function("fn", "c3");
    CHECK_REFUSED(&neither, MALFORMED);
    CHECK_REFUSED(&both, MALFORMED);
    fake_end();
}

#define NOPS 2000

static const char *nops(void)
{
    static char hex[3 * NOPS + 1];

    for (int i = 0; i < NOPS; i++)
        memcpy(hex + 3 * i, "90 ", 4);
    return hex;
}

/* The address would be 0, which is what a grave of the registry has. */
static void an_offset_that_wraps_is_no_place(void)
{
    struct kprobe stays = { .symbol_name = "fn" };

    fake_start();
    fake_function("fn", "90 c3");
    fake_function("nops", nops());
    CHECK_EQ(add(&stays), 0);
    for (unsigned i = 0; i < NOPS; i++) {
        struct kprobe digs = { .symbol_name = "nops", .offset = i };
        struct kprobe p = { .addr = UINTPTR_MAX - 3, .offset = 4 };

        CHECK_EQ(add(&digs), 0);
        CHECK_EQ(unregister_kprobe(&digs), 0);
        CHECK_REFUSED(&p, NOT_TEXT);
    }
    CHECK_EQ(unregister_kprobe(&stays), 0);
    fake_end();
}

static void flags_of_the_engine_are_refused(void)
{
    static const uint32_t flags[] = { KPROBE_FLAG_GONE, KPROBE_FLAG_OPTIMIZED,
                                      KPROBE_FLAG_TRIPPED, 1u << 31 };

    for (size_t i = 0; i < 4; i++) {
        struct kprobe p = { .flags = flags[i] };

        fake_start();
        p.addr = fake_function("fn", "c3");
        CHECK_REFUSED(&p, BAD_FLAGS);
        fake_end();
    }
}

static void no_light(struct kprobe *p, uintptr_t ip)
{
    (void)p;
    (void)ip;
}

static void one_of_two_kinds_of_handlers(void)
{
    struct kprobe p = { .pre_handler = no_pre, .light_handler = no_light };

    fake_start();
    p.addr = fake_function("fn", "c3");
    CHECK_REFUSED(&p, TWO_HANDLERS);
    fake_end();
}

static void names_are_looked_up(void)
{
    struct kprobe unknown = { .symbol_name = "nowhere" };
    struct kprobe twice = { .symbol_name = "twice" };
    struct kprobe past = { .symbol_name = "fn", .offset = 2 };

    fake_start();
    fake_function("twice", "c3");
    fake_function("twice", "c3");
    fake_function("fn", "90 c3");
    CHECK_REFUSED(&unknown, NO_SYMBOL);
    CHECK_REFUSED(&twice, NOT_UNIQUE);
    CHECK_REFUSED(&past, PAST_END);
    CHECK_EQ(why.err, -ENOENT);
    fake_end();
}

static void what_the_check_refuses_is_refused(void)
{
    struct kprobe middle = { .symbol_name = "fn", .offset = 1 };
    struct kprobe trap = { .symbol_name = "trap" };

    fake_start();
    fake_function("fn", "48 89 e5 c3");
    fake_function("trap", "cc");
    CHECK_REFUSED(&middle, NOT_BOUNDARY);
    CHECK(why.at == middle.addr - 1 || middle.addr == 0);
    CHECK_REFUSED(&trap, TRAP_INSN);
    fake_end();
}

static void a_refused_probe_is_given_back_as_it_came(void)
{
    struct kprobe p = { .symbol_name = "fn", .offset = 1 };
    struct kprobe before = p;

    fake_start();
    fake_function("fn", "48 89 e5 c3");
    CHECK_REFUSED(&p, NOT_BOUNDARY);
    CHECK(memcmp(&p, &before, sizeof(p)) == 0);
    fake_end();
}

static void an_operand_out_of_reach_is_refused(void)
{
    struct kprobe p = { .symbol_name = "fn" };

    fake_start();
    /* lea -0x80000000(%rip),%rax: the cells lie above the text */
    fake_function("fn", "48 8d 05 00 00 00 80 c3");
    CHECK_REFUSED(&p, OUT_OF_REACH);
    CHECK_EQ(why.err, -ERANGE);
    fake_end();
}

/* The first cell still reaches the operand, the second one does not. */
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

static void twice_the_same_probe_is_refused(void)
{
    struct kprobe p = { .pre_handler = no_pre };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(add(&p), -EEXIST);
    CHECK_EQ(why.reason, PROBE_REGISTERED);
    CHECK_EQ(unregister_kprobe(&p), 0);
    fake_end();
}

static void what_is_not_registered_cannot_be_taken_out(void)
{
    struct kprobe p = { .pre_handler = no_pre };
    struct kprobe garbage;

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(unregister_kprobe(&p), -EINVAL);
    CHECK_EQ(add(&p), 0);
    memset(&garbage, 0x5a, sizeof(garbage));
    CHECK_EQ(unregister_kprobe(&garbage), -EINVAL);
    garbage = p; /* looks right, but is not registered */
    CHECK_EQ(unregister_kprobe(&garbage), -EINVAL);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_EQ(unregister_kprobe(&p), -EINVAL);
    fake_end();
}

static void not_from_an_interrupt_and_not_from_an_nmi(void)
{
    struct kprobe p = { .pre_handler = no_pre };
    struct kprobe in = { .pre_handler = no_pre };

    fake_start();
    p.addr = in.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&in), 0);
    fake.context = PLAT_IRQ;
    CHECK_EQ(add(&p), -EDEADLK);
    CHECK_EQ(why.reason, PROBE_BAD_CONTEXT);
    CHECK_EQ(unregister_kprobe(&in), -EDEADLK);
    CHECK_EQ(disable_kprobe(&in), -EDEADLK);
    fake.context = PLAT_THREAD;
    FAKE_DEPTHS.nmi = 1;
    CHECK_EQ(add(&p), -EDEADLK);
    FAKE_DEPTHS.nmi = 0;
    CHECK_EQ(unregister_kprobe(&in), 0);
    fake_end();
}

/* ---- sets ---- */

#define SET 6

static struct kprobe set[SET], *ptrs[SET];

/* Six probes; two of them share an address, two want post-handlers. */
static void set_make(void)
{
    uintptr_t fn = fake_function("set", "55 48 89 e5 50 e8 00 00 00 00 90 58 5d c3");
    static const unsigned offsets[SET] = { 0, 1, 4, 4, 5, 10 };

    memset(set, 0, sizeof(set));
    for (int i = 0; i < SET; i++) {
        set[i].addr = fn + offsets[i];
        set[i].pre_handler = no_pre;
        ptrs[i] = &set[i];
    }
    set[3].post_handler = no_post;
    set[5].post_handler = no_post;
}

static bool set_is_out(void)
{
    for (int i = 0; i < SET; i++)
        if (set[i].site)
            return false;
    return registry_count() == 0 && fake_text_is_original();
}

static void a_set_goes_in_with_one_round_and_out_with_one(void)
{
    fake_start();
    set_make();
    fake_log_start(0);
    CHECK_EQ(register_kprobes(ptrs, SET), 0);
    CHECK_STR(fake_log(), "header cell cell cell cell cell cell "
                          "sync int3 int3 int3 int3 int3 sync");
    fake.quiesces = 0;
    fake_log_start(0);
    CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
    CHECK_EQ(fake.quiesces, 1);
    CHECK_STR(fake_log(), "original original original original original sync quiesce "
                          "sync clear clear clear clear clear clear sync");
    CHECK(set_is_out());
    fake_end();
}

static void a_set_with_one_bad_element_leaves_nothing(void)
{
    for (int bad_one = 0; bad_one < SET; bad_one++) {
        fake_start();
        set_make();
        set[bad_one].offset = 1; /* the middle of something, or past the end */
        if (bad_one == 0)
            set[bad_one].offset = 2;
        if (bad_one == 2 || bad_one == 3 || bad_one == 5)
            set[bad_one].flags = KPROBE_FLAG_GONE;
        fake_log_start(0);
        CHECK(register_kprobes_why(ptrs, SET, &why) < 0);
        CHECK(strstr(fake_log(), "int3") == NULL);
        CHECK(set_is_out());
        set[bad_one].offset = set[bad_one].flags = 0;
        CHECK_EQ(register_kprobes(ptrs, SET), 0);
        CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
        fake_end();
    }
}

static void a_refused_set_says_where(void)
{
    fake_start();
    set_make();
    set[1].offset = 2;
    CHECK_EQ(register_kprobes_why(ptrs, SET, &why), -EILSEQ);
    CHECK_EQ(why.reason, PROBE_NOT_BOUNDARY);
    CHECK_EQ(why.at, set[1].addr);
    CHECK_EQ(why.index, 1);
    CHECK(set_is_out());
    set[3] = (struct kprobe){ .symbol_name = "none" };
    set[1].offset = 0;
    CHECK_EQ(register_kprobes_why(ptrs, SET, &why), -ENOENT);
    CHECK_EQ(why.index, 3); /* it has no address */
    CHECK(set_is_out());
    fake_end();
}

static void the_reason_need_not_be_heard(void)
{
    fake_start();
    set_make();
    set[1].offset = 2;
    CHECK_EQ(register_kprobes(ptrs, SET), -EILSEQ);
    CHECK_EQ(register_kprobe(&set[1]), -EILSEQ);
    CHECK(set_is_out());
    fake_end();
}

static void the_same_probe_twice_in_a_set_is_refused(void)
{
    fake_start();
    set_make();
    ptrs[4] = &set[1];
    CHECK_EQ(register_kprobes_why(ptrs, SET, &why), -EEXIST);
    CHECK_EQ(why.reason, PROBE_REGISTERED);
    CHECK_EQ(why.index, 4);
    CHECK(set_is_out());
    ptrs[4] = &set[4];
    CHECK_EQ(register_kprobes(ptrs, SET), 0);
    CHECK_EQ(register_kprobes_why(ptrs, SET, &why), -EEXIST);
    CHECK_EQ(why.index, 0);
    CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
    fake_end();
}

static void a_refused_set_leaves_an_older_probe_as_it_was(void)
{
    struct kprobe old = { .pre_handler = no_pre };

    fake_start();
    set_make();
    old.addr = set[2].addr;
    CHECK_EQ(add(&old), 0);
    set[4].flags = KPROBE_FLAG_GONE;
    CHECK(register_kprobes(ptrs, SET) < 0);
    CHECK(aggr_find(old.site, &old));
    CHECK(!aggr_find(old.site, &set[2]) && !aggr_find(old.site, &set[3]));
    CHECK_EQ(old.site->state, SITE_ARMED);
    CHECK_EQ(old.site->way, WAY_BOOST); /* set[3] had wanted steps */
    CHECK_EQ(byte_at(old.addr), 0xcc);
    CHECK_EQ(unregister_kprobe(&old), 0);
    fake_end();
}

static uintptr_t hit_at;
static unsigned hits_taken;

/* Another CPU runs into the older probe while the set is being looked at. */
static void hit_from_cpu_1(void)
{
    struct pt_regs regs = fake_regs();

    fake.this_cpu = 1;
    CHECK(fake_int3(&regs, hit_at));
    fake.this_cpu = 0;
    hits_taken++;
}

static void no_hit_sees_anything_of_a_refused_set(void)
{
    struct kprobe old = { .pre_handler = no_pre };

    fake_start();
    fake.cpus = 2;
    set_make();
    hit_at = old.addr = set[2].addr;
    CHECK_EQ(add(&old), 0);
    set[5].flags = KPROBE_FLAG_GONE;
    hits_taken = 0;
    fake.on_alloc = hit_from_cpu_1;
    fake.quiesces = 0;
    CHECK(register_kprobes(ptrs, SET) < 0);
    fake.on_alloc = NULL;
    CHECK(hits_taken > 3);
    CHECK_EQ(old.hits, hits_taken);
    CHECK_EQ(set[2].hits + set[3].hits, 0);
    CHECK_EQ(fake.quiesces, 0); /* so there is nothing to wait for */
    CHECK_EQ(unregister_kprobe(&old), 0);
    fake_end();
}

static void a_set_with_a_stranger_is_not_taken_out(void)
{
    struct kprobe stranger = { .pre_handler = no_pre };

    fake_start();
    set_make();
    CHECK_EQ(register_kprobes(ptrs, SET), 0);
    stranger.addr = set[1].addr;
    ptrs[1] = &stranger;
    CHECK_EQ(unregister_kprobes(ptrs, SET), -EINVAL);
    CHECK_EQ(registry_count(), 5);
    ptrs[1] = &set[1];
    CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
    fake_end();
}

static void the_same_probe_twice_is_taken_out_once(void)
{
    struct kprobe p = { .pre_handler = no_pre }, *twice[] = { &p, &p };

    fake_start();
    p.addr = fake_function("fn", "55 c3");
    CHECK_EQ(add(&p), 0);
    CHECK_EQ(unregister_kprobes(twice, 2), 0);
    CHECK(p.site == NULL);
    fake_end();
}

static void an_empty_set_is_no_error(void)
{
    fake_start();
    CHECK_EQ(register_kprobes(NULL, 0), 0);
    CHECK_EQ(unregister_kprobes(NULL, 0), 0);
    fake_end();
}

static unsigned refusals;

static void refused(struct kprobe *p, const struct probe_reject *reject, void *arg)
{
    CHECK(arg == &refusals);
    CHECK(p == &set[1] || p == &set[4]);
    CHECK(reject->err < 0);
    refusals++;
}

static void some_of_a_set_go_in_and_come_first(void)
{
    fake_start();
    set_make();
    set[1].offset = 2;
    set[4].offset = 1;
    refusals = 0;
    CHECK_EQ(register_kprobes_some(ptrs, SET, refused, &refusals), 4);
    CHECK_EQ(refusals, 2);
    for (int i = 0; i < 4; i++)
        CHECK(ptrs[i]->site != NULL);
    CHECK_EQ(unregister_kprobes(ptrs, 4), 0);
    CHECK(set_is_out());
    fake_end();
}

/* ---- memory runs out ---- */

static void without_memory_anywhere_a_set_is_refused_whole(void)
{
    bool done = false;

    for (unsigned n = 1; !done; n++) {
        int err;

        fake_start();
        set_make();
        fake_fail_at(n);
        err = register_kprobes_why(ptrs, SET, &why);
        done = !fake_failed();
        CHECK_EQ(err, done ? 0 : -ENOMEM);
        if (done)
            CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
        CHECK(set_is_out());
        fake_fail_at(0);
        CHECK_EQ(register_kprobes(ptrs, SET), 0);
        CHECK_EQ(unregister_kprobes(ptrs, SET), 0);
        fake_end();
    }
}

/* An address that is armed, one post-handler more: memory may fail, the old probe stays. */
static void without_memory_a_further_probe_is_refused_alone(void)
{
    bool done = false;

    for (unsigned n = 1; !done; n++) {
        struct kprobe old = { .pre_handler = no_pre };
        struct kprobe more = { .symbol_name = "fn", .post_handler = no_post };
        struct kprobe before = more;
        int err;

        fake_start();
        old.addr = fake_function("fn", "55 c3");
        CHECK_EQ(add(&old), 0);
        fake_fail_at(n);
        err = add(&more);
        done = !fake_failed();
        CHECK_EQ(err, done ? 0 : -ENOMEM);
        CHECK(done || memcmp(&more, &before, sizeof(more)) == 0);
        CHECK_EQ(byte_at(old.addr), 0xcc);
        CHECK(aggr_find(old.site, &old));
        CHECK_EQ(old.site->way, done ? WAY_STEP : WAY_BOOST);
        fake_fail_at(0);
        CHECK_EQ(unregister_kprobe(&old), 0);
        if (done)
            CHECK_EQ(unregister_kprobe(&more), 0);
        fake_end();
    }
}

static void memory_is_never_needed_to_take_probes_out(void)
{
    fake_start();
    set_make();
    CHECK_EQ(register_kprobes(ptrs, SET), 0);
    for (unsigned n = 1; n <= 2; n++) {
        fake_fail_at(n);
        CHECK_EQ(unregister_kprobe(ptrs[n]), 0);
    }
    ptrs[1] = ptrs[0];
    fake_fail_at(1);
    CHECK_EQ(unregister_kprobes(ptrs + 3, 3), 0);
    fake_fail_at(0);
    CHECK_EQ(unregister_kprobe(ptrs[0]), 0);
    CHECK(set_is_out());
    fake_end();
}

UNIT_TESTS(armed_means_int3_in_the_text, by_symbol_and_offset, by_address_and_offset,
           the_copy_is_the_instruction_and_a_jump_back, what_is_emulated_needs_no_cell,
           a_post_handler_asks_for_steps_as_long_as_it_is_there,
           sti_has_a_copy_together_with_its_successor, so_has_sti_in_front_of_a_branch,
           in_front_of_a_call_it_is_emulated_with_it,
           sti_whose_successor_cannot_be_moved_stands_alone,
           no_post_handler_behind_what_traps_go_by, many_at_one_address_share_a_site,
           the_cell_is_written_and_known_before_anyone_can_be_sent_there,
           out_is_disarm_wait_unpublish_wait_free,
           a_detour_is_freed_when_its_site_is_lost,
           one_of_several_goes_after_quiescence_and_the_text_stays,
           a_step_cell_for_an_armed_site_is_known_before_it_is_used,
           a_second_probe_touches_no_text, disabled_at_birth_it_is_not_armed,
           disabling_one_of_two_leaves_the_other, twice_on_or_off_is_once,
           enabling_forgives_a_tripped_probe, only_what_is_registered_can_be_switched,
           neither_or_both_places_are_refused, an_offset_that_wraps_is_no_place,
           flags_of_the_engine_are_refused, one_of_two_kinds_of_handlers,
           names_are_looked_up, what_the_check_refuses_is_refused,
           a_refused_probe_is_given_back_as_it_came, an_operand_out_of_reach_is_refused,
           a_step_cell_out_of_reach_leaves_the_site_as_it_was,
           twice_the_same_probe_is_refused, what_is_not_registered_cannot_be_taken_out,
           not_from_an_interrupt_and_not_from_an_nmi,
           a_set_goes_in_with_one_round_and_out_with_one,
           a_set_with_one_bad_element_leaves_nothing, a_refused_set_says_where,
           the_reason_need_not_be_heard, the_same_probe_twice_in_a_set_is_refused,
           a_refused_set_leaves_an_older_probe_as_it_was,
           no_hit_sees_anything_of_a_refused_set, a_set_with_a_stranger_is_not_taken_out,
           the_same_probe_twice_is_taken_out_once, an_empty_set_is_no_error,
           some_of_a_set_go_in_and_come_first,
           without_memory_anywhere_a_set_is_refused_whole,
           without_memory_a_further_probe_is_refused_alone,
           memory_is_never_needed_to_take_probes_out)
