/* test_insn_slot.c - tests of cells: a cell is given out once, filled, belongs to a site,
 * and is full of int3 when it is free.
 */
#include "probes/core/insn_slot.h"

#include "tests/unit/port_fake.h"

#define CELLS_PER_PAGE 127 /* 128 less one for the header */
static struct site owner, other;
static const uint8_t code[] = { 0x48, 0x89, 0xe5, 0xe9, 1, 2, 3, 4 };

static void end(void)
{
    insn_slot_exit();
    CHECK_EQ(insn_slot_pages(), 0);
    fake_end();
}

static bool is_int3(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != 0xcc)
            return false;
    return true;
}

UNIT_TEST(a_new_cell_is_full_of_int3_and_belongs_to_no_site)
{
    uint8_t *slot = insn_slot_reserve(INSN_SLOT_LEN);
    size_t off;

    CHECK(slot && is_int3(slot, INSN_SLOT_LEN));
    CHECK((uintptr_t)slot % INSN_SLOT_LEN == 0);
    CHECK(insn_slot_owner((uintptr_t)slot, &off) == NULL);
    insn_slot_put(slot);
}

UNIT_TEST(every_ip_in_a_cell_leads_to_its_owner)
{
    uint8_t *a = insn_slot_reserve(INSN_SLOT_LEN), *b = insn_slot_reserve(INSN_SLOT_LEN);
    size_t off = 99;

    insn_slot_fill(a, &owner, code, sizeof(code));
    insn_slot_fill(b, &other, code, sizeof(code));
    for (size_t i = 0; i < INSN_SLOT_LEN; i++) {
        CHECK(insn_slot_owner((uintptr_t)a + i, &off) == &owner);
        CHECK_EQ(off, i);
        CHECK(insn_slot_owner((uintptr_t)b + i, &off) == &other);
        CHECK_EQ(off, i);
    }
    insn_slot_put(a);
    insn_slot_put(b);
}

UNIT_TEST(an_ip_elsewhere_has_no_owner)
{
    uintptr_t page, unmapped;
    uint8_t *slot = insn_slot_reserve(INSN_SLOT_LEN);
    size_t off;

    insn_slot_fill(slot, &owner, code, sizeof(code));
    page = (uintptr_t)slot / 4096 * 4096;
    unmapped = page + 4096;
    for (uintptr_t ip = page; ip < page + INSN_SLOT_LEN; ip++)
        CHECK(insn_slot_owner(ip, &off) == NULL); /* inside the header of the page */
    CHECK(insn_slot_owner(fake_text_end() - 1, &off) == NULL);
    CHECK(insn_slot_owner(unmapped, &off) == NULL);
    CHECK(insn_slot_owner(0, &off) == NULL);
    CHECK(insn_slot_owner(UINTPTR_MAX, &off) == NULL);
    CHECK(insn_slot_owner((uintptr_t)&owner, &off) == NULL);
    insn_slot_put(slot);
}

UNIT_TEST(a_cell_given_back_is_full_of_int3_and_belongs_to_no_site)
{
    uint8_t *slot, *rest = insn_slot_reserve(INSN_SLOT_LEN);
    size_t off;

    slot = insn_slot_reserve(INSN_SLOT_LEN);
    insn_slot_fill(slot, &owner, code, sizeof(code));
    insn_slot_put(slot);
    CHECK(is_int3(slot, INSN_SLOT_LEN));
    CHECK(insn_slot_owner((uintptr_t)slot, &off) == NULL);
    insn_slot_put(rest);
}

UNIT_TEST(a_full_page_with_a_hole_is_used_again)
{
    static uint8_t *slots[2 * CELLS_PER_PAGE];
    uint8_t *hole;

    for (size_t i = 0; i < 2 * CELLS_PER_PAGE; i++)
        slots[i] = insn_slot_reserve(INSN_SLOT_LEN);
    CHECK_EQ(insn_slot_pages(), 2);
    hole = slots[60];
    insn_slot_put(hole);
    CHECK(insn_slot_reserve(INSN_SLOT_LEN) == hole);
    CHECK_EQ(insn_slot_pages(), 2);
    for (size_t i = 0; i < 2 * CELLS_PER_PAGE; i++)
        insn_slot_put(slots[i]);
}

UNIT_TEST(only_empty_pages_are_given_back)
{
    static uint8_t *slots[CELLS_PER_PAGE + 1];
    size_t off;

    for (size_t i = 0; i <= CELLS_PER_PAGE; i++)
        slots[i] = insn_slot_reserve(INSN_SLOT_LEN);
    insn_slot_fill(slots[CELLS_PER_PAGE], &owner, code, sizeof(code));
    for (size_t i = 0; i < CELLS_PER_PAGE; i++)
        insn_slot_put(slots[i]);
    insn_slot_exit();
    CHECK_EQ(insn_slot_pages(), 1);
    CHECK_EQ(fake.exec_bytes, 4096);
    CHECK(insn_slot_owner((uintptr_t)slots[0], &off) == NULL);
    CHECK(insn_slot_owner((uintptr_t)slots[CELLS_PER_PAGE], &off) == &owner);
    insn_slot_put(slots[CELLS_PER_PAGE]);
}

UNIT_TEST(code_that_does_not_fit_is_a_bug)
{
    static const uint8_t longer[INSN_SLOT_CODE_MAX + 1];
    uint8_t *slot = insn_slot_reserve(INSN_SLOT_LEN);

    CHECK(FAKE_BUG(insn_slot_fill(slot, &owner, longer, sizeof(longer))));
    insn_slot_fill(slot, &owner, longer, INSN_SLOT_CODE_MAX);
    insn_slot_put(slot);
}

UNIT_TESTS_BETWEEN(fake_start, end)
