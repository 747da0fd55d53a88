/* test_free_set.c - compares a set of free numbers with a plain array of booleans. */
#include "kernel/mm/free_set.h"
#include "tests/unit/unit.h"

static struct free_set set_make(size_t count)
{
    struct free_set s;

    free_set_init(&s, count, malloc(free_set_storage(count)));
    return s;
}

static void set_drop(struct free_set *s)
{
    free(s->level[0]);
}

UNIT_TEST(a_set_of_one)
{
    struct free_set s = set_make(1);

    CHECK_EQ(free_set_storage(1), 8);
    free_set_add(&s, 0, 1);
    CHECK_EQ(free_set_find(&s, 0), 0);
    CHECK(free_set_find(&s, 1) == FREE_SET_NONE);
    set_drop(&s);
}

UNIT_TEST(lowest_free_one_is_found_across_levels)
{
    struct free_set s = set_make(64 * 64 * 64 + 7);
    size_t last = 64 * 64 * 64 + 6;

    CHECK_EQ(s.levels, 4);
    free_set_add(&s, last, 1);
    CHECK_EQ(free_set_find(&s, 0), last);
    free_set_add(&s, 4096, 1);
    CHECK_EQ(free_set_find(&s, 0), 4096);
    CHECK_EQ(free_set_find(&s, 4096), 4096);
    CHECK_EQ(free_set_find(&s, 4097), last);
    free_set_remove(&s, last, 1);
    CHECK(free_set_find(&s, 4097) == FREE_SET_NONE);
    set_drop(&s);
}

UNIT_TEST(adding_twice_counts_once)
{
    struct free_set s = set_make(300);

    free_set_add(&s, 60, 200);
    free_set_add(&s, 100, 100);
    CHECK_EQ(s.free, 200);
    free_set_remove(&s, 0, 300);
    free_set_remove(&s, 0, 300);
    CHECK_EQ(s.free, 0);
    set_drop(&s);
}

UNIT_TEST(run_is_aligned_and_skips_holes)
{
    struct free_set s = set_make(1000);

    free_set_add(&s, 3, 500);
    free_set_remove(&s, 130, 1);
    CHECK_EQ(free_set_find_run(&s, 0, 4, 4), 4);
    CHECK_EQ(free_set_find_run(&s, 0, 127, 1), 3);
    CHECK_EQ(free_set_find_run(&s, 0, 128, 1), 131);
    CHECK_EQ(free_set_find_run(&s, 0, 128, 64), 192);
    CHECK(free_set_find_run(&s, 0, 373, 1) == FREE_SET_NONE);
    CHECK(free_set_find_run(&s, 0, SIZE_MAX, 1) == FREE_SET_NONE);
    set_drop(&s);
}

UNIT_TEST(run_may_end_at_the_end_but_not_behind_it)
{
    struct free_set s = set_make(100);

    free_set_add(&s, 90, 10);
    CHECK_EQ(free_set_find_run(&s, 0, 10, 1), 90);
    CHECK(free_set_find_run(&s, 0, 11, 1) == FREE_SET_NONE);
    CHECK(free_set_find_run(&s, 0, 1, 128) == FREE_SET_NONE);
    CHECK(!free_set_has_any(&s, 0, 90));
    CHECK(free_set_has_any(&s, 0, 91));
    set_drop(&s);
}

/* ---- against the model ---- */

#define MODEL_COUNT 9000

static size_t model_find_run(const bool *model, size_t from, size_t count, size_t align)
{
    for (size_t i = (from + align - 1) / align * align; i + count <= MODEL_COUNT;
         i += align) {
        size_t n = 0;

        while (n < count && model[i + n])
            n++;
        if (n == count)
            return i;
    }
    return FREE_SET_NONE;
}

static void model_change(struct free_set *s, bool *model)
{
    bool add = unit_random() % 2;
    size_t first = unit_random() % MODEL_COUNT;
    size_t count = unit_random() % (unit_random() % 4 ? 70 : 5000) + 1;

    if (count > MODEL_COUNT - first)
        count = MODEL_COUNT - first;
    if (add)
        free_set_add(s, first, count);
    else
        free_set_remove(s, first, count);
    for (size_t i = first; i < first + count; i++)
        model[i] = add;
}

static void model_compare(const struct free_set *s, const bool *model)
{
    size_t from = unit_random() % MODEL_COUNT;
    size_t count = unit_random() % 200 + 1;
    size_t align = (size_t)1 << (unit_random() % 8);
    size_t total = 0;

    for (size_t i = 0; i < MODEL_COUNT; i++)
        total += model[i];
    CHECK_EQ(s->free, total);
    CHECK_EQ(free_set_has_any(s, from, 1), model[from]);
    CHECK(free_set_find(s, from) == model_find_run(model, from, 1, 1));
    CHECK(free_set_find_run(s, from, count, align) ==
          model_find_run(model, from, count, align));
}

UNIT_TEST(same_answers_as_an_array_of_booleans)
{
    static bool model[MODEL_COUNT];
    struct free_set s = set_make(MODEL_COUNT);

    for (int i = 0; i < 2000; i++) {
        model_change(&s, model);
        model_compare(&s, model);
    }
    set_drop(&s);
}

UNIT_TESTS()
