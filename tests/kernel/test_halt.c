/* test_halt.c - probes on hlt and ud2. The copy of a hlt waits for an interrupt, as the
 * hlt itself would, and the engine waits for a CPU that halts in a copy. A probed ud2
 * ends in a panic that names the ud2.
 */
#include "kernel/cpu/trap.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/nothing.h"

#define MS UINT64_C(1000000)

void halt_here(void), undefined_here(void);
KTEST_ASM(halt_here, "hlt; ret")
KTEST_ASM(undefined_here, "ud2")

static uint64_t interrupts(void)
{
    uint64_t sum = 0;

    for (unsigned vector = TRAP_COUNT; vector < 256; vector++)
        sum += irq_count(cpu_id(), vector);
    return sum;
}

/* halts - halt this CPU @times times. Return: how often an interrupt has ended the hlt.
 */
static unsigned halts(unsigned times)
{
    unsigned waited = 0;

    for (unsigned i = 0; i < times; i++) {
        uint64_t before = interrupts();

        halt_here();
        waited += interrupts() != before;
    }
    return waited;
}

static void halts_with(const char *how, kprobe_post_handler_t post,
                       enum step_engine engine)
{
    struct kprobe p = { .addr = (uintptr_t)halt_here, .post_handler = post };
    unsigned waited;

    step_set_engine(engine);
    register_kprobe(&p);
    waited = halts(10);
    unregister_kprobe(&p);
    step_set_engine(STEP_INT3);
    ktest_report(waited == 10 && p.hits == 10, "%s: %u of 10 times", how, waited);
}

KTEST(halt, a_probed_hlt_waits_for_an_interrupt)
{
    thread_set_affinity(BIT(0));
    ktest_report(halts(10) == 10, "so it does without a probe");
    halts_with("boosted", NULL, STEP_INT3);
    halts_with("with a post-handler", no_post, STEP_INT3);
    halts_with("where steps are ended by TF", no_post, STEP_TF);
    thread_set_affinity(UINT64_MAX);
}

static bool halting;

static int halt_again_and_again(void *arg)
{
    unsigned *times = arg;

    while (READ_ONCE(halting)) {
        halt_here();
        WRITE_ONCE(*times, *times + 1);
    }
    return 0;
}

KTEST(halt, a_cpu_that_halts_in_a_copy_is_waited_for)
{
    struct kprobe p = { .addr = (uintptr_t)halt_here };
    unsigned cpu = cpu_count() - 1, times = 0;
    int tid;

    WRITE_ONCE(halting, true);
    tid = ktest_thread(halt_again_and_again, &times, BIT(cpu));
    for (unsigned i = 0; i < 20; i++) {
        register_kprobe(&p);
        thread_sleep_ns(10 * MS);
        unregister_kprobe(&p);
    }
    WRITE_ONCE(halting, false);
    thread_join(tid, NULL);
    ktest_report(p.hits > 0 && times >= p.hits,
                 "CPU %u has halted %u times, %lu of them in a copy", cpu, times, p.hits);
}

KTEST_FATAL(halt, a_probed_ud2_is_named)
{
    struct kprobe p = { .addr = (uintptr_t)undefined_here };

    if (!register_kprobe(&p))
        undefined_here();
}
