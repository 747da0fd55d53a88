/* test_reject.c - tests of the table of reasons: each has an errno, a name and a
 * sentence.
 */
#include "probes/core/reject.h"

#include "kernel/base/err.h"
#include "tests/unit/unit.h"

#include <string.h>

static void a_refusal_says_everything_at_once(void)
{
    struct probe_reject why;

    CHECK_EQ(probe_refuse(&why, PROBE_NOT_BOUNDARY, 0x1234), -EILSEQ);
    CHECK_EQ(why.err, -EILSEQ);
    CHECK_EQ(why.reason, PROBE_NOT_BOUNDARY);
    CHECK_EQ(why.at, 0x1234);
    CHECK_STR(why.why, "not an instruction boundary");
}

static void the_reason_may_be_left_out(void)
{
    CHECK_EQ(probe_refuse(NULL, PROBE_BLACKLISTED, 1), -EPERM);
}

static void only_ok_is_no_error(void)
{
    for (int r = 0; r < PROBE_REASON_COUNT; r++) {
        int err = probe_refuse(NULL, (enum probe_reason)r, 0);

        CHECK(r == PROBE_OK ? err == 0 : err < 0);
    }
}

static void names_and_sentences_differ(void)
{
    for (int r = 0; r < PROBE_REASON_COUNT; r++) {
        for (int s = 0; s < r; s++) {
            CHECK(strcmp(probe_reason_name((enum probe_reason)r),
                         probe_reason_name((enum probe_reason)s)));
            CHECK(strcmp(probe_reason_text((enum probe_reason)r),
                         probe_reason_text((enum probe_reason)s)));
        }
    }
    CHECK_STR(probe_reason_name(PROBE_NOT_UNIQUE), "NOT_UNIQUE");
}

static void what_is_no_reason_has_no_name(void)
{
    CHECK_STR(probe_reason_name(PROBE_REASON_COUNT), "?");
    CHECK_STR(probe_reason_text(PROBE_REASON_COUNT), "?");
}

UNIT_TESTS(a_refusal_says_everything_at_once, the_reason_may_be_left_out,
           only_ok_is_no_error, names_and_sentences_differ, what_is_no_reason_has_no_name)
