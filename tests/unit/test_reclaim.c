/* test_reclaim.c - tests of the order of steps between the last hit of a site and the
 * freeing of its memory.
 */
#include "probes/jump/optimize.h"
#include "tests/unit/probes.h"

UNIT_TEST(out_is_disarm_wait_unpublish_wait_free)
{
    struct kprobe p = { .addr = fake_function("fn", "55 c3"), .pre_handler = no_pre };

    CHECK_EQ(add(&p), 0);
    fake_log_start(p.addr);
    CHECK_EQ(unregister_kprobe(&p), 0);
    CHECK_STR(fake_log(), "original sync quiesce lost sync clear free sync");
}

/* The memory of a jump is freed only when no hit can find the site any more. */
UNIT_TEST(a_detour_is_freed_when_its_site_is_lost)
{
    struct kprobe p = { .pre_handler = no_pre };

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
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
