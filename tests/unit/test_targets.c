/* test_targets.c - tests of targets: those in the table of the build, and those that were
 * added later.
 */
#include "probes/region/targets.h"
#include "tests/unit/port_fake.h"

static uintptr_t fn;

static void start(void)
{
    fake_start();
    fn = fake_function("fn", "90 90 90 90 90 90 90 90 90 90 90 90 90 90 90 c3");
}

UNIT_TEST(the_start_counts_and_the_end_does_not)
{
    fake_target(fn + 4);
    CHECK(targets_inside(fn + 4, fn + 5));
    CHECK(!targets_inside(fn + 1, fn + 4));
    CHECK(!targets_inside(fn + 5, fn + 16));
    CHECK(!targets_inside(fn + 4, fn + 4));
    CHECK(!targets_inside(fn + 5, fn + 3));
}

UNIT_TEST(an_opaque_range_counts_byte_by_byte)
{
    fake_opaque(fn + 9, fn + 11);
    fake_opaque(fn + 2, fn + 4);
    for (size_t i = 0; i < 15; i++) {
        bool inside = i == 2 || i == 3 || i == 9 || i == 10;

        CHECK_EQ(targets_inside(fn + i, fn + i + 1), inside);
        CHECK_EQ(targets_opaque(fn + i), inside);
    }
    CHECK_EQ(targets_find(fn, fn + 15), fn + 2);
    CHECK_EQ(targets_find(fn + 3, fn + 15), fn + 3);
    CHECK_EQ(targets_find(fn + 4, fn + 15), fn + 9);
}

UNIT_TEST(whichever_comes_first)
{
    fake_opaque(fn + 6, fn + 8);
    fake_target(fn + 4);
    fake_target(fn + 10);
    CHECK_EQ(targets_find(fn, fn + 15), fn + 4);
    CHECK_EQ(targets_find(fn + 5, fn + 15), fn + 6);
    CHECK_EQ(targets_find(fn + 8, fn + 15), fn + 10);
    CHECK(!targets_opaque(fn + 4));
}

UNIT_TEST(without_a_table_everything_is_one)
{
    start();
    fake_no_targets();
    CHECK(!targets_known(fn));
    CHECK_EQ(targets_find(fn + 1, fn + 5), fn + 1);
    CHECK(!targets_inside(fn + 1, fn + 1));
    CHECK(targets_opaque(fn));
    start();
    CHECK(targets_known(fn));
}

UNIT_TEST(what_was_added_is_found_until_the_last_is_removed)
{
    fake_target(fn + 8);
    CHECK_EQ(targets_add(fn, fn + 3), 0);
    CHECK_EQ(targets_add(fn, fn + 3), 0);
    CHECK_EQ(targets_add(fn + 1, fn + 3), 0);
    CHECK_EQ(targets_add(fn, fn + 5), 0);
    CHECK_EQ(targets_find(fn, fn + 16), fn + 3);
    CHECK_EQ(targets_find(fn + 4, fn + 16), fn + 5);
    CHECK(targets_remove(fn, fn + 5));
    CHECK_EQ(targets_find(fn + 4, fn + 16), fn + 8);
    CHECK(targets_remove(fn, fn + 3));
    CHECK(targets_remove(fn, fn + 3));
    CHECK(targets_inside(fn + 1, fn + 5));
    CHECK(targets_remove(fn + 1, fn + 3));
    CHECK(!targets_inside(fn + 1, fn + 5));
}

UNIT_TEST(what_was_not_added_is_not_removed)
{
    fake_target(fn + 8);
    CHECK(!targets_remove(fn, fn + 8));
    CHECK(targets_inside(fn + 8, fn + 9));
    CHECK_EQ(targets_add(fn, fn + 3), 0);
    CHECK(!targets_remove(fn + 1, fn + 3)); /* another place leads there, not fn + 1 */
    CHECK(!targets_remove(fn, fn + 4));
    CHECK(targets_inside(fn + 3, fn + 4));
    CHECK(targets_remove(fn, fn + 3));
}

#define MANY 5000 /* several in each bucket */
#define STRIDE 5

UNIT_TEST(very_many_are_found_and_removed)
{
    uintptr_t base = fn + 32;

    for (uintptr_t i = 0; i < MANY; i++)
        CHECK_EQ(targets_add(i, base + i * STRIDE), 0);
    for (uintptr_t i = 0; i < MANY; i += 7) {
        CHECK(targets_remove(i, base + i * STRIDE));
        CHECK(!targets_remove(i, base + i * STRIDE));
    }
    for (uintptr_t i = 0; i < MANY; i++) {
        uintptr_t to = base + i * STRIDE;

        CHECK_EQ(targets_find(to - 3, to + 2), i % 7 ? to : 0);
        CHECK_EQ(targets_remove(i, to), i % 7 != 0);
        CHECK_EQ(targets_find(to, to + 1), 0);
    }
    CHECK_EQ(targets_add(1, base), 0); /* the bucket is empty again */
    CHECK_EQ(targets_add(2, base), 0);
    CHECK(targets_remove(2, base)); /* the entry that was added last */
    CHECK_EQ(targets_add(3, base + 1), 0);
    CHECK_EQ(targets_find(base + 1, base + 2), base + 1);
    CHECK(targets_remove(3, base + 1) && targets_remove(1, base));
}

UNIT_TEST(adding_without_memory_says_so)
{
    fake_fail_at(1);
    CHECK_EQ(targets_add(fn, fn + 3), -ENOMEM);
    CHECK(!targets_inside(fn, fn + 16));
}

UNIT_TESTS_BETWEEN(start, fake_end)
