/* test_program.c - programs of hits lose nothing, whatever comes between two instructions of
 * their code. Each call of the probed function is counted beside it: that is the truth.
 */
#include "probes/core/platform.h"
#include "probes/jump/optimize.h"
#include "tests/kernel/jumps.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/passers.h"
#include "tests/kernel/return_targets.h"

#define TABLE_BITS 5
#define LOW 7 /* of the argument: the key of the table */

/* Words. */
enum { CALLS, SUM, LEAST, MOST, NTH, EVERY_THIRD, BY, LOG2 = BY + 34, WORDS = LOG2 + 65 };

static uint64_t table[1 << TABLE_BITS] ALIGNED(128);

static struct {
    uint64_t calls, sum, least, most, by[LOW + 1], called;
} truth;

static uint64_t called(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    return __atomic_add_fetch(&truth.called, 1, __ATOMIC_RELAXED);
}

#define WORK                                                                             \
    KPROBE_COUNT(CALLS), KPROBE_SUM(SUM, KPROBE_REG_DI, 0), KPROBE_GET(KPROBE_REG_DI),   \
        KPROBE_MIN(LEAST, KPROBE_VALUE, 0), KPROBE_MAX(MOST, KPROBE_VALUE, 0),           \
        KPROBE_KEY_LOG2(KPROBE_VALUE), KPROBE_COUNT_KEYED(LOG2),                         \
        KPROBE_AND(KPROBE_IMM, LOW), KPROBE_BY(table, TABLE_BITS),                       \
        KPROBE_COUNT_KEYED(BY), KPROBE_EVERY(NTH, 3, 1), KPROBE_COUNT(EVERY_THIRD)

static const struct kprobe_op words_only[] = { WORK };
static const struct kprobe_op with_call[] = { WORK, KPROBE_CALL(called) };

static NOINLINE uint64_t target(uint64_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 9 + 2;
}

static uint64_t call(uint64_t n)
{
    uint64_t least = READ_ONCE(truth.least), most = READ_ONCE(truth.most);

    while (n < least && !__atomic_compare_exchange_n(&truth.least, &least, n, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    while (n > most && !__atomic_compare_exchange_n(&truth.most, &most, n, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    __atomic_add_fetch(&truth.calls, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&truth.sum, n, __ATOMIC_RELAXED);
    __atomic_add_fetch(&truth.by[n & LOW], 1, __ATOMIC_RELAXED);
    return target(n);
}

/* ---- what the program has counted ---- */

static uint64_t counted_by(const struct kprobe_program *program, uint64_t key)
{
    uint64_t at = 1 << TABLE_BITS; /* of 0 */

    for (unsigned i = 0; key && i < 1 << TABLE_BITS; i++)
        if (table[i] == key)
            at = i;
    return program_sum(program, BY + at);
}

static bool keys_are_true(const struct kprobe_program *program)
{
    uint64_t wrong = 0;

    for (uint64_t key = 0; key <= LOW; key++)
        wrong += counted_by(program, key) != truth.by[key];
    return !wrong;
}

static uint64_t all_of_log2(const struct kprobe_program *program)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i <= 64; i++)
        sum += program_sum(program, LOG2 + i);
    return sum;
}

/* report_all - each call is a hit. */
static void report_all(const struct kprobe_program *program, const struct kprobe *p)
{
    uint64_t least = UINT64_MAX, most = 0, third = program_sum(program, EVERY_THIRD);

    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        uint64_t low = program_word_of(program, cpu, LEAST);
        uint64_t high = program_word_of(program, cpu, MOST);

        least = low < least ? low : least;
        most = high > most ? high : most;
    }
    ktest_report(kprobe_hits(p) == truth.calls && !p->nmissed,
                 "each of %lu calls is a hit", truth.calls);
    ktest_report(program_sum(program, SUM) == truth.sum && least == truth.least &&
                     most == truth.most,
                 "the sum, the least and the greatest argument are true");
    ktest_report(keys_are_true(program), "so is each key");
    ktest_report(third <= truth.calls / 3 + cpu_count() &&
                     third + cpu_count() >= truth.calls / 3,
                 "one of three goes on");
}

/* report_called - a hit inside of one that calls is missed, and counted so. */
static void report_called(const struct kprobe *p)
{
    ktest_report(kprobe_hits(p) + p->nmissed == truth.calls,
                 "each of %lu calls is a hit, or one of %lu misses", truth.calls,
                 p->nmissed);
    ktest_report(truth.called == kprobe_hits(p), "each hit has called");
}

static void probed(bool calls, void (*run)(void))
{
    struct kprobe_program program = { .ops = calls ? with_call : words_only,
                                      .count = calls ? ARRAY_LEN(with_call)
                                                     : ARRAY_LEN(words_only),
                                      .words = WORDS };
    struct kprobe p = { .addr = (uintptr_t)target, .program = &program };

    memset(&truth, 0, sizeof(truth));
    memset(table, 0, sizeof(table));
    truth.least = UINT64_MAX;
    jumps_by(OPTIMIZE_PUN);
    register_kprobe(&p);
    optimize_run();
    ktest_report(p.flags & KPROBE_FLAG_OPTIMIZED, "a jump");
    run();
    ktest_report(program_sum(&program, CALLS) == kprobe_hits(&p) &&
                     all_of_log2(&program) == kprobe_hits(&p),
                 "each hit is counted once, and under one key");
    if (calls)
        report_called(&p);
    else
        report_all(&program, &p);
    unregister_kprobe(&p);
}

/* ---- an NMI between any two instructions ---- */

static volatile bool stepping;
static volatile unsigned steps, in_code, nmis;

static bool nmi(struct pt_regs *regs UNUSED)
{
    if (!stepping)
        return false;
    nmis++;
    call(nmis);
    return true;
}

static void step(struct pt_regs *regs)
{
    unsigned before = nmis;

    steps++;
    in_code += plat_exec_contains(regs->ip);
    smp_send_nmi(cpu_id());
    while (nmis == before)
        barrier();
}

static void run_stepped(void)
{
    nmi_take(nmi);
    steps = in_code = nmis = 0;
    own_steps_watch(step);
    stepping = true;
    for (uint64_t n = 1; n <= 20; n++)
        return_stepped(call, n * 1001);
    stepping = false;
    own_steps_unwatch();
    ktest_report(nmis == steps && in_code > 20 * 2 * ARRAY_LEN(words_only),
                 "%u steps, %u of them in the code, an NMI at each", steps, in_code);
}

KTEST(program, an_nmi_between_any_two_instructions)
{
    probed(false, run_stepped);
    probed(true, run_stepped);
}

/* ---- all CPUs ---- */

static void run_on_all(void)
{
    passers_start(call);
    for (uint64_t i = 0; i < ktest_count(200, 2000); i++)
        passers_add_to(&passers.in_nmis);
    passers_end();
    ktest_report(passers.in_nmis, "%lu calls, %lu of them in NMIs", truth.calls,
                 passers.in_nmis);
}

KTEST(program, all_cpus_count_and_lose_nothing)
{
    probed(false, run_on_all);
    probed(true, run_on_all);
}
