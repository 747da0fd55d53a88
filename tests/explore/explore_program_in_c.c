/* explore_program_in_c.c - a probe at returns, whose program runs in C, gets another program
 * while two CPUs run the old one.
 */
#include "kernel/base/list.h"
#include "probes/program/program.h"
#include "probes/trace/buffer/select.h"
#include "tests/explore/one_event.h"

/* ---- the engine, for which each program is good and its words are 0 ---- */

#define STUB(type, fn, ...)                                                              \
    type fn(__VA_ARGS__)                                                                 \
    {                                                                                    \
        return (type)0;                                                                  \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
STUB(int, program_verify, const struct kprobe_program *p,
     struct kprobe_program_problem *why)
STUB(int, kprobe_program_begin, struct kprobe_program *p)
STUB(void, kprobe_program_end, struct kprobe_program *p)
STUB(uint64_t, program_sum, const struct kprobe_program *p, size_t i)
STUB(uint64_t, program_word_of, const struct kprobe_program *p, unsigned cpu, size_t i)
size_t program_words(const struct kprobe_program *p)
{
    return p->words;
}
STUB(bool, select_hides_thread, void)
bool live_stacks;

/* ---- the scenario ---- */

static struct live_probe *only_probe(void)
{
    return list_first(&one_event.probes, struct live_probe, sibling);
}

static void start(void)
{
    one_event.soft_disabled = true;
    one_event_start_as("r f a=$retval:u64");
    explore_check(only_probe()->in_c, "the probe has a program");
}

static void exchange(void)
{
    struct live_event *e = &one_event;

    live_program_update(&e, 1, false);
}

/* hit - what probes/trace/live/live_hit.c does at a return, with each operation looked at. */
static void hit(void)
{
    const struct kprobe_program *program;

    machine_enter();
    program = __atomic_load_n(&only_probe()->in_c, __ATOMIC_ACQUIRE);
    explore_check(program->count, "it has operations");
    for (unsigned i = 0; i < program->count; i++)
        explore_check(program->ops[i].source < KPROBE_SOURCES, "each is one");
    machine_leave();
}

const struct scenario scenario = {
    .start = start,
    .actors = { { "exchange", exchange, 0, EXPLORE_THREAD },
                { "hit", hit, 1, EXPLORE_THREAD },
                { "nmi", hit, 1, EXPLORE_NMI } },
};
