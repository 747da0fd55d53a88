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

UNIT_TEST(the_oldest_are_forgotten)
{
    fake_start();
    note(0x3000, 1, 1);
    for (size_t i = 1; i < TEXT_HISTORY_LEN; i++)
        note(0x4000 + i, 1, 2);
    CHECK_EQ(find(0x3000, 0x3001), 1);
    note(0x4000, 1, 2);
    CHECK_EQ(find(0x3000, 0x3001), 0);
    fake_end();
}

UNIT_TESTS()
