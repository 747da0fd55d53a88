/* test_state.c - tests of the moves of a site from state to state: which are allowed. */
#include "tests/unit/port_fake.h"

/* The table of state.c, written down a second time from the stages in
 * probes/README.md.
 */
/* clang-format off */
static const bool allowed[SITE_STATES][SITE_STATES] = {
    /*                    NEW   PREPARED ARMED OPTIMIZED DISARMED DEAD */
    [SITE_NEW] =        { false, true,  false, false,    false,   true  },
    [SITE_PREPARED] =   { false, false, true,  false,    false,   true  },
    [SITE_ARMED] =      { false, false, false, true,     true,    false },
    [SITE_OPTIMIZED] =  { false, false, true,  false,    true,    false },
    [SITE_DISARMED] =   { false, false, true,  false,    false,   true  },
    [SITE_DEAD] =       { false, false, false, false,    false,   false },
};
/* clang-format on */

UNIT_TEST(every_legal_move_moves)
{
    for (uint8_t from = 0; from < SITE_STATES; from++) {
        for (uint8_t to = 0; to < SITE_STATES; to++) {
            struct site site = { .state = from };

            if (!allowed[from][to])
                continue;
            site_move(&site, to);
            CHECK_EQ(site.state, to);
        }
    }
}

UNIT_TEST(every_other_move_is_a_bug_and_moves_nothing)
{
    for (uint8_t from = 0; from < SITE_STATES; from++) {
        for (uint8_t to = 0; to < SITE_STATES; to++) {
            struct site site = { .state = from };

            if (allowed[from][to])
                continue;
            CHECK(FAKE_BUG(site_move(&site, to)));
            CHECK_EQ(site.state, from);
        }
    }
}

UNIT_TEST(every_state_has_a_name)
{
    CHECK_STR(site_state_name(SITE_NEW), "new");
    CHECK_STR(site_state_name(SITE_PREPARED), "prepared");
    CHECK_STR(site_state_name(SITE_ARMED), "armed");
    CHECK_STR(site_state_name(SITE_DISARMED), "disarmed");
    CHECK_STR(site_state_name(SITE_DEAD), "dead");
    CHECK_STR(site_state_name(SITE_STATES), "?");
}

UNIT_TESTS()
