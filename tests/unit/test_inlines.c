/* test_inlines.c - tests of the lookup in a table like that of the build. */
#include "kernel/debug/inlines.h"

#include "tests/unit/unit.h"

struct row {
    uint32_t name, first, count;
};

extern const struct row inlines_table[];
extern const uint32_t inlines_total, inlines_places[];
extern const char inlines_names[];

const char inlines_names[] = "add\0add_one\0zap";
const struct row inlines_table[] = { { 0, 0, 1 }, { 4, 1, 3 }, { 12, 4, 2 } };
const uint32_t inlines_total = 3;
const uint32_t inlines_places[] = { 0x80200010, 0x80200020, 0x80200030,
                                    0x80200040, 0x80200050, 0x80200060 };

UNIT_TEST(each_name_has_its_places)
{
    CHECK_EQ(inlines_count("add"), 1);
    CHECK_EQ(inlines_count("add_one"), 3);
    CHECK_EQ(inlines_count("zap"), 2);
    CHECK_EQ(inlines_get("add", 0), 0xffffffff80200010);
    CHECK_EQ(inlines_get("add_one", 2), 0xffffffff80200040);
    CHECK_EQ(inlines_get("zap", 1), 0xffffffff80200060);
}

UNIT_TEST(other_names_have_none)
{
    static const char *const names[] = { "", "a", "ad", "addx", "add_", "zapp", "zz" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CHECK_EQ(inlines_count(names[i]), 0);
        CHECK_EQ(inlines_get(names[i], 0), 0);
    }
    CHECK_EQ(inlines_get("add", 1), 0);
    CHECK_EQ(inlines_get("add_one", 3), 0);
}

UNIT_TESTS()
