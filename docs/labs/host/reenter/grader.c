/* grader.c - grades lab 6: calls functions with probes. The handlers of these probes call
 * functions with probes, too.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "reenter.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define PROBES 8
#define THREADS 4
#define CALLS 20000
#define DEPTH_MAX 10000 /* nested handlers; more would overflow the stack */

static struct probe probes[PROBES];
static uint64_t seen;
static unsigned depth;
static _Atomic unsigned taken;

static void function(unsigned i, uint64_t x)
{
    hit(&probes[i], x);
}

static void handle_with(void (*handler)(struct probe *, uint64_t))
{
    for (unsigned i = 0; i < PROBES; i++)
        probes[i].handler = handler;
}

static void counts_fact(void)
{
    for (unsigned i = 0; i < PROBES; i++)
        lab_fact("probe %u: %lu hits, %lu misses", i, probes[i].hits, probes[i].misses);
    lab_fact("the handlers saw %#lx", seen);
}

static void note(struct probe *p, uint64_t x)
{
    uint64_t what[] = { (uint64_t)(p - probes), x };

    seen = lab_digest(seen, what, sizeof(what));
    if (++depth > DEPTH_MAX)
        abort();
}

static void note_only(struct probe *p, uint64_t x)
{
    note(p, x);
    depth--;
}

static void call_itself(struct probe *p, uint64_t x)
{
    note(p, x);
    function((unsigned)(p - probes), x + 1);
    depth--;
}

static void call_others(struct probe *p, uint64_t x)
{
    unsigned i = (unsigned)(p - probes);

    note(p, x);
    for (unsigned k = 0; k < x % 4; k++)
        function((unsigned)((i + x / 4 + k) % PROBES), x / 3 + k);
    depth--;
}

static void nothing(struct probe *p, uint64_t x)
{
    (void)p;
    (void)x;
}

/* Let another thread run in the middle of a hit, also on a machine with one CPU. */
static void yield_sometimes(struct probe *p, uint64_t x)
{
    (void)p;
    if (x % 64 == 0)
        sched_yield();
}

static void calls(unsigned count)
{
    while (count--)
        function(lab_below(PROBES), lab_random());
}

static void once(void)
{
    handle_with(note_only);
    calls(1 + lab_below(100));
    counts_fact();
}

static void recursion(void)
{
    handle_with(call_itself);
    calls(1 + lab_below(100));
    counts_fact();
}

static void nested(void)
{
    handle_with(call_others);
    calls(1 + lab_below(30));
    counts_fact();
}

static void on_signal(int sig)
{
    (void)sig;
    function(taken % PROBES, taken);
    taken++;
}

struct storm {
    pthread_t target;
    unsigned count;
};

static void *send_signals(void *arg)
{
    const struct storm *storm = arg;

    for (unsigned i = 0; i < storm->count; i++) {
        pthread_kill(storm->target, SIGUSR1);
        while (taken == i)
            sched_yield();
    }
    return NULL;
}

static void signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct storm storm = { pthread_self(), 200 + lab_below(100) };
    unsigned executions = CALLS + lab_below(CALLS);
    uint64_t hits = 0, misses = 0;
    pthread_t sender;

    handle_with(nothing);
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&sender, NULL, send_signals, &storm))
        abort();
    for (unsigned i = 0; i < executions || taken < storm.count; i++)
        if (i < executions)
            function(i % PROBES, i);
    pthread_join(sender, NULL);
    for (unsigned i = 0; i < PROBES; i++) {
        hits += probes[i].hits;
        misses += probes[i].misses;
    }
    lab_fact("%lu hits and misses", hits + misses);
    lab_fact("misses: %s", misses > storm.count ? "too many" : "possible");
    hits = probes[0].hits;
    function(0, 0);
    lab_fact("afterwards: %lu more", probes[0].hits - hits);
}

static pthread_barrier_t ready;

static void *runner(void *arg)
{
    unsigned first = *(unsigned *)arg;

    pthread_barrier_wait(&ready);
    for (unsigned i = 0; i < CALLS; i++)
        function((first + i) % 2, i);
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    unsigned first[THREADS];

    handle_with(yield_sometimes);
    pthread_barrier_init(&ready, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        first[i] = lab_below(100);
        if (pthread_create(&ids[i], NULL, runner, &first[i]))
            abort();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    handle_with(note_only);
    calls(1 + lab_below(100));
    counts_fact();
}

const struct lab_line lab_lines[] = {
    { "once", once },       { "recursion", recursion }, { "nested", nested },
    { "signals", signals }, { "threads", threads },     { 0 },
};
