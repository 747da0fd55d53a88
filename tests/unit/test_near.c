/* test_near.c - tests of the search for sites near an address: the edges of a window, of a
 * line and of the map, text that shares the words of the map, and sites that are gone.
 */
#include "probes/jump/near.h"

#include "probes/core/registry.h"
#include "tests/unit/port_fake.h"

#define LINE UINT64_C(64)                      /* bytes of text in a word of the map */
#define MAP (UINT64_C(512) << 10)              /* bytes of text in the map */
#define KERNEL_AT UINT64_C(0xffffffff80200000) /* where the map begins again: 64 * 8192 */
#define MODULE_AT UINT64_C(0xffffffffa0000000) /* the same words as KERNEL_AT */
#define SITES 8

static struct site sites[SITES];
static size_t count;

static struct site *add(uintptr_t addr)
{
    struct site *site = &sites[count++];

    *site = (struct site){ .addr = addr };
    CHECK_EQ(registry_insert(site), 0);
    near_note(addr);
    return site;
}

static void begin(void)
{
    fake_start();
    count = 0;
}

static void end(void)
{
    while (count)
        registry_remove(&sites[--count]);
    registry_exit();
    fake_end();
}

static struct site *one_by_one(uintptr_t addr, uintptr_t to)
{
    for (; addr < to; addr++) {
        struct site *site = registry_find(addr);

        if (site)
            return site;
    }
    return NULL;
}

UNIT_TEST(a_window_has_its_first_address_and_not_its_end)
{
    for (uintptr_t at = KERNEL_AT; at < KERNEL_AT + 2 * LINE; at++) {
        struct site *site = add(at);

        CHECK(near_next(at, at + 1) == site);
        CHECK(near_next(at - 9, at + 1) == site);
        CHECK(near_next(at, at + 16) == site);
        CHECK(near_next(at - 9, at) == NULL);
        CHECK(near_next(at + 1, at + 16) == NULL);
        CHECK(near_next(at, at) == NULL);
        CHECK(near_next(at + 1, at) == NULL);
        registry_remove(&sites[--count]);
    }
}

/* A window may begin and end anywhere in a line, and may have whole lines between. */
UNIT_TEST(every_window_has_the_sites_of_a_search_byte_by_byte)
{
    static const int offs[SITES] = { -130, -64, -1, 0, 1, 63, 64, 129 };

    for (size_t i = 0; i < SITES; i++)
        add(KERNEL_AT + (uintptr_t)offs[i]);
    for (uintptr_t from = KERNEL_AT - 3 * LINE; from < KERNEL_AT + 3 * LINE; from++)
        for (uintptr_t to = from; to < KERNEL_AT + 3 * LINE; to++)
            if (near_next(from, to) != one_by_one(from, to)) {
                CHECK_EQ(from - KERNEL_AT, to - KERNEL_AT);
                return;
            }
    CHECK(near_next(KERNEL_AT - 3 * LINE, KERNEL_AT) == &sites[0]);
}

UNIT_TEST(the_walk_visits_each_site_once_and_in_order)
{
    struct site *site;
    size_t seen = 0;

    for (size_t i = 0; i < SITES; i++)
        add(KERNEL_AT + LINE * i / 2);
    near_for_each(site, KERNEL_AT + 1, KERNEL_AT + LINE * (SITES - 1) / 2)
        CHECK(site == &sites[++seen]);
    CHECK_EQ(seen, SITES - 2);
}

/* The map ends inside the text, and begins again. */
UNIT_TEST(a_window_reaches_over_the_end_of_the_map)
{
    struct site *last = add(KERNEL_AT + MAP - 1), *first = add(KERNEL_AT + MAP);

    CHECK(near_next(KERNEL_AT + MAP - 9, KERNEL_AT + MAP + 9) == last);
    CHECK(near_next(KERNEL_AT + MAP, KERNEL_AT + MAP + 9) == first);
    CHECK(near_next(KERNEL_AT + MAP + 1, KERNEL_AT + MAP + LINE) == NULL);
}

/* Bits of other text that shares a word never hide a site, and never make one up. */
UNIT_TEST(text_of_a_module_shares_words_with_the_image)
{
    struct site *image = add(KERNEL_AT + 10), *module = add(MODULE_AT + 20);

    CHECK(near_next(KERNEL_AT, KERNEL_AT + LINE) == image);
    CHECK(near_next(MODULE_AT, MODULE_AT + LINE) == module);
    CHECK(near_next(KERNEL_AT + 11, KERNEL_AT + LINE) == NULL);
    CHECK(near_next(KERNEL_AT + MAP, KERNEL_AT + MAP + LINE) == NULL);
    CHECK(near_next(KERNEL_AT, KERNEL_AT + 10 + MAP) == image);
    module = add(MODULE_AT + 10);
    CHECK(near_next(KERNEL_AT, KERNEL_AT + LINE) == image);
    CHECK(near_next(MODULE_AT, MODULE_AT + LINE) == module);
}

UNIT_TEST(a_site_that_is_gone_is_not_found_until_it_is_back)
{
    struct site *gone = add(KERNEL_AT + 5), *behind = add(KERNEL_AT + 7);

    registry_remove(gone);
    CHECK(near_next(KERNEL_AT, KERNEL_AT + LINE) == behind);
    CHECK(near_next(KERNEL_AT, KERNEL_AT + 7) == NULL);
    CHECK_EQ(registry_insert(gone), 0);
    CHECK(near_next(KERNEL_AT, KERNEL_AT + LINE) == gone);
}

UNIT_TEST(at_the_end_of_all_addresses_a_window_ends_as_well)
{
    struct site *site = add(UINTPTR_MAX - LINE);

    CHECK(near_next(UINTPTR_MAX - LINE - 9, UINTPTR_MAX - LINE + 1) == site);
    CHECK(near_next(UINTPTR_MAX - LINE + 1, UINTPTR_MAX - LINE + 1) == NULL);
}

UNIT_TESTS_BETWEEN(begin, end)
