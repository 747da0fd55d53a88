/* test_region_watch.c - tests of region_is_watched(), by which quiescence finds threads
 * under a future jump.
 */
#include "probes/region/region.h"
#include "tests/unit/port_fake.h"

UNIT_TEST(watched_is_what_lies_behind_the_first_byte)
{
    static const uintptr_t addrs[] = { 100, 105, 300 };

    CHECK(!region_is_watched(101));
    region_watch(addrs, 3);
    for (uintptr_t ip = 90; ip < 320; ip++) {
        bool inside = false;

        for (size_t i = 0; i < 3; i++)
            inside |= ip > addrs[i] && ip < addrs[i] + 5;
        CHECK_EQ(region_is_watched(ip), inside);
    }
    region_unwatch();
    CHECK(!region_is_watched(101));
}

UNIT_TEST(too_many_at_a_time_are_a_bug)
{
    static uintptr_t addrs[REGION_WATCH_MAX + 1];

    CHECK(FAKE_BUG(region_watch(addrs, REGION_WATCH_MAX + 1)));
    region_watch(addrs, REGION_WATCH_MAX);
    CHECK(FAKE_BUG(region_watch(addrs, 1)));
    region_unwatch();
}

UNIT_TESTS()
