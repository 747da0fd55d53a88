/* test_extable.c - tests of the table of fix-ups: it is sorted in place, and searched. */
#include "kernel/mm/extable.h"
#include "tests/unit/unit.h"

/* The linker defines these symbols in the kernel; the tests do not use this table. */
struct extable_entry extable_start[1], extable_end[1];

#define COUNT 500

static struct extable_entry table[COUNT];
static uint8_t text[COUNT * 16];

static uintptr_t insn(size_t i)
{
    return (uintptr_t)&text[i * 16];
}

static uintptr_t fixup(size_t i)
{
    return insn(i) + 5;
}

static void entry_put(size_t at, size_t i)
{
    table[at].insn_off = (int32_t)(insn(i) - (uintptr_t)&table[at].insn_off);
    table[at].fixup_off = (int32_t)(fixup(i) - (uintptr_t)&table[at].fixup_off);
}

static void table_shuffle(size_t count)
{
    size_t order[COUNT];

    for (size_t i = 0; i < count; i++) {
        size_t j = unit_random() % (i + 1);

        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < count; i++)
        entry_put(i, order[i]);
}

UNIT_TEST(every_entry_is_found_after_sorting)
{
    for (size_t count = 0; count < COUNT; count += 1 + count / 3) {
        table_shuffle(count);
        extable_sort(table, count);
        for (size_t i = 0; i < count; i++)
            CHECK(extable_search(table, count, insn(i)) == fixup(i));
    }
}

UNIT_TEST(what_has_no_entry_is_not_found)
{
    table_shuffle(COUNT);
    extable_sort(table, COUNT);
    CHECK_EQ(extable_search(table, 0, insn(0)), 0);
    CHECK_EQ(extable_search(table, COUNT, insn(0) - 1), 0);
    CHECK_EQ(extable_search(table, COUNT, insn(7) + 1), 0);
    CHECK_EQ(extable_search(table, COUNT, insn(COUNT)), 0);
    CHECK_EQ(extable_search(table, COUNT, 0), 0);
    CHECK_EQ(extable_search(table, COUNT, UINTPTR_MAX), 0);
}

UNIT_TESTS()
