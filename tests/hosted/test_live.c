/* test_live.c - tests of probes in a process: their handlers, the engine's own code, probes
 * that are registered and unregistered while threads run, and a storm of NMIs.
 */
#define _GNU_SOURCE
#include "probes/core/life.h"
#include "probes/insn/insn.h"
#include "probes/jump/optimize.h"
#include "tests/hosted/fixture.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/probe_all.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static NOINLINE long target(long a, long b)
{
    __asm__ volatile("" : "+r"(a));
    return a * 3 + b;
}

static NOINLINE long helper(long a)
{
    __asm__ volatile("" : "+r"(a));
    return a + 1;
}

static volatile unsigned ran;

static void start(struct kprobe *p, uintptr_t addr)
{
    posix_init();
    ran = 0;
    p->addr = addr;
    CHECK_EQ(register_kprobe(p), 0);
}

static void end(struct kprobe *p)
{
    CHECK_EQ(unregister_kprobe(p), 0);
}

/* Some of these are run under gdb, by tests/hosted/test_gdb.py. */

static int see_arguments(struct kprobe *p, struct pt_regs *regs)
{
    ran++;
    CHECK_EQ(regs->ip, p->addr + 1);
    CHECK_EQ(regs->di, 5);
    CHECK_EQ(regs->si, 7);
    return 0;
}

UNIT_TEST(a_handler_sees_the_arguments)
{
    struct kprobe p = { .pre_handler = see_arguments };

    start(&p, (uintptr_t)target);
    CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(ran, 1);
    end(&p);
    CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(ran, 1);
}

static int call_helper(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    ran++;
    CHECK_EQ(helper(1), 2);
    return 0;
}

UNIT_TEST(probed_code_may_be_called_from_a_handler)
{
    struct kprobe p = { .pre_handler = call_helper };
    struct kprobe inner = { .pre_handler = call_helper }; /* calls the probed function */

    start(&p, (uintptr_t)target);
    start(&inner, (uintptr_t)helper);
    target(5, 7);
    CHECK_EQ(ran, 2);
    CHECK_EQ(inner.hits, 1);
    CHECK_EQ(inner.missed[MISS_RECURSION], 1);
    end(&inner);
    end(&p);
}

static void jump_to(struct kprobe *p)
{
    optimize_set_method(OPTIMIZE_PUN);
    optimize_run();
    CHECK(p->flags & KPROBE_FLAG_OPTIMIZED);
}

/* C counts a hit in the probe itself, and a detour that calls the handler does not. With a
 * sanitizer, C calls this handler in any case. To the compiler, target() changes no probe.
 */
UNIT_TEST(a_flag_that_a_detour_does_not_know_is_left_to_c)
{
    struct kprobe p = { .pre_handler = see_arguments };
    const volatile uint64_t *hits = &p.hits;
    uint64_t before;

    start(&p, (uintptr_t)target);
    jump_to(&p);
    target(5, 7);
    before = *hits;
    *(volatile uint32_t *)&p.flags |= 1u << 31;
    target(5, 7);
    CHECK_EQ(*hits, before + 1);
    CHECK_EQ(ran, 2);
    optimize_set_method(OPTIMIZE_OFF);
    end(&p);
}

static int read_nothing(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    const volatile char *nowhere = (const char *)8;

    ran++;
    __asm__ volatile("" : "+r"(nowhere)); /* hides the value from the compiler */
    return *nowhere;
}

UNIT_TEST(a_handler_that_faults_is_switched_off_and_the_program_goes_on)
{
    struct kprobe p = { .pre_handler = read_nothing };

    start(&p, (uintptr_t)target);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(ran, 1);
    CHECK_EQ(p.flags, KPROBE_FLAG_DISABLED | KPROBE_FLAG_TRIPPED);
    CHECK_EQ(enable_kprobe(&p), 0);
    CHECK_EQ(target(5, 7), 22);
    CHECK_EQ(ran, 2);
    end(&p);
}

/* ---- the engine's own code ---- */

static bool is_decoder(const char *name)
{
    return !strncmp(name, "insn_", 5) || !strncmp(name, "opcode_", 7);
}

extern const char engine_text_start[], engine_text_end[];

static void ignore_refusal(struct kprobe *p UNUSED, const struct probe_reject *why UNUSED,
                           void *arg UNUSED)
{
}

#define DECODER_MAX 20000

/* decoder_probes - make a probe for each instruction of the decoder.
 * @probes, @ps: have room for DECODER_MAX   Return: the number of probes.
 */
static size_t decoder_probes(struct kprobe *probes, struct kprobe **ps)
{
    struct plat_symbol sym;
    struct insn insn;
    size_t n = 0;

    for (uintptr_t a = (uintptr_t)engine_text_start; a < (uintptr_t)engine_text_end;) {
        if (plat_symbol_at(a, &sym)) {
            a++;
            continue;
        }
        for (; is_decoder(sym.name) && a < sym.start + sym.size; a += insn.len) {
            CHECK_EQ(insn_decode(&insn, (const uint8_t *)a, 15, a), 0);
            probes[n].addr = a;
            ps[n] = &probes[n];
            n++;
        }
        a = sym.start + sym.size;
    }
    return n;
}

static uint64_t decode_all(void)
{
    static uintptr_t addrs[FIXTURES_TEXT_MAX];
    size_t n = fixture_boundaries(addrs);
    uint64_t sum = n;

    for (size_t i = 0; i < n; i++) {
        struct insn insn;
        uint8_t bytes[15];

        for (size_t j = 0; j < 15; j++)
            bytes[j] = fixture_original(addrs[i] + j);
        CHECK_EQ(insn_decode(&insn, bytes, 15, addrs[i]), 0);
        sum = sum * 31 + insn.len + insn.kind * 17;
    }
    return sum;
}

UNIT_TEST(the_decoder_works_with_probes_on_all_of_it)
{
    static struct kprobe probes[DECODER_MAX], *ps[DECODER_MAX];
    struct kprobe p = { .pre_handler = see_arguments };
    struct fixture f;
    uint64_t hits = 0, before;
    long in;

    posix_init();
    fixture_get(0, &f); /* this saves the original bytes of the fixtures */
    before = decode_all();
    in = register_kprobes_some(ps, decoder_probes(probes, ps), ignore_refusal, NULL);
    CHECK(in > 1000);
    CHECK(decode_all() == before);
    start(&p, (uintptr_t)target); /* the registration runs the probed decoder, too */
    CHECK_EQ(target(5, 7), 22);
    end(&p);
    for (long i = 0; i < in; i++)
        hits += ps[i]->hits;
    unit_note("%ld probes in the decoder, %lu hits", in, hits);
    CHECK(hits > 10000);
    CHECK_EQ(unregister_kprobes(ps, (size_t)in), 0);
}

/* ---- coming and going under running threads ---- */

#define RUNNERS 3

static _Atomic bool stop;
static _Atomic unsigned long calls, wrong;

static void *call_target(void *arg)
{
    posix_thread_enter();
    for (long i = (long)arg; !stop; i++) {
        wrong += target(i, 7) != i * 3 + 7;
        calls++;
    }
    posix_thread_leave();
    return NULL;
}

struct tracked {
    struct kprobe kp;
    _Atomic unsigned long pre, post;
    uint64_t alive; /* ALIVE; a handler that sees another value uses freed memory */
};

#define ALIVE UINT64_C(0xa11fea11fea11fe)

static int tracked_pre(struct kprobe *kp, struct pt_regs *regs UNUSED)
{
    struct tracked *t = (struct tracked *)kp;

    wrong += t->alive != ALIVE;
    t->pre++;
    return 0;
}

static void tracked_post(struct kprobe *kp, struct pt_regs *regs UNUSED,
                         unsigned long flags UNUSED)
{
    struct tracked *t = (struct tracked *)kp;

    wrong += t->alive != ALIVE;
    t->post++;
}

/* come_and_go - register a probe, unregister it, and overwrite and free its memory at
 * once.
 * Return: its hits.
 */
static unsigned long come_and_go(unsigned round)
{
    struct tracked *t = calloc(1, sizeof(*t));
    unsigned long before = calls, hits;

    t->alive = ALIVE;
    t->kp.pre_handler = tracked_pre;
    if (round % 2)
        t->kp.post_handler = tracked_post;
    t->kp.addr = (uintptr_t)target;
    step_set_engine(round % 4 == 3 ? STEP_TF : STEP_INT3);
    CHECK_EQ(register_kprobe(&t->kp), 0);
    while (calls < before + 20)
        sched_yield();
    CHECK_EQ(unregister_kprobe(&t->kp), 0);
    CHECK_EQ(t->kp.hits, t->pre);
    if (round % 2) /* each thread may have been between the two handlers at the end */
        CHECK(t->post <= t->pre && t->pre <= t->post + RUNNERS);
    hits = t->pre;
    memset(t, 0x5a, sizeof(*t));
    free(t);
    return hits;
}

UNIT_TEST(probes_come_and_go_under_running_threads)
{
    unsigned long rounds = posix_rounds(120, 5000);
    pthread_t threads[RUNNERS];
    unsigned long hits = 0;

    posix_init();
    stop = false;
    wrong = calls = 0;
    for (long i = 0; i < RUNNERS; i++)
        pthread_create(&threads[i], NULL, call_target, (void *)(i * 1000));
    for (unsigned long round = 0; round < rounds; round++)
        hits += come_and_go((unsigned)round);
    stop = true;
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    step_set_engine(STEP_INT3);
    CHECK_EQ(wrong, 0);
    CHECK(hits > rounds);
}

/* ---- NMIs ---- */

/* An NMI may interrupt the thread sanitizer, and that cannot be entered a second time. */
#ifdef __SANITIZE_THREAD__
#define NMI_USABLE false
#else
#define NMI_USABLE true
#endif

static volatile unsigned long nmi_calls;

static void in_nmi(void)
{
    nmi_calls++;
    wrong += helper((long)nmi_calls) != (long)nmi_calls + 1;
}

static timer_t storm_begin(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
    struct itimerspec period = { { 0, 100000 }, { 0, 100000 } };
    timer_t timer;

    event._sigev_un._tid = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
        timer_settime(timer, 0, &period, NULL))
        abort();
    return timer;
}

static struct bench bench;
static uint32_t counts[FIXTURES_TEXT_MAX];

/* storm_round - run all fixtures once. Return: how many did not compute the same. */
static unsigned storm_round(const struct outcome *results, enum way_asked way)
{
    unsigned differences = 0;
    struct fixture f;

    for (size_t i = 0; fixture_get(i, &f); i++)
        differences +=
            outcomes_differ(bench_run(&bench, &f, i), results[i], !by_jumps(way));
    return differences;
}

static void storm_learn(struct outcome *results)
{
    struct fixture f;

    if (!bench.mem)
        bench_init(&bench);
    memset(counts, 0, sizeof(counts));
    for (size_t i = 0; fixture_get(i, &f); i++) {
        results[i] = bench_run(&bench, &f, i);
        fixture_trace(&bench, &f, i, counts);
    }
}

/* storm - run the fixtures while NMIs come at any moment, also inside the engine and
 * inside copies. The handler of the NMIs hits a probe.
 */
static void storm(enum way_asked way)
{
    unsigned long wanted = posix_rounds(200, 15000);
    struct kprobe p = { 0 };
    static struct outcome results[256];
    unsigned differences = 0;
    uint32_t rounds = 0;
    timer_t timer;

    if (!NMI_USABLE) {
        unit_skip("an NMI may interrupt the thread sanitizer");
        return;
    }
    posix_init();
    counters_init();
    storm_learn(results);
    start(&p, (uintptr_t)helper);
    probe_all(way);
    wrong = nmi_calls = 0;
    posix_nmi_hook = in_nmi;
    timer = storm_begin();
    for (; nmi_calls < wanted; rounds++)
        differences += storm_round(results, way);
    timer_delete(timer);
    posix_nmi_hook = NULL;
    check_counts(counts, rounds, way);
    unprobe_all();
    CHECK_EQ(differences, 0);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(kprobe_hits(&p) + p.nmissed, nmi_calls);
    unit_note("%lu NMIs in %u rounds", nmi_calls, rounds);
    end(&p);
}

UNIT_TEST(a_storm_of_nmis_over_boosted_and_emulated_code)
{
    storm(ASK_BOOST);
}

UNIT_TEST(a_storm_of_nmis_over_stepped_code)
{
    storm(ASK_STEP_INT3);
    storm(ASK_STEP_TF);
}

UNIT_TEST(a_storm_of_nmis_over_jumps)
{
    storm(ASK_JUMP_COUNT);
    storm(ASK_JUMP_CALL);
    storm(ASK_JUMP_POST);
    optimize_set_method(OPTIMIZE_OFF);
}

UNIT_TESTS()
