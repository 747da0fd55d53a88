/* test_reject.c - tests of the table of reasons: each has an errno, a name and a
 * sentence.
 */
#include "probes/core/reject.h"

#include "tests/unit/unit.h"

UNIT_TEST(a_refusal_says_everything_at_once)
{
    struct probe_reject why;

    CHECK_EQ(probe_refuse(&why, PROBE_NOT_BOUNDARY, 0x1234), -EILSEQ);
    CHECK_EQ(why.err, -EILSEQ);
    CHECK_EQ(why.reason, PROBE_NOT_BOUNDARY);
    CHECK_EQ(why.at, 0x1234);
    CHECK_STR(why.why, "not an instruction boundary");
}

UNIT_TEST(the_reason_may_be_left_out)
{
    CHECK_EQ(probe_refuse(NULL, PROBE_BLACKLISTED, 1), -EPERM);
}

UNIT_TEST(only_ok_is_no_error)
{
    for (int r = 0; r < PROBE_REASON_COUNT; r++) {
        int err = probe_refuse(NULL, (enum probe_reason)r, 0);

        CHECK(r == PROBE_OK ? err == 0 : err < 0);
    }
}

UNIT_TEST(names_and_sentences_differ)
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

UNIT_TEST(what_is_no_reason_has_no_name)
{
    CHECK_STR(probe_reason_name(PROBE_REASON_COUNT), "?");
    CHECK_STR(probe_reason_text(PROBE_REASON_COUNT), "?");
}

UNIT_TESTS()
