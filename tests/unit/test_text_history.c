/* test_text_history.c - tests of the history of text: the last changes are found, older
 * ones are forgotten.
 */
#include "probes/text/text_history.h"

#include "probes/core/platform.h"
#include "probes/core/text_poke.h"
#include "tests/unit/port_fake.h"

static struct text_change found[4];

static void note(uintptr_t addr, uint8_t len, uint8_t first)
{
    struct text_poke poke = { .addr = addr, .len = len, .bytes = { first } };

    plat_lock(PLAT_TEXT);
    text_history_begin(&poke, 1);
    text_history_end(1);
    plat_unlock(PLAT_TEXT);
}

static size_t find(uintptr_t start, uintptr_t end)
{
    size_t count;

    plat_lock(PLAT_TEXT);
    count = text_history_find(start, end, found, 4);
    plat_unlock(PLAT_TEXT);
    return count;
}

static void the_latest_comes_first(void)
{
    fake_start();
    for (uint8_t i = 1; i <= 6; i++)
        note(0x1000, 1, i);
    CHECK_EQ(find(0x1000, 0x1001), 4);
    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(found[i].bytes[0], 6 - i);
    CHECK(found[0].addr == 0x1000 && found[0].len == 1);
    fake_end();
}

static void any_byte_in_common_counts(void)
{
    fake_start();
    note(0x2000, 5, 7);
    CHECK_EQ(find(0x2004, 0x2005), 1);
    CHECK_EQ(find(0x1ff0, 0x2001), 1);
    CHECK_EQ(find(0x2005, 0x2010), 0);
    CHECK_EQ(find(0x1ff0, 0x2000), 0);
    fake_end();
}

static void the_oldest_are_forgotten(void)
{
    uint64_t before = text_history_count();

    fake_start();
    note(0x3000, 1, 1);
    for (size_t i = 1; i < TEXT_HISTORY_LEN; i++)
        note(0x4000 + i, 1, 2);
    CHECK_EQ(find(0x3000, 0x3001), 1);
    note(0x4000, 1, 2);
    CHECK_EQ(find(0x3000, 0x3001), 0);
    CHECK_EQ(text_history_count() - before, TEXT_HISTORY_LEN + 1);
    fake_end();
}

UNIT_TESTS(the_latest_comes_first, any_byte_in_common_counts, the_oldest_are_forgotten)
