/* test_pad.c - tests of landing pads in a process: pads are executed, moved, and given
 * back.
 */
#include "probes/jump/pad.h"

#include "probes/jump/platform_jump.h"
#include "tests/hosted/posix.h"
#include "tests/unit/unit.h"

#define PAGE_LEN ((uintptr_t)4096)
#define ANSWER 4711
#define PADS 600

static __attribute__((noinline)) int target(void)
{
    return ANSWER;
}

static int pad_call(uintptr_t pad)
{
    return ((int (*)(void))pad)();
}

/* first_page - return the first page of the range of pads; all pads of the test fit
 * there.
 */
static uintptr_t first_page(void)
{
    struct plat_pad_range range;

    plat_pad_range(&range);
    return range.start;
}

static int make(const uintptr_t *pads, size_t count)
{
    struct pad_jump jumps[PADS];
    int err = pad_reserve(pads, count);

    if (err)
        return err;
    for (size_t i = 0; i < count; i++)
        jumps[i] = (struct pad_jump){ pads[i], (uintptr_t)target };
    plat_lock(PLAT_TEXT);
    pad_fill(jumps, count);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
    return 0;
}

UNIT_TEST(many_pages_share_few_frames)
{
    uintptr_t pads[PADS];

    posix_init();
    plat_lock(PLAT_PROBES);
    for (size_t i = 0; i < PADS; i++)
        pads[i] = first_page() + i * (PAGE_LEN * 129 + 5) + 4090;
    CHECK_EQ(make(pads, PADS), 0);
    CHECK(pad_pages() >= PADS && pad_frames() < 8);
    for (size_t i = 0; i < PADS; i++)
        CHECK_EQ(pad_call(pads[i]), ANSWER);
    pad_free_all(pads, PADS);
    CHECK_EQ(pad_target(pads[0]), 0);
    CHECK_EQ(pad_frames(), 0);
    plat_unlock(PLAT_PROBES);
}

UNIT_TEST(a_page_moves_with_its_pads)
{
    uintptr_t a, b, c;

    posix_init();
    plat_lock(PLAT_PROBES);
    a = first_page() + 100;
    b = a + PAGE_LEN + 100;
    c = a + 102;
    CHECK_EQ(make(&a, 1), 0);
    CHECK_EQ(make(&b, 1), 0);
    CHECK_EQ(pad_frames(), 1);
    CHECK_EQ(make(&c, 1), 0);
    CHECK_EQ(pad_frames(), 2);
    CHECK(pad_call(a) == ANSWER && pad_call(b) == ANSWER && pad_call(c) == ANSWER);
    pad_free_all(&a, 1);
    CHECK(pad_call(b) == ANSWER && pad_call(c) == ANSWER);
    pad_free_all(&b, 1);
    pad_free_all(&c, 1);
    CHECK_EQ(pad_pages(), 0);
    plat_unlock(PLAT_PROBES);
}

UNIT_TESTS()
