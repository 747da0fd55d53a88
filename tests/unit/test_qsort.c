/* test_qsort.c - tests of libc/qsort.c: any order, any size of elements, and the inputs
 * for which a simple quicksort is slow.
 */
#include "tests/unit/guard.h"
#include "tests/unit/libc_ours.h"
#include "tests/unit/unit.h"

enum { ROUNDS = 300, COUNT_MAX = 300, SIZE_LIMIT = 24 };

static size_t compared;
static size_t element_size;

static int bytes_compare(const void *a, const void *b)
{
    compared++;
    return memcmp(a, b, element_size);
}

static int int_compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    compared++;
    return (x > y) - (x < y);
}

UNIT_TEST(elements_of_any_size_are_sorted_as_by_the_host)
{
    uint8_t *map = guard_map();
    uint8_t want[COUNT_MAX * SIZE_LIMIT];

    for (int round = 0; round < ROUNDS; round++) {
        size_t count = unit_random() % (COUNT_MAX + 1);
        uint8_t *got;

        element_size = 1 + unit_random() % SIZE_LIMIT;
        got = guard_tail(map, count * element_size);
        for (size_t i = 0; i < count * element_size; i++)
            got[i] = (uint8_t)(unit_random() % 3);
        memcpy(want, got, count * element_size);
        qsort(want, count, element_size, bytes_compare);
        our_qsort(got, count, element_size, bytes_compare);
        CHECK(memcmp(got, want, count * element_size) == 0);
    }
}

/* comparisons_allowed - return 2 n log2 n + n, with the logarithm rounded up. */
static size_t comparisons_allowed(size_t count)
{
    size_t log2 = 0;

    while ((size_t)1 << log2 < count)
        log2++;
    return 2 * count * log2 + count;
}

static void check_sorted(const int *v, int count)
{
    for (int i = 1; i < count; i++)
        if (v[i - 1] > v[i])
            CHECK(v[i - 1] <= v[i]);
    CHECK(compared <= comparisons_allowed((size_t)count));
}

UNIT_TEST(the_inputs_that_ruin_quicksort_do_not_ruin_ours)
{
    enum { COUNT = 20000 };
    int *v = malloc(COUNT * sizeof(int));

    for (int shape = 0; shape < 5; shape++) {
        for (int i = 0; i < COUNT; i++) {
            int shapes[] = { i, COUNT - i, 7, i & 1, i < COUNT / 2 ? i : COUNT - i };

            v[i] = shapes[shape];
        }
        compared = 0;
        our_qsort(v, COUNT, sizeof(int), int_compare);
        check_sorted(v, COUNT);
        if (shape == 0)
            CHECK_EQ(compared, COUNT - 1); /* the elements are in order already */
    }
    free(v);
}

UNIT_TEST(nothing_and_one_element_are_sorted_already)
{
    int one = 5;

    compared = 0;
    our_qsort(NULL, 0, sizeof(int), int_compare);
    our_qsort(&one, 1, sizeof(int), int_compare);
    CHECK_EQ(compared, 0);
    CHECK_EQ(one, 5);
}

UNIT_TESTS()
