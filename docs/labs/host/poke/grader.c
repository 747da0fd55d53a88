/* grader.c - grades lab 7: carries out the plans of poke.c on a function that
 * four threads call.
 *
 * A signal stands for the interrupt of POKE_SYNC: the thread that changes text sends it
 * to the other threads, and its handler executes cpuid and counts an answer. SIGTRAP
 * stands for the trap; while its handler runs, the other signal is blocked.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"

#include "poke.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#define THREADS 4
#define LINE 64
#define INSN_MAX 10
#define COPY_SIZE 32
#define CHANGES 60
#define SLOW_CHANGES 4 /* the first ones are a store at a time */
#define RET 0xc3
#define INT3 0xcc
#define JMP 0xe9
#define JMP_LEN 5

/* The values of rax and rdx after a call. They show which instructions were executed. */
struct seen {
    uint64_t ax, dx;
};

/* A version of the text: one or two instructions. second: the offset of the second one */
struct version {
    uint8_t bytes[INSN_MAX];
    unsigned insns, second;
    const uint8_t *copy; /* of the first instruction; it goes on where that one would */
    struct seen result;
};

static uint8_t *text;
static unsigned len;
static struct version versions[2];
static bool is_slow;

static const struct poke_plan *volatile plan; /* that is being carried out; NULL: none */
static struct version *from, *to;
static pthread_t threads[THREADS];
static volatile uint64_t steps[THREADS]; /* calls and traps of a thread */
static volatile bool is_over;
static _Atomic uint64_t torn;
static _Atomic unsigned answers, inside;
static __thread unsigned self;

static void serialise(void)
{
    uint32_t leaf = 0, b, c, d;

    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(b), "=c"(c), "=d"(d)::"memory");
}

/* ---- the threads that execute ---- */

static void call_once(void)
{
    struct seen seen;

    __asm__ volatile("xor %%eax, %%eax\n\t"
                     "xor %%edx, %%edx\n\t"
                     "call *%2"
                     : "=&a"(seen.ax), "=&d"(seen.dx)
                     : "r"(text)
                     : "memory", "cc");
    if (memcmp(&seen, &versions[0].result, sizeof(seen)) &&
        memcmp(&seen, &versions[1].result, sizeof(seen)))
        torn++;
}

static void *execute(void *arg)
{
    self = (unsigned)(uintptr_t)arg;
    while (!is_over) {
        call_once();
        steps[self]++;
        if (steps[self] % 64 == 0)
            sched_yield();
    }
    return NULL;
}

/* The handler looks at the plan once, at its beginning. If no plan is being carried out
 * then, the thread retries.
 */
static void on_trap(int sig, siginfo_t *info, void *arg)
{
    greg_t *regs = ((ucontext_t *)arg)->uc_mcontext.gregs;
    const struct poke_plan *p = plan;

    (void)sig;
    (void)info;
    if ((uint8_t *)regs[REG_RIP] != text + 1) {
        torn++; /* an int3 at a wrong place; the thread goes on behind it */
        return;
    }
    steps[self]++;
    regs[REG_RIP]--;
    if (!p)
        return;
    if (p->on_trap == POKE_OLD)
        regs[REG_RIP] = (greg_t)from->copy;
    if (p->on_trap == POKE_NEW)
        regs[REG_RIP] = (greg_t)to->copy;
    if (p->on_trap == POKE_RETRY)
        sched_yield();
    while (p->on_trap == POKE_WAIT && plan == p)
        sched_yield();
}

static void on_sync(int sig, siginfo_t *info, void *arg)
{
    uint8_t *at = (uint8_t *)((ucontext_t *)arg)->uc_mcontext.gregs[REG_RIP];

    (void)sig;
    (void)info;
    if (at > text && at < text + len)
        inside++;
    serialise();
    answers++;
}

/* ---- the thread that changes ---- */

static void sync_threads(void)
{
    answers = inside = 0;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_kill(threads[i], SIGUSR1);
    while (answers < THREADS)
        sched_yield();
    serialise();
}

/* Wait until each thread has executed the text as it is now. */
static void let_them_run(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        uint64_t before = steps[i];

        while (steps[i] < before + 2)
            sched_yield();
    }
}

static void store(unsigned i, uint8_t byte)
{
    *(volatile uint8_t *)(text + i) = byte;
    if (is_slow)
        let_them_run();
}

static void store_new(unsigned first)
{
    for (unsigned i = first; i < len; i++)
        store(i, to->bytes[i]);
}

static void step(enum poke_step what)
{
    if (what == POKE_GUARD)
        store(0, INT3);
    else if (what == POKE_TAIL)
        store_new(1);
    else if (what == POKE_FIRST)
        store(0, to->bytes[0]);
    else if (what == POKE_ALL)
        store_new(0);
    else if (what == POKE_SYNC)
        sync_threads();
    else if (what == POKE_DRAIN)
        do
            sync_threads();
        while (inside);
}

static void change(const struct poke_plan *p, unsigned i)
{
    from = &versions[i];
    to = &versions[!i];
    plan = p;
    for (unsigned k = 0; k < POKE_STEPS_MAX && p->steps[k] != POKE_DONE; k++)
        step(p->steps[k]);
    plan = NULL;
    if (memcmp(text, to->bytes, len))
        lab_fact("behind a plan the text is not the new one");
    let_them_run();
}

static void run_plans(const struct poke_plan *there, const struct poke_plan *back,
                      unsigned changes)
{
    struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
    struct sigaction sync = { .sa_sigaction = on_sync, .sa_flags = SA_SIGINFO };

    sigaddset(&trap.sa_mask, SIGUSR1);
    sigaction(SIGTRAP, &trap, NULL);
    sigaction(SIGUSR1, &sync, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, execute, (void *)i))
            __builtin_trap();
    for (unsigned i = 0; i < changes; i++) {
        is_slow = i < SLOW_CHANGES;
        change(i % 2 ? back : there, i % 2);
    }
    is_over = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    lab_fact("executed neither old nor new: %lu times", torn);
    lab_fact("the text is %s", memcmp(text, versions[0].bytes, len) ? "new" : "old");
}

/* ---- the text ---- */

/* Make a mov to rax or rdx, of 5, 7 or 10 bytes. All bytes of its immediate are @byte. */
static void one_insn(struct version *v, unsigned length, bool is_dx, uint8_t byte)
{
    unsigned at = 0;

    if (length > 5)
        v->bytes[at++] = 0x48;
    v->bytes[at++] = (uint8_t)(length == 7 ? 0xc7 : 0xb8 + 2 * is_dx);
    if (length == 7)
        v->bytes[at++] = (uint8_t)(0xc0 + 2 * is_dx);
    memset(v->bytes + at, byte, length - at);
    v->insns = 1;
}

/* Put a version into the text, call it to find its result, and make its copy. */
static void finish(struct version *v)
{
    uint8_t *copy = lab_text_new(2 * COPY_SIZE);
    unsigned first = v->insns == 2 ? v->second : len;
    int32_t disp = (int32_t)(text + first - (copy + first + JMP_LEN));

    memcpy(text, v->bytes, len);
    text[len] = RET;
    __asm__ volatile("xor %%eax, %%eax\n\t"
                     "xor %%edx, %%edx\n\t"
                     "call *%2"
                     : "=&a"(v->result.ax), "=&d"(v->result.dx)
                     : "r"(text)
                     : "memory", "cc");
    memcpy(copy, v->bytes, first);
    if (v->bytes[0] == JMP) { /* the copy must lead to the same target */
        memcpy(&disp, v->bytes + 1, sizeof(disp));
        disp += (int32_t)(text - copy);
        memcpy(copy + 1, &disp, sizeof(disp));
    } else {
        copy[first] = JMP;
        memcpy(copy + first + 1, &disp, sizeof(disp));
    }
    v->copy = copy;
}

static void make_one(void)
{
    static const unsigned lengths[] = { 5, 7, 10 };
    uint8_t byte = (uint8_t)(1 + lab_below(60));

    len = lengths[lab_case % 3];
    text = lab_text_new(4096) + 2 * LINE - lab_below(len + 1);
    one_insn(&versions[0], len, false, byte);
    one_insn(&versions[1], len, true, (uint8_t)(byte + 64));
    finish(&versions[1]);
    finish(&versions[0]);
}

/* The old version is mov $x,%al; add $y,%edx. The new one is a jump to mov $z,%eax; ret.
 */
static void make_two(void)
{
    uint8_t x = (uint8_t)(1 + lab_below(100)), y = (uint8_t)(1 + lab_below(100));
    const uint8_t both[] = { 0xb0, x, 0x83, 0xc2, y }, out[] = { 0xb8, x, y, 1, 2, RET };
    uint8_t *there = lab_text_new(4096);
    int32_t disp;

    len = JMP_LEN;
    text = lab_text_new(4096) + 2 * LINE - lab_below(len + 1);
    memcpy(versions[0].bytes, both, sizeof(both));
    versions[0].insns = 2;
    versions[0].second = 2;
    memcpy(there, out, sizeof(out));
    disp = (int32_t)(there - (text + JMP_LEN));
    versions[1].bytes[0] = JMP;
    memcpy(versions[1].bytes + 1, &disp, sizeof(disp));
    versions[1].insns = 1;
    finish(&versions[1]);
    finish(&versions[0]);
}

static void slow(void)
{
    make_one();
    run_plans(&poke_one, &poke_one, SLOW_CHANGES);
}

/* It begins slowly: at full speed alone a host with few processors may never show what is
 * between two stores.
 */
static void fast(void)
{
    if (lab_case % 2) {
        make_two();
        run_plans(&poke_two, &poke_back, CHANGES);
    } else {
        make_one();
        run_plans(&poke_one, &poke_one, CHANGES);
    }
}

/* State the plans as facts. grader.py makes a model of them. */
static void table(void)
{
    static const struct poke_plan *const plans[] = { &poke_one, &poke_two, &poke_back };

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < POKE_STEPS_MAX && plans[i]->steps[k] != POKE_DONE; k++)
            lab_fact("%u step %u", i, (unsigned)plans[i]->steps[k]);
        for (unsigned k = 0; k < POKE_STEPS_MAX && plans[i]->steps[k] != POKE_DONE; k++)
            lab_fact("%u why %u", i, (unsigned)plans[i]->why[k]);
        lab_fact("%u trap %u", i, (unsigned)plans[i]->on_trap);
    }
}

const struct lab_line lab_lines[] = {
    { "slow", slow },
    { "fast", fast },
    { "table", table },
    { 0 },
};
