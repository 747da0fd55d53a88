/* test_jump_stage.c - tests of the moves of a jump from stage to stage: which are
 * allowed, and which stages fit the state of the site.
 */
#include "probes/jump/jump_stage.h"

#include "probes/core/registry.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "tests/unit/port_fake.h"

/* The tables of jump_stage.c, written down a second time. */
/* clang-format off */
static const bool allowed[JUMP_STAGES][JUMP_STAGES] = {
    /* to        NONE WAITING REFUSED JUMP PLANNED TO_JUMP TO_INT3 TO_ORIGINAL; from: */
    [STAGE_NONE] =        { false, true,  true,  false, true,  false, false, true  },
    [STAGE_WAITING] =     { false, false, true,  true,  true,  false, true,  true  },
    [STAGE_REFUSED] =     { false, true,  false, false, false, false, true,  true  },
    [STAGE_JUMP] =        { true,  true,  true,  false, true,  false, true,  true  },
    [STAGE_PLANNED] =     { false, true,  false, true,  false, true,  true,  true  },
    [STAGE_TO_JUMP] =     { false, false, false, true,  false, false, false, false },
    [STAGE_TO_INT3] =     { false, true,  true,  true,  false, false, false, false },
    [STAGE_TO_ORIGINAL] = { true,  false, false, false, false, false, false, false },
};

static const bool fits[JUMP_STAGES][SITE_STATES] = {
    /*                        NEW  PREPARED ARMED OPTIMIZED DISARMED DEAD */
    [STAGE_NONE] =        { false, true,  true,  false, true,  false },
    [STAGE_WAITING] =     { false, true,  true,  false, true,  false },
    [STAGE_REFUSED] =     { false, true,  true,  false, true,  false },
    [STAGE_JUMP] =        { false, false, false, true,  false, false },
    [STAGE_PLANNED] =     { false, true,  true,  true,  true,  false },
    [STAGE_TO_JUMP] =     { false, true,  true,  true,  true,  false },
    [STAGE_TO_INT3] =     { false, true,  true,  true,  true,  false },
    [STAGE_TO_ORIGINAL] = { false, true,  true,  true,  true,  false },
};
/* clang-format on */

static struct jump_site jump_in(uint8_t state, unsigned stage)
{
    return (struct jump_site){ .site.state = state, .stage = stage & 0xf };
}

/* check_move - check that jump_move() makes a move that the tables allow, and that any
 * other move ends in plat_bug() and changes nothing.
 */
static void check_move(uint8_t state, uint8_t from, uint8_t to)
{
    struct jump_site jump = jump_in(state, from);

    if (allowed[from][to] && fits[to][state]) {
        jump_move(&jump.site, to);
        CHECK_EQ(jump.stage, to);
    } else {
        CHECK(FAKE_BUG(jump_move(&jump.site, to)));
        CHECK_EQ(jump.stage, from);
    }
}

UNIT_TEST(the_table_is_what_moves_are_checked_by)
{
    for (uint8_t state = 0; state < SITE_STATES; state++)
        for (uint8_t from = 0; from < JUMP_STAGES; from++)
            for (uint8_t to = 0; to < JUMP_STAGES; to++)
                check_move(state, from, to);
}

UNIT_TEST(to_wait_is_to_stay_refused_where_there_is_a_reason)
{
    struct jump_site jump = jump_in(SITE_ARMED, STAGE_TO_INT3);

    jump_wait(&jump.site);
    CHECK_EQ(jump.stage, STAGE_WAITING);
    jump_wait(&jump.site);
    CHECK_EQ(jump.stage, STAGE_WAITING);
    jump.jump_why = PROBE_NO_LANDING;
    jump_wait(&jump.site);
    CHECK_EQ(jump.stage, STAGE_REFUSED);
    jump.jump_why = PROBE_OK;
    jump_wait(&jump.site);
    CHECK_EQ(jump.stage, STAGE_WAITING);
}

UNIT_TEST(a_life)
{
    struct kprobe p = { .pre_handler = no_pre };

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    p.addr = fake_function("fn", "48 c7 c0 01 00 00 00 c3");
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK(jump_is_at(p.site, STAGE_WAITING) && p.site->state == SITE_ARMED);
    optimize_refuse(p.site, PROBE_NO_LANDING);
    optimize_run();
    CHECK(jump_is_at(p.site, STAGE_REFUSED) && p.site->state == SITE_ARMED);
    optimize_retry();
    optimize_run();
    CHECK(jump_is_at(p.site, STAGE_JUMP) && p.site->state == SITE_OPTIMIZED);
    unoptimize_around(&p.site, 1);
    CHECK(jump_is_at(p.site, STAGE_WAITING) && p.site->state == SITE_ARMED);
    optimize_run();
    CHECK(jump_is_at(p.site, STAGE_JUMP));
    CHECK_EQ(disable_kprobe(&p), 0);
    CHECK(jump_is_at(p.site, STAGE_NONE) && p.site->state == SITE_DISARMED);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

static bool count_one(struct site *site UNUSED, void *count)
{
    ++*(unsigned *)count;
    return true;
}

static unsigned marked(void)
{
    unsigned count = 0;

    registry_for_each_marked(count_one, &count);
    return count;
}

/* The optimizer visits marked sites only. A site that is a jump has no mark. */
UNIT_TEST(what_is_a_jump_has_no_mark)
{
    struct kprobe ps[8] = { 0 }, *pointers[8];

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    for (unsigned i = 0; i < 8; i++) {
        ps[i].addr = fake_function("fn", "48 c7 c0 01 00 00 00 c3");
        ps[i].pre_handler = no_pre;
        pointers[i] = &ps[i];
        CHECK_EQ(register_kprobe(&ps[i]), 0);
        CHECK_EQ(marked(), i + 1);
    }
    optimize_run();
    CHECK_EQ(marked(), 0);
    unoptimize_around(&ps[3].site, 1);
    CHECK_EQ(marked(), 1);
    optimize_refuse(ps[3].site, PROBE_NO_LANDING);
    optimize_run();
    CHECK_EQ(marked(), 1);
    CHECK_EQ(disable_kprobe(&ps[3]), 0);
    unoptimize_around(&ps[5].site, 1);
    optimize_run();
    CHECK_EQ(marked(), 1); /* probe 3 is disabled, but still has a reason to be cleared */
    optimize_retry();
    CHECK_EQ(jump_site(ps[3].site)->jump_why, PROBE_OK);
    CHECK_EQ(enable_kprobe(&ps[3]), 0);
    optimize_run();
    CHECK(jump_is_at(ps[3].site, STAGE_JUMP));
    CHECK_EQ(marked(), 0);
    CHECK_EQ(unregister_kprobes(pointers, 8), 0);
}

/* An evicted neighbour is a site without a probe. When its jump has become a breakpoint,
 * the site does not wait for a jump, until a probe is registered there.
 */
UNIT_TEST(a_probe_makes_an_idle_breakpoint_wait)
{
    struct kprobe gone = { .pre_handler = no_pre }, p = { .pre_handler = no_pre };
    struct site *site;

    CHECK_EQ(optimize_set_method(OPTIMIZE_PUN), 0);
    gone.addr = p.addr = fake_function("fn", "48 c7 c0 01 00 00 00 c3");
    CHECK_EQ(register_kprobe(&gone), 0);
    optimize_run();
    site = gone.site;
    site->probes = NULL;
    unoptimize_around(&site, 1);
    CHECK(jump_is_at(site, STAGE_NONE) && site->state == SITE_ARMED);
    CHECK_EQ(register_kprobe(&p), 0);
    CHECK(p.site == site && jump_is_at(site, STAGE_WAITING));
    optimize_run();
    CHECK(jump_is_at(site, STAGE_JUMP));
    p.next = &gone;
    CHECK_EQ(unregister_kprobe(&gone), 0);
    CHECK_EQ(unregister_kprobe(&p), 0);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
