/* grader.c - grades lab 8: calls the functions of grader.asm, and notes their returns. */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "return.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))
#define THREADS 40
#define ROUNDS 500
#define LEAPS (3 * RETURN_MAX)

uint64_t twice(uint64_t x);
uint64_t down(uint64_t n);
uint64_t tail(uint64_t x);
uint64_t leaper(uint64_t x);
uint64_t tail_leaper(uint64_t x);
uint64_t outer(uint64_t x, uint64_t (*function)(uint64_t x));
void many(uint64_t in, uint64_t out[12]);
_Noreturn void leap(void);

static __thread struct {
    uint64_t count, digest, misaligned;
    bool is_inside; /* in lab_returned() */
    jmp_buf back;
} mine;

void lab_returned(uint64_t argument, uint64_t value)
{
    mine.misaligned += (uintptr_t)__builtin_frame_address(0) & 15;
    mine.count++;
    mine.digest = lab_digest(mine.digest, &argument, sizeof(argument));
    mine.digest = lab_digest(mine.digest, &value, sizeof(value));
    if (!mine.is_inside && mine.count % 3 == 1) {
        mine.is_inside = true;
        twice(argument); /* a followed function */
        mine.is_inside = false;
    }
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; movdqa %%xmm0, %%xmm1" ::: "xmm0", "xmm1");
}

/* @done: what was done, in words */
static void returns_fact(const char *done)
{
    lab_fact("%s: returns that were seen: %lu", done, mine.count);
    lab_fact("%s: a checksum of their arguments and values, in order: %#lx", done,
             mine.digest);
    lab_fact("at each lab_returned() rsp was a multiple of 16: %s",
             mine.misaligned ? "no" : "yes");
}

static void value(void)
{
    for (unsigned i = 0; i < 1 + lab_case; i++)
        lab_fact("returned %#lx", twice(lab_random()));
    returns_fact("calls of one function");
}

/* The first two cases reach the limit, and exceed it. */
static void depth(void)
{
    if (lab_case < 2)
        lab_fact("returned %#lx", down(RETURN_MAX - 1 + 20 * lab_case));
    else
        lab_fact("returned %#lx", down(1 + lab_below(RETURN_MAX - 2)));
    lab_fact("returned %#lx", down(lab_below(50)));
    returns_fact("a function that calls itself");
}

static void registers(void)
{
    /* clang-format off */
    static const char *const names[] = {
        "rax", "rdx", "xmm0, low half", "xmm0, high half", "xmm1, low half",
        "xmm1, high half", "rbx", "rbp", "r12", "r13", "r14", "r15" };
    /* clang-format on */
    uint64_t out[12];

    many(lab_random(), out);
    for (unsigned i = 0; i < 12; i++)
        lab_fact("behind the call, %s: %#lx", names[i], out[i]);
    returns_fact("one call");
}

static void tail_calls(void)
{
    for (unsigned i = 0; i < 3; i++) {
        lab_fact("returned %#lx", tail(lab_random()));
        lab_fact("returned %#lx", outer(lab_random(), tail));
    }
    returns_fact("functions that end with a jump");
}

_Noreturn void leap(void)
{
    longjmp(mine.back, 1);
}

/* Call a function that is left by longjmp() and does not return. Then return. */
static uint64_t attempt(uint64_t x)
{
    if (!setjmp(mine.back))
        leaper(x);
    return x + 1;
}

/* Call outer(), @levels deep, and then leaper(). */
static uint64_t descend(uint64_t levels)
{
    return levels ? outer(levels - 1, descend) : leaper(0);
}

/* Make so many calls inside of each other that longjmp() leaves all of them. */
static uint64_t attempt_deep(uint64_t levels)
{
    if (!setjmp(mine.back))
        descend(levels);
    return levels + 1;
}

/* Call @leaving @count times and then down(), all with the same slot. */
static void one_slot(uint64_t (*leaving)(uint64_t x), unsigned count)
{
    for (volatile unsigned i = 0; i <= count; i++) {
        uint64_t (*volatile function)(uint64_t x) = i < count ? leaving : down;

        if (!setjmp(mine.back))
            lab_fact("returned %#lx", function(i % 64));
    }
}

/* Call leaper() with @levels slots, each above the slot before. */
static NOINLINE uint64_t rising(unsigned levels)
{
    return (levels ? rising(levels - 1) : 0) + attempt(levels);
}

static void longjmps(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < LEAPS; i++)
        sum += attempt(i);
    lab_fact("sum of the returned values: %#lx", sum + twice(lab_random()));
    returns_fact("calls that longjmp left, then one");
    one_slot(leaper, RETURN_MAX + 76);
    returns_fact("1,100 calls of one slot that longjmp left, then others");
    one_slot(tail_leaper, RETURN_MAX + 76);
    returns_fact("1,100 calls with a tail call that longjmp left, then others");
    lab_fact("sum of the returned values: %#lx",
             rising(RETURN_MAX - 1) + attempt(0) + twice(lab_random()));
    returns_fact("longjmp left calls with rising slots, then one");
    for (unsigned i = 0; i < LEAPS; i++)
        sum += outer(lab_random(), attempt);
    lab_fact("sum of the returned values: %#lx", sum);
    returns_fact("longjmp left calls inside of others");
    lab_fact("returned %#lx", outer(5, attempt_deep));
    returns_fact("longjmp left six calls at once inside of one");
    lab_fact("returned %#lx", attempt_deep(RETURN_MAX) + twice(lab_random()));
    returns_fact("longjmp left 1,024 calls at once, then one");
}

/* Each thread reaches the limit now and then, and each looks at all registers. */
struct run {
    uint64_t seed, sum, count, digest;
};

static pthread_barrier_t ready;

static void *runner(void *arg)
{
    struct run *run = arg;

    pthread_barrier_wait(&ready);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t out[12];

        run->sum += down(i % 64 ? (run->seed + i) % 100 : RETURN_MAX - 1);
        many(run->seed ^ i, out);
        run->sum = lab_digest(run->sum, out, sizeof(out));
        run->sum ^= outer(run->seed ^ i, i % 3 ? tail : twice);
    }
    run->count = mine.count;
    run->digest = mine.digest;
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    struct run runs[THREADS] = { 0 };

    pthread_barrier_init(&ready, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        runs[i].seed = lab_random();
        if (pthread_create(&ids[i], NULL, runner, &runs[i]))
            abort();
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        lab_fact("thread %u: the sum of the returned values: %#lx", i, runs[i].sum);
        lab_fact("thread %u: returns that were seen: %lu", i, runs[i].count);
        lab_fact("thread %u: a checksum of their arguments and values, in order: %#lx", i,
                 runs[i].digest);
    }
}

const struct lab_line lab_lines[] = {
    { "value", value },
    { "depth", depth },
    { "tail", tail_calls },
    { "registers", registers },
    { "longjmp", longjmps },
    { "threads", threads },
    { 0 },
};
