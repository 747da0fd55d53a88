/* test_pad.c - tests of landing pads: pages share frames and move to other frames, and
 * pads are reserved all or none.
 */
#include "probes/jump/pad.h"

#include "probes/insn/encode.h"
#include "tests/unit/port_fake.h"

#define PAGE_LEN ((uintptr_t)4096)

static uintptr_t low, target;

static void start(void)
{
    struct plat_pad_range range;

    fake_start();
    plat_pad_range(&range);
    low = (range.start + PAGE_LEN - 1) & ~(PAGE_LEN - 1);
    target = fake_exec_start();
    plat_lock(PLAT_PROBES);
}

static void end(void)
{
    plat_unlock(PLAT_PROBES);
    CHECK_EQ(pad_count(), 0);
    CHECK_EQ(pad_pages(), 0);
    CHECK_EQ(pad_frames(), 0);
    CHECK_EQ(pad_bytes(), 0);
    fake_end();
}

static int reserve(uintptr_t pad)
{
    return pad_reserve(&pad, 1);
}

static void fill(uintptr_t pad, uintptr_t to)
{
    struct pad_jump jump = { pad, to };

    plat_lock(PLAT_TEXT);
    pad_fill(&jump, 1);
    plat_unlock(PLAT_TEXT);
}

static void give_back(uintptr_t pad)
{
    pad_free_all(&pad, 1);
}

static bool is_int3(uintptr_t addr, size_t len)
{
    uint8_t byte;

    for (size_t i = 0; i < len; i++) {
        if (plat_text_read(&byte, addr + i, 1) || byte != INSN_INT3)
            return false;
    }
    return true;
}

/* ---- one pad ---- */

UNIT_TEST(a_reserved_pad_is_int3_until_it_is_filled)
{
    uintptr_t pad = low + 100;

    CHECK(pad_is_free(pad));
    CHECK_EQ(reserve(pad), 0);
    CHECK(!pad_is_free(pad));
    CHECK(is_int3(pad, PAD_LEN));
    CHECK_EQ(pad_target(pad), 0);
    fill(pad, target);
    CHECK_EQ(pad_target(pad), target);
    give_back(pad);
    CHECK(pad_is_free(pad));
    CHECK_EQ(pad_target(pad), 0);
}

UNIT_TEST(a_pad_may_lie_on_two_pages)
{
    for (uintptr_t off = PAGE_LEN - 4; off < PAGE_LEN; off++) {
        CHECK(pad_is_free(low + off));
        CHECK_EQ(reserve(low + off), 0);
        CHECK_EQ(pad_pages(), 2);
        fill(low + off, target + off);
        CHECK_EQ(pad_target(low + off), target + off);
        CHECK(!pad_is_free(low + PAGE_LEN - 4));
        give_back(low + off);
    }
}

UNIT_TEST(no_pad_where_text_and_copies_are)
{
    struct plat_pad_range range;

    plat_pad_range(&range);
    CHECK(!pad_is_free(range.hole_start) && !pad_is_free(range.hole_start - 4));
    CHECK(pad_is_free(range.hole_start - 5) && pad_is_free(range.hole_end));
    CHECK(!pad_is_free(range.end - 4) && !pad_is_free(range.start - 1));
    CHECK(!pad_is_free(0) && !pad_is_free(UINTPTR_MAX));
}

/* ---- frames ---- */

UNIT_TEST(the_same_bytes_of_two_pages_need_two_frames)
{
    for (uintptr_t at = low + PAD_LEN; at < low + PAGE_LEN - PAD_LEN; at++) {
        CHECK_EQ(reserve(at), 0);
        CHECK_EQ(reserve(at + PAGE_LEN - PAD_LEN + 1), 0);
        CHECK_EQ(pad_frames(), 2);
        give_back(at);
        give_back(at + PAGE_LEN - PAD_LEN + 1);
    }
}

/* Two pages show one frame. Then a pad on the first page needs bytes that a pad on the
 * second page uses, so the first page moves.
 */
UNIT_TEST(a_page_moves_to_a_new_frame_with_its_pads)
{
    uintptr_t a = low + 100, b = low + PAGE_LEN + 200;

    CHECK_EQ(reserve(a), 0);
    CHECK_EQ(reserve(b), 0);
    fill(a, target);
    fill(b, target + 32);
    CHECK_EQ(reserve(low + 202), 0);
    CHECK_EQ(pad_frames(), 2);
    CHECK(fake_pad_frame(low) != fake_pad_frame(low + PAGE_LEN));
    CHECK_EQ(pad_target(a), target);
    CHECK(is_int3(low + 202, PAD_LEN));
    CHECK(is_int3(low + PAGE_LEN + 100, PAD_LEN));
    fill(low + 202, target + 64);
    CHECK_EQ(pad_target(b), target + 32);
    CHECK_EQ(pad_target(low + 202), target + 64);
    give_back(a);
    give_back(low + 202);
    give_back(b);
}

UNIT_TEST(a_page_moves_to_a_frame_with_room)
{
    uintptr_t pads[] = { 100, PAGE_LEN + 200, 2 * PAGE_LEN + 100 };

    for (size_t i = 0; i < 3; i++) {
        pads[i] += low;
        CHECK_EQ(reserve(pads[i]), 0);
        fill(pads[i], target + 32 * i);
    }
    CHECK_EQ(pad_frames(), 2);
    CHECK_EQ(reserve(low + PAGE_LEN + 100), 0); /* both frames use these bytes */
    CHECK_EQ(pad_frames(), 3);
    CHECK(pad_bytes() > 3 * PAGE_LEN && pad_bytes() < 4 * PAGE_LEN);
    CHECK_EQ(reserve(low + 3 * PAGE_LEN + 400), 0);
    CHECK_EQ(reserve(low + 3 * PAGE_LEN + 100), 0);
    CHECK(is_int3(low + 3 * PAGE_LEN, PAGE_LEN));
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ(pad_target(pads[i]), target + 32 * i);
    pad_free_all(pads, 3);
    give_back(low + PAGE_LEN + 100);
    give_back(low + 3 * PAGE_LEN + 400);
    give_back(low + 3 * PAGE_LEN + 100);
}

/* ---- failures ---- */

UNIT_TEST(a_page_with_another_owner_is_remembered)
{
    uintptr_t pads[2];

    pads[0] = low + 100;
    pads[1] = low + PAGE_LEN + 100;
    fake_pad_foreign(low + PAGE_LEN, true);
    CHECK(pad_is_free(pads[1]));
    CHECK_EQ(pad_reserve(pads, 2), -EBUSY);
    CHECK_EQ(pad_count(), 0);
    CHECK(pad_is_free(pads[0]));
    CHECK(!pad_is_free(pads[1]));
    fake_pad_foreign(low + PAGE_LEN, false);
    CHECK_EQ(reserve(pads[0]), 0);
    CHECK(pad_is_free(pads[1]));
    give_back(pads[0]);
}

/* There are pads on pages of their own, on a common page, and on a page that has to
 * move.
 */
UNIT_TEST(without_memory_all_or_nothing)
{
    uintptr_t pads[12], before[2];
    unsigned n = 1;
    int err = -ENOMEM;

    before[0] = low + 100;
    before[1] = low + PAGE_LEN + 200;
    CHECK_EQ(pad_reserve(before, 2), 0);
    fill(before[0], target);
    fill(before[1], target + 32);
    for (uintptr_t i = 0; i < 10; i++)
        pads[i] = low + 9 * PAGE_LEN + (i % 4) * (PAGE_LEN + 300) + i * 10;
    pads[10] = low + 200;
    pads[11] = low + 4 * PAGE_LEN - 2;
    for (; err; n++) {
        fake_fail_at(n);
        err = pad_reserve(pads, 12);
        CHECK(err == 0 || err == -ENOMEM);
        CHECK_EQ(pad_count(), err ? 2 : 14);
        CHECK_EQ(pad_is_free(pads[0]), err != 0);
        CHECK_EQ(pad_target(before[0]), target);
        CHECK_EQ(pad_target(before[1]), target + 32);
    }
    fake_fail_at(0);
    CHECK(n > 10);
    pad_free_all(pads, 12);
    pad_free_all(before, 2);
}

UNIT_TEST(a_pad_that_is_not_reserved_is_not_given_back)
{
    CHECK_EQ(reserve(low + 100), 0);
    CHECK(FAKE_BUG(give_back(low + 200)));
    give_back(low + 100);
}

/* ---- many ---- */

#define MANY 3000

static struct pad_jump jumps[MANY];
static bool is_held[MANY];

/* random_pad - return an address for a pad: on a dense page, at the end of a page, or
 * anywhere.
 */
static uintptr_t random_pad(void)
{
    uint64_t x = unit_random();

    switch (x & 3) {
    case 0:
        return low + PAGE_LEN * 40 + (x >> 8) % 819 * 5;
    case 1:
        return low + (x >> 8) % 60 * PAGE_LEN - 6 + (x >> 40) % 12;
    default:
        return low + (x >> 8) % (UINT64_C(1) << 30);
    }
}

static void held_check(void)
{
    for (size_t i = 0; i < MANY; i++) {
        if (is_held[i])
            CHECK_EQ(pad_target(jumps[i].pad), jumps[i].target);
    }
}

/* some_reserve - reserve and fill pads, @count at most. */
static void some_reserve(size_t count)
{
    static struct pad_jump fresh[MANY];
    size_t n = 0;

    for (size_t i = 0; i < MANY && n < count; i++) {
        if (is_held[i])
            continue;
        jumps[i] = (struct pad_jump){ random_pad(), target + 32 * i };
        if (!pad_is_free(jumps[i].pad) || pad_reserve(&jumps[i].pad, 1))
            continue;
        fresh[n++] = jumps[i];
        is_held[i] = true;
    }
    plat_lock(PLAT_TEXT);
    pad_fill(fresh, n);
    plat_unlock(PLAT_TEXT);
}

static void some_free(size_t count)
{
    static uintptr_t pads[MANY];
    size_t n = 0;

    for (size_t i = 0; i < MANY && n < count; i++) {
        if (!is_held[i] || unit_random() % 3)
            continue;
        is_held[i] = false;
        pads[n++] = jumps[i].pad;
    }
    pad_free_all(pads, n);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(pad_target(pads[i]), 0);
}

UNIT_TEST(random_orders_leave_nothing)
{
    for (unsigned round = 0; round < 30; round++) {
        some_reserve(1 + unit_random() % (MANY / 3));
        held_check();
        some_free(1 + unit_random() % (MANY / 3));
        held_check();
    }
    unit_note("%zu pads, %zu pages, %zu frames", pad_count(), pad_pages(), pad_frames());
    while (pad_count())
        some_free(MANY);
}

UNIT_TEST(many_at_once_share_frames)
{
    static uintptr_t pads[MANY];
    size_t n = 0;

    while (n < MANY) {
        uintptr_t pad = low + unit_random() % (UINT64_C(1) << 30);
        size_t i = 0;

        while (i < n && pads[i] - pad + 4 > 8)
            i++;
        if (i < n)
            continue;
        jumps[n] = (struct pad_jump){ pad, target + n };
        pads[n++] = pad;
    }
    CHECK_EQ(pad_reserve(pads, n), 0);
    plat_lock(PLAT_TEXT);
    pad_fill(jumps, n);
    plat_unlock(PLAT_TEXT);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(pad_target(jumps[i].pad), jumps[i].target);
    CHECK(pad_frames() <= 16);
    unit_note("%zu pads, %zu pages, %zu frames", pad_count(), pad_pages(), pad_frames());
    pad_free_all(pads, n);
}

UNIT_TESTS_BETWEEN(start, end)
