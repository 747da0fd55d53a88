/* test_insn_slot.c - tests of cells: a cell is given out once, filled, belongs to a site,
 * and is full of int3 when it is free.
 */
#include "probes/core/insn_slot.h"

#include "probes/core/life.h"
#include "tests/unit/port_fake.h"

#include <string.h>

#define CELLS_PER_PAGE 127 /* 128 less one for the header */
#define OWNER_LEN 8

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

static void a_new_cell_is_full_of_int3_and_belongs_to_no_site(void)
{
    uint8_t *slot;
    size_t off;

    fake_start();
    slot = insn_slot_reserve(INSN_SLOT_LEN);
    CHECK(slot && is_int3(slot, INSN_SLOT_LEN));
    CHECK((uintptr_t)slot % INSN_SLOT_LEN == 0);
    CHECK(insn_slot_owner((uintptr_t)slot, &off) == NULL);
    insn_slot_put(slot);
    end();
}

static void a_filled_cell_holds_the_code_then_int3(void)
{
    uint8_t *slot;

    fake_start();
    slot = insn_slot_reserve(INSN_SLOT_LEN);
    insn_slot_fill(slot, &owner, code, sizeof(code));
    CHECK_BYTES(slot, "48 89 e5 e9 01 02 03 04");
    CHECK(is_int3(slot + sizeof(code), INSN_SLOT_CODE_MAX - sizeof(code)));
    insn_slot_put(slot);
    end();
}

static void every_ip_in_a_cell_leads_to_its_owner(void)
{
    uint8_t *a, *b;
    size_t off = 99;

    fake_start();
    a = insn_slot_reserve(INSN_SLOT_LEN);
    b = insn_slot_reserve(INSN_SLOT_LEN);
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
    end();
}

static void an_ip_elsewhere_has_no_owner(void)
{
    uintptr_t page, unmapped;
    uint8_t *slot;
    size_t off;

    fake_start();
    slot = insn_slot_reserve(INSN_SLOT_LEN);
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
    end();
}

static void cells_of_each_size_fill_their_page(void)
{
    static const struct {
        size_t len, per_page;
    } sizes[] = { { INSN_SLOT_LEN, CELLS_PER_PAGE },
                  { INSN_SLOT_COUNTED_LEN, 102 },
                  { INSN_SLOT_LARGE_LEN, 63 },
                  { INSN_SLOT_DETOUR_LEN, 11 } };
    uint8_t *cells[CELLS_PER_PAGE];
    size_t off;

    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        const size_t len = sizes[s].len, count = sizes[s].per_page;

        fake_start();
        for (size_t i = 0; i < count; i++) {
            cells[i] = insn_slot_reserve(len);
            insn_slot_fill(cells[i], &owner, code, sizeof(code));
            CHECK((uintptr_t)cells[i] % OWNER_LEN == 0);
            CHECK_EQ(cells[i] - cells[0], i * len);
            CHECK_EQ(insn_slot_room(cells[i] + 5), len - OWNER_LEN - 5);
        }
        CHECK_EQ(((uintptr_t)cells[count - 1] + len) % 4096, 0);
        CHECK_EQ(insn_slot_pages(), 1);
        for (size_t i = 0; i < count; i++)
            for (size_t at = 0; at < len; at += len - 1) {
                CHECK(insn_slot_start(cells[i] + at) == cells[i]);
                CHECK(insn_slot_owner((uintptr_t)cells[i] + at, &off) == &owner);
                CHECK_EQ(off, at);
            }
        for (size_t i = 0; i < count; i++)
            insn_slot_put(cells[i]);
        end();
    }
}

static void code_takes_the_smallest_cell_that_holds_it(void)
{
    CHECK_EQ(insn_slot_len(1), INSN_SLOT_LEN);
    CHECK_EQ(insn_slot_len(INSN_SLOT_CODE_MAX), INSN_SLOT_LEN);
    CHECK_EQ(insn_slot_len(INSN_SLOT_CODE_MAX + 1), INSN_SLOT_COUNTED_LEN);
    CHECK_EQ(insn_slot_len(INSN_SLOT_COUNTED_CODE_MAX), INSN_SLOT_COUNTED_LEN);
    CHECK_EQ(insn_slot_len(INSN_SLOT_COUNTED_CODE_MAX + 1), INSN_SLOT_LARGE_LEN);
    CHECK_EQ(insn_slot_len(INSN_SLOT_LARGE_CODE_MAX + 1), INSN_SLOT_DETOUR_LEN);
    CHECK_EQ(insn_slot_len(INSN_SLOT_DETOUR_CODE_MAX), INSN_SLOT_DETOUR_LEN);
}

static void executable_memory_of_others_holds_no_cells(void)
{
    uint8_t *page;
    size_t off;

    fake_start();
    page = plat_exec_alloc(4096);
    for (size_t i = 0; i < 4096; i++)
        CHECK(insn_slot_owner((uintptr_t)page + i, &off) == NULL);
    plat_exec_free(page, 4096);
    end();
}

static void a_cell_given_back_is_full_of_int3_and_belongs_to_no_site(void)
{
    uint8_t *slot, *rest;
    size_t off;

    fake_start();
    rest = insn_slot_reserve(INSN_SLOT_LEN);
    slot = insn_slot_reserve(INSN_SLOT_LEN);
    insn_slot_fill(slot, &owner, code, sizeof(code));
    insn_slot_put(slot);
    CHECK(is_int3(slot, INSN_SLOT_LEN));
    CHECK(insn_slot_owner((uintptr_t)slot, &off) == NULL);
    insn_slot_put(rest);
    end();
}

static void a_cell_never_filled_can_be_given_back(void)
{
    fake_start();
    insn_slot_put(insn_slot_reserve(INSN_SLOT_LEN));
    insn_slot_put(NULL);
    end();
}

static void no_cell_is_handed_out_twice(void)
{
    static uint8_t *slots[3 * CELLS_PER_PAGE + 5];
    const size_t count = sizeof(slots) / sizeof(slots[0]);

    fake_start();
    for (size_t i = 0; i < count; i++) {
        slots[i] = insn_slot_reserve(INSN_SLOT_LEN);
        insn_slot_fill(slots[i], &owner, code, sizeof(code));
        for (size_t j = 0; j < i; j++)
            CHECK(slots[i] != slots[j]);
    }
    CHECK_EQ(insn_slot_pages(), 4);
    for (size_t i = 0; i < count; i++)
        insn_slot_put(slots[i]);
    end();
}

static void a_full_page_with_a_hole_is_used_again(void)
{
    static uint8_t *slots[2 * CELLS_PER_PAGE];
    uint8_t *hole;

    fake_start();
    for (size_t i = 0; i < 2 * CELLS_PER_PAGE; i++)
        slots[i] = insn_slot_reserve(INSN_SLOT_LEN);
    CHECK_EQ(insn_slot_pages(), 2);
    hole = slots[60];
    insn_slot_put(hole);
    CHECK(insn_slot_reserve(INSN_SLOT_LEN) == hole);
    CHECK_EQ(insn_slot_pages(), 2);
    for (size_t i = 0; i < 2 * CELLS_PER_PAGE; i++)
        insn_slot_put(slots[i]);
    end();
}

static void only_empty_pages_are_given_back(void)
{
    static uint8_t *slots[CELLS_PER_PAGE + 1];
    size_t off;

    fake_start();
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
    end();
}

static void coming_and_going_keeps_to_the_same_pages(void)
{
    static uint8_t *slots[300];

    fake_start();
    for (int round = 0; round < 5000; round++) {
        uint8_t **slot = &slots[unit_random() % 300];

        if (*slot) {
            insn_slot_put(*slot);
            *slot = NULL;
            continue;
        }
        *slot = insn_slot_reserve(INSN_SLOT_LEN);
        CHECK(is_int3(*slot, INSN_SLOT_LEN));
        insn_slot_fill(*slot, &owner, code, sizeof(code));
        CHECK(insn_slot_pages() <= 3);
    }
    for (size_t i = 0; i < 300; i++)
        insn_slot_put(slots[i]);
    end();
}

static void without_memory_there_is_no_cell(void)
{
    for (unsigned n = 1; n <= 2; n++) {
        fake_start();
        fake_fail_at(n);
        CHECK(insn_slot_reserve(INSN_SLOT_LEN) == NULL);
        CHECK(fake_failed());
        CHECK_EQ(fake.blocks, 0);
        CHECK_EQ(fake.exec_bytes, 0);
        end();
    }
}

static void code_that_does_not_fit_is_a_bug(void)
{
    static const uint8_t longer[INSN_SLOT_CODE_MAX + 1];
    uint8_t *slot;

    fake_start();
    slot = insn_slot_reserve(INSN_SLOT_LEN);
    CHECK(FAKE_BUG(insn_slot_fill(slot, &owner, longer, sizeof(longer))));
    insn_slot_fill(slot, &owner, longer, INSN_SLOT_CODE_MAX);
    insn_slot_put(slot);
    end();
}

UNIT_TESTS(a_new_cell_is_full_of_int3_and_belongs_to_no_site,
           a_filled_cell_holds_the_code_then_int3, every_ip_in_a_cell_leads_to_its_owner,
           an_ip_elsewhere_has_no_owner, cells_of_each_size_fill_their_page,
           code_takes_the_smallest_cell_that_holds_it,
           executable_memory_of_others_holds_no_cells,
           a_cell_given_back_is_full_of_int3_and_belongs_to_no_site,
           a_cell_never_filled_can_be_given_back, no_cell_is_handed_out_twice,
           a_full_page_with_a_hole_is_used_again, only_empty_pages_are_given_back,
           coming_and_going_keeps_to_the_same_pages, without_memory_there_is_no_cell,
           code_that_does_not_fit_is_a_bug)
