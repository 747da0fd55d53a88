/* test_counter.c - tests of counters: their numbers are given and taken back, and their
 * hits are not lost.
 */
#include "probes/jump/counter.h"

#include "tests/unit/port_fake.h"

static void start(void)
{
    fake_start();
    fake.cpus = 3;
}

static uint32_t get(void)
{
    uint32_t counter;

    plat_lock(PLAT_PROBES);
    counter = counter_get(true);
    plat_unlock(PLAT_PROBES);
    return counter;
}

static uint64_t put(uint32_t counter)
{
    uint64_t sum;

    plat_lock(PLAT_PROBES);
    sum = counter_put(counter);
    plat_unlock(PLAT_PROBES);
    return sum;
}

UNIT_TEST(it_is_the_sum_over_all_cpus)
{
    uint32_t a = get(), b = get();

    CHECK(a && b && a != b);
    for (unsigned cpu = 0; cpu < 3; cpu++)
        plat_probe_cpu(cpu)->plat.counters[a] = cpu + 1;
    CHECK_EQ(counter_sum(a), 6);
    CHECK_EQ(counter_sum(b), 0);
    CHECK_EQ(counter_sum(0), 0);
    CHECK_EQ(put(a), 6);
    CHECK_EQ(put(b), 0);
    CHECK_EQ(put(0), 0);
}

UNIT_TEST(the_total_keeps_what_was_given_back)
{
    uint64_t before = counter_total();
    uint32_t a = get();

    plat_probe_cpu(1)->plat.counters[a] = 5;
    CHECK_EQ(counter_total(), before + 5);
    put(a);
    CHECK_EQ(counter_total(), before + 5);
}

UNIT_TEST(the_next_owner_starts_from_nothing)
{
    uint32_t a = get();

    plat_probe_cpu(2)->plat.counters[a] = 9;
    put(a);
    CHECK_EQ(get(), a);
    CHECK_EQ(counter_sum(a), 0);
    put(a);
}

UNIT_TEST(none_is_given_twice)
{
    static uint32_t all[FAKE_COUNTERS];
    size_t count = 0;

    while ((all[count] = get()) != 0)
        count++;
    CHECK_EQ(count, FAKE_COUNTERS - 1);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(all[i], i + 1);
    for (size_t i = 0; i < count; i += 2)
        put(all[i]);
    for (size_t i = 0; i < count; i += 2)
        CHECK_EQ(get(), all[i]);
    for (size_t i = 0; i < count; i++)
        put(all[i]);
}

UNIT_TEST(without_memory_there_is_none)
{
    for (unsigned n = 1; n <= 2; n++) {
        start();
        fake_fail_at(n);
        CHECK_EQ(get(), 0);
        CHECK(fake_failed());
        fake_end();
    }
}

UNIT_TESTS_BETWEEN(start, fake_end)
