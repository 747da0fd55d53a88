/* test_execute.c - tests that run real code with probes on every instruction: the code
 * computes the same as without probes, and each execution is one hit.
 */
#define _GNU_SOURCE
#include "probes/core/registry.h"
#include "probes/explain/totals.h"
#include "tests/hosted/fixture.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/probe_all.h"
#include "tests/unit/unit.h"

#include <pthread.h>

#define THREADS 4
#define FIXTURES_MAX 128

/* The data of a thread. It has its own memory, and so its own addresses and results. */
struct runner {
    struct bench bench;
    struct outcome *results; /* [fixture][input], without probes */
    unsigned differences;
    enum way_asked way;
    pthread_t thread;
};

static struct runner first;
static uint64_t first_seed;
static unsigned inputs;                    /* for each fixture */
static uint32_t counts[FIXTURES_TEXT_MAX]; /* executions, over all fixtures and inputs */
static size_t blocks_at_rest;

static uint64_t seed_of(size_t f, unsigned input)
{
    return first_seed + f * 1000003 + input;
}

/* for_all - call @fn for each input of each fixture. */
static void for_all(struct runner *r,
                    void (*fn)(struct runner *r, const struct fixture *f, uint64_t seed,
                               struct outcome *result))
{
    struct fixture f;

    for (size_t i = 0; fixture_get(i, &f); i++)
        for (unsigned input = 0; input < inputs; input++)
            fn(r, &f, seed_of(i, input), &r->results[i * inputs + input]);
}

static void learn(struct runner *r, const struct fixture *f, uint64_t seed,
                  struct outcome *result)
{
    *result = bench_run(&r->bench, f, seed);
}

static bool differs(const struct runner *r, struct outcome a, const struct outcome *b)
{
    return outcomes_differ(a, *b, !by_jumps(r->way));
}

static void compare(struct runner *r, const struct fixture *f, uint64_t seed,
                    struct outcome *result)
{
    if (!differs(r, bench_run(&r->bench, f, seed), result))
        return;
    if (!r->differences++)
        unit_note("%s, input %lu, differs", f->name, seed);
}

static void count_executions(struct runner *r, const struct fixture *f, uint64_t seed,
                             struct outcome *result UNUSED)
{
    fixture_trace(&r->bench, f, seed, counts);
}

static void runner_init(struct runner *r)
{
    bench_init(&r->bench);
    r->results = calloc((size_t)FIXTURES_MAX * inputs, sizeof(*r->results));
    r->differences = 0;
}

static void start(void)
{
    posix_init();
    first.differences = 0;
    if (first.results)
        return;
    inputs = (unsigned)posix_rounds(3, 20);
    first_seed = unit_seed();
    blocks_at_rest = posix_blocks();
    runner_init(&first);
    for_all(&first, learn);
    for_all(&first, count_executions);
    counters_init();
}

/* ---- one thread ---- */

UNIT_TEST(fixtures_are_reproducible)
{
    start();
    for_all(&first, compare);
    CHECK_EQ(first.differences, 0);
}

UNIT_TEST(nearly_all_of_the_fixtures_is_executed)
{
    size_t never = 0;

    start();
    for (size_t i = 0; i < probe_all_count(); i++)
        never += !counts[counters[i].kp.addr - fixtures_start()];
    unit_note("%zu instructions are never executed", never);
    CHECK(never < probe_all_count() / 8);
}

/* The fixtures have rows of one-byte instructions, unlike code of a compiler. One or two
 * of these may stay breakpoints, depending on their addresses. With ASan only half of the
 * range of pads is free.
 */
#ifdef __SANITIZE_ADDRESS__
#define JUMPS_MIN(all) ((all) - (all) / 20)
#else
#define JUMPS_MIN(all) ((all) - (all) / 200)
#endif

static void run_probed(enum way_asked way)
{
    start();
    first.way = way;
    probe_all(way);
    for_all(&first, compare);
    check_counts(counts, 1, way);
    unprobe_all();
    for_all(&first, compare);
    CHECK_EQ(first.differences, 0);
}

UNIT_TEST(boosted_or_emulated_they_compute_the_same)
{
    run_probed(ASK_BOOST);
}

UNIT_TEST(stepped_by_int3_they_compute_the_same)
{
    run_probed(ASK_STEP_INT3);
}

UNIT_TEST(stepped_by_tf_they_compute_the_same)
{
    run_probed(ASK_STEP_TF);
}

/* run_jumps - as run_probed(), but the sites are jumps, and so no hit traps. Only one
 * kind of instruction still traps: if it has a post-handler, and neither a copy in a
 * detour nor the engine can run it, it is stepped.
 */
static void run_jumps(enum way_asked way)
{
    struct probe_totals before, after;
    unsigned long traps;
    size_t jumps;

    start();
    first.way = way;
    jumps = probe_all(way);
    account_totals(&before);
    traps = posix_traps;
    for_all(&first, compare);
    traps = posix_traps - traps;
    account_totals(&after);
    check_counts(counts, 1, way);
    unit_note("%zu jumps of %zu, %lu traps", jumps, probe_all_count(), traps);
    CHECK(jumps >= JUMPS_MIN(probe_all_count()));
    CHECK_EQ(traps, trapping(counts) + after.steps - before.steps);
    CHECK(way == ASK_JUMP_POST || after.steps == before.steps);
    unprobe_all();
    for_all(&first, compare);
    CHECK_EQ(first.differences, 0);
}

UNIT_TEST(as_jumps_that_count_they_compute_the_same)
{
    run_jumps(ASK_JUMP_COUNT);
}

UNIT_TEST(as_jumps_to_light_handlers_they_compute_the_same)
{
    run_jumps(ASK_JUMP_LIGHT);
}

UNIT_TEST(as_jumps_to_handlers_they_compute_the_same)
{
    run_jumps(ASK_JUMP_CALL);
}

UNIT_TEST(as_jumps_with_post_handlers_they_compute_the_same)
{
    run_jumps(ASK_JUMP_POST);
}

static void compare_one(const struct fixture *f, size_t i)
{
    for (unsigned input = 0; input < 3; input++)
        compare(&first, f, seed_of(i, input), &first.results[i * inputs + input]);
}

/* compare_around - run the fixture that contains @addr, or all fixtures if none contains
 * it.
 */
static void compare_around(uintptr_t addr)
{
    bool found = false;
    struct fixture f;

    for (size_t i = 0; fixture_get(i, &f); i++) {
        if (addr - f.start >= f.size)
            continue;
        compare_one(&f, i);
        found = true;
    }
    for (size_t i = 0; !found && fixture_get(i, &f); i++)
        compare_one(&f, i);
}

UNIT_TEST(each_alone_in_every_way)
{
    size_t jumps = 0;

    start();
    for (enum way_asked way = ASK_BOOST; way < WAYS_ASKED; way++) {
        counters_reset(way);
        first.way = way;
        for (size_t i = 0; i < probe_all_count(); i++) {
            jumps += probe_one(i);
            compare_around(counters[i].kp.addr);
            CHECK_EQ(counters[i].kp.nmissed, 0);
            CHECK_EQ(unregister_kprobe(&counters[i].kp), 0);
        }
    }
    CHECK(jumps >= JUMPS_MIN((WAYS_ASKED - ASK_JUMP_COUNT) * probe_all_count()));
    CHECK_EQ(first.differences, 0);
}

UNIT_TEST(nothing_is_left_of_them)
{
    start();
    probe_all(ASK_STEP_INT3);
    CHECK(posix_blocks() > blocks_at_rest);
    unprobe_all();
    CHECK_EQ(registry_count(), 0);
    CHECK_EQ(posix_blocks(), blocks_at_rest);
}

/* ---- a program that steps itself ---- */

static uint32_t steps[FIXTURES_TEXT_MAX];
static struct runner stepping;

static void learn_steps(struct runner *r, const struct fixture *f, uint64_t seed,
                        struct outcome *result)
{
    *result = fixture_trace(&r->bench, f, seed, steps);
}

static void compare_steps(struct runner *r, const struct fixture *f, uint64_t seed,
                          struct outcome *result)
{
    if (differs(r, fixture_trace(&r->bench, f, seed, steps), result) && !r->differences++)
        unit_note("%s, input %lu, differs", f->name, seed);
}

UNIT_TEST(a_program_that_steps_itself_sees_no_difference)
{
    start();
    runner_init(&stepping);
    for_all(&stepping, learn_steps);
    CHECK(memcmp(steps, counts, sizeof(steps)) == 0);
    for (enum way_asked way = ASK_BOOST; way < WAYS_ASKED; way++) {
        memset(steps, 0, sizeof(steps));
        stepping.way = way;
        probe_all(way);
        for_all(&stepping, compare_steps);
        check_counts(counts, 1, way);
        unprobe_all();
        CHECK(memcmp(steps, counts, sizeof(steps)) == 0);
    }
    CHECK_EQ(stepping.differences, 0);
}

/* ---- several threads ---- */

static pthread_barrier_t barrier;

static void *run_thread(void *arg)
{
    struct runner *r = arg;

    posix_thread_enter();
    runner_init(r);
    for_all(r, learn);
    for (enum way_asked way = ASK_BOOST; way < WAYS_ASKED; way++) {
        pthread_barrier_wait(&barrier); /* the main thread registers the probes */
        pthread_barrier_wait(&barrier);
        r->way = way;
        for_all(r, compare);
        pthread_barrier_wait(&barrier); /* the main thread unregisters them */
    }
    posix_thread_leave();
    return NULL;
}

UNIT_TEST(four_threads_at_once)
{
    static struct runner runners[THREADS];

    start();
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&runners[i].thread, NULL, run_thread, &runners[i]);
    for (enum way_asked way = ASK_BOOST; way < WAYS_ASKED; way++) {
        pthread_barrier_wait(&barrier);
        probe_all(way);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        check_counts(counts, THREADS, way);
        unprobe_all();
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(runners[i].thread, NULL);
        CHECK_EQ(runners[i].differences, 0);
    }
}

UNIT_TESTS()
