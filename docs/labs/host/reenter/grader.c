/* grader.c - grades lab 6: calls functions with probes. The handlers of these probes call
 * functions with probes, too.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "reenter.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

#define PROBES 8
#define APART 4096 /* a short hash of the address is the same for all probes */
#define THREADS 40
#define CALLS 5000
#define DEPTH_MAX 10000 /* nested handlers; more would overflow the stack */

static struct probe probes[PROBES][APART]; /* the first of each row is used */
static uint64_t seen;
static unsigned depth;
static _Atomic unsigned taken;

static unsigned index_of(const struct probe *p)
{
    return (unsigned)(p - probes[0]) / APART;
}

static void function(unsigned i, uint64_t x)
{
    hit(probes[i], x);
}

static void handle_with(void (*handler)(struct probe *, uint64_t))
{
    for (unsigned i = 0; i < PROBES; i++)
        probes[i]->handler = handler;
}

static void counts_fact(void)
{
    for (unsigned i = 0; i < PROBES; i++)
        lab_fact("probe %u: %lu hits, %lu misses", i, probes[i]->hits, probes[i]->misses);
    lab_fact("the handlers saw %#lx", seen);
}

static void note(struct probe *p, uint64_t x)
{
    uint64_t what[] = { index_of(p), x };

    seen = lab_digest(seen, what, sizeof(what));
    if (++depth > DEPTH_MAX) {
        lab_fact("handlers run inside of each other, %u deep, and there is no end",
                 depth);
        exit(0);
    }
}

static void note_only(struct probe *p, uint64_t x)
{
    note(p, x);
    depth--;
}

static void call_itself(struct probe *p, uint64_t x)
{
    note(p, x);
    function(index_of(p), x + 1);
    depth--;
}

static void call_others(struct probe *p, uint64_t x)
{
    unsigned i = index_of(p);

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

/* More probes than a table of probes has room for. */
static void many_fact(void)
{
    uint64_t hits = 0;

    for (unsigned i = 0; i < PROBES * APART; i++) {
        struct probe *p = &probes[i / APART][i % APART];

        p->handler = nothing;
        hit(p, i);
        hits += p->hits;
    }
    lab_fact("behind a hit of each of %u probes: %lu hits", PROBES * APART, hits);
}

static void once(void)
{
    handle_with(note_only);
    calls(1 + lab_below(100));
    counts_fact();
    many_fact();
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

/* ---- a hit at each instruction of a hit
 *
 * A hit of probe 0 is stepped by TF. At one instruction, `at`, the handler of SIGTRAP hits
 * a probe, as a signal does that comes there; then the same for the next instruction.
 */

#define STEPS_MAX 20000
#define OUTER 1          /* the argument of the hit that is stepped */
#define WITHIN 100       /* and of those around it, from here on */
#define WALK_STEPS 40000 /* of all walks of a kind, about */

static struct {
    unsigned injected, at, step;
    unsigned levels; /* hits around the one that is stepped */
    uint64_t executions[PROBES], counted, rip;
    unsigned active[PROBES]; /* handlers that are running */
    unsigned uncounted, twice, missed, left, plain;
} walk;

static void execute(unsigned i, uint64_t x)
{
    walk.executions[i]++;
    function(i, x);
}

static void walk_within(unsigned level);

static void walk_handler(struct probe *p, uint64_t x)
{
    unsigned i = index_of(p);

    walk.twice += ++walk.active[i] > 1;
    if (x == OUTER) {
        execute(0, OUTER + 1); /* a recursion: it must be a miss */
        execute(2, OUTER + 1);
    }
    if (x >= WITHIN)
        walk_within((unsigned)x - WITHIN + 1);
    walk.active[i]--;
}

/* Each count is changed by one instruction with a LOCK prefix. */
static void see_counts(uint64_t rip)
{
    const uint8_t *code = (const uint8_t *)walk.rip;
    uint64_t sum = 0;

    for (unsigned i = 0; i < PROBES; i++)
        sum += probes[i]->hits + probes[i]->misses;
    if (code && sum != walk.counted && *code != 0xf0)
        walk.plain++;
    walk.counted = sum;
    walk.rip = rip;
}

static void on_step(int sig, siginfo_t *info, void *arg)
{
    const greg_t *regs = ((ucontext_t *)arg)->uc_mcontext.gregs;

    (void)sig;
    (void)info;
    see_counts((uint64_t)regs[REG_RIP]);
    if (walk.step++ == walk.at) {
        uint64_t hits = probes[1]->hits;

        execute(walk.injected, OUTER + 2);
        walk.missed += walk.injected == 1 && walk.levels < REENTER_MAX &&
                       probes[1]->hits != hits + 1;
        walk.rip = 0;
        see_counts((uint64_t)regs[REG_RIP]);
    }
    if (walk.step > STEPS_MAX)
        exit(0);
}

/* Step a hit inside of walk.levels others, of the probes from 3 on: of probe 0; inside of
 * three others, a recursion.
 */
static void walk_within(unsigned level)
{
    if (level < walk.levels) {
        execute(3 + level, WITHIN + level);
        return;
    }
    __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "cc", "memory");
    execute(walk.levels == REENTER_MAX - 1 ? 3 : 0, OUTER);
    __asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "cc", "memory");
}

/* Step a hit, with another hit at instruction @at. Return whether the hit has so many
 * instructions.
 */
static bool walk_once(unsigned at)
{
    uint64_t hits;

    walk.at = at;
    walk.step = 0;
    walk.rip = 0;
    walk_within(0);
    hits = probes[1]->hits;
    execute(1, 0);
    walk.left += probes[1]->hits != hits + 1;
    for (unsigned i = 0; i < PROBES; i++)
        walk.uncounted += probes[i]->hits + probes[i]->misses != walk.executions[i];
    return walk.step > at;
}

/* A hit of many instructions is walked in strides, since each walk steps all of them. */
static void walk_all(unsigned injected, unsigned levels)
{
    struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
    unsigned stride = 1;

    sigaction(SIGTRAP, &action, NULL);
    handle_with(walk_handler);
    walk.injected = injected;
    walk.levels = levels;
    for (unsigned i = 0; i < PROBES; i++)
        walk.executions[i] = probes[i]->hits + probes[i]->misses;
    for (unsigned at = 0; walk_once(at); at += stride)
        stride = 1 + walk.step * walk.step / WALK_STEPS;
}

/* Three cases by steps, then storms of signals. */
static void walk_facts(void)
{
    walk_all(lab_case, 0);
    walk_all(lab_case, REENTER_MAX - 1);
    walk_all(lab_case, REENTER_MAX);
    lab_fact("a signal at each instruction of hit() hits probe %u", walk.injected);
    lab_fact("times that an execution was no hit and no miss, or both: %u",
             walk.uncounted);
    lab_fact("times that a handler was called while its probe was active: %u",
             walk.twice);
    lab_fact("times that a probe that was not active was missed: %u", walk.missed);
    lab_fact("times that a probe was missed afterwards: %u", walk.left);
}

static void atomic_fact(void)
{
    walk_all(1, 0);
    walk_all(0, 0);
    walk_all(0, REENTER_MAX);
    lab_fact("the instructions that change p->hits and p->misses do it in one step: %s",
             walk.plain ? "no" : "yes");
    lab_fact("times that a count was lost since another one came in between: %u",
             walk.uncounted);
}

static void storm_of_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct storm storm = { pthread_self(), 50 + lab_below(50) };
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
        hits += probes[i]->hits;
        misses += probes[i]->misses;
    }
    lab_fact("%lu hits and misses", hits + misses);
    lab_fact("misses: %s", misses > storm.count ? "too many" : "possible");
    hits = probes[0]->hits;
    function(0, 0);
    lab_fact("afterwards: %lu more", probes[0]->hits - hits);
}

static void signals(void)
{
    if (lab_case < 3)
        walk_facts();
    else
        storm_of_signals();
}

static pthread_barrier_t ready;

static void *runner(void *arg)
{
    unsigned first = *(unsigned *)arg;

    pthread_barrier_wait(&ready);
    for (unsigned i = 0; i < CALLS / 10; i++)
        function((first + i) % 2, i);
    return NULL;
}

static void *hit_another(void *arg)
{
    (void)arg;
    function(1, 0);
    return NULL;
}

/* While the probe is active, another thread hits another one. Then the probe is hit again,
 * which is a recursion still.
 */
static void meet(struct probe *p, uint64_t x)
{
    pthread_t other;

    if (p != probes[0] || x)
        return;
    if (pthread_create(&other, NULL, hit_another, NULL))
        abort();
    pthread_join(other, NULL);
    function(0, 1);
}

static void meet_facts(void)
{
    handle_with(meet);
    function(0, 0);
    lab_fact("a probe is active, and another thread has hit another probe meanwhile");
    for (unsigned i = 0; i < 2; i++)
        lab_fact("probe %u: %lu hits, %lu misses", i, probes[i]->hits, probes[i]->misses);
}

/* Case 0 sees the instructions, since a lost count needs luck; so it does not matter how
 * many CPUs there are. The others let threads hit the same probes.
 */
static void threads(void)
{
    pthread_t ids[THREADS];
    unsigned first[THREADS];

    if (!lab_case) {
        meet_facts();
        atomic_fact();
        return;
    }
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
