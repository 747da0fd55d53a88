/* explore_kprobe.c - a probe goes and comes again while a CPU executes the function, and then
 * another one with a probe that stays. The search for that one passes the first one's entry.
 */
#include "probes/core/registry.h"
#include "tests/explore/text.h"
#include "tests/unit/port_fake.h"

static struct kprobe *probe, stays, again;
static uintptr_t fn, other;

static int count(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    explore_seen(p == &stays ? "the other probe is hit" : "the probe is hit");
    return 0;
}

/* home - where the search of the registry begins, as probes/core/registry.c has it. */
static size_t home(uintptr_t addr)
{
    return (((addr * UINT64_C(0x9e3779b97f4a7c15)) >> 32) * 256) >> 32;
}

static void start(void)
{
    text_start();
    fn = text_function("fn", TEXT_PUSHES);
    while (home(fake_bytes_at("c3") + 16) != home(fn))
        continue;
    other = text_function("other", TEXT_PUSHES);
    explore_check(home(other) == home(fn),
                  "the searches for both begin at the same entry");
    stays = (struct kprobe){ .addr = other, .pre_handler = count };
    again = (struct kprobe){ .addr = fn, .pre_handler = count };
    probe = explore_alloc(sizeof(*probe));
    *probe = again;
    explore_check(!register_kprobe(probe), "the probe comes");
    explore_check(!register_kprobe(&stays), "the other probe comes");
}

static void go_and_come(void)
{
    explore_check(!unregister_kprobe(probe), "the probe goes");
    explore_free(probe);
    explore_check(!register_kprobe(&again), "the probe comes again");
}

static void run(void)
{
    text_run(fn);
    text_run(other);
    text_run(fn);
}

static void end(void)
{
    explore_check(!unregister_kprobe(&stays), "the other probe goes");
    explore_check(!unregister_kprobe(&again), "the probe goes again");
    explore_check(!explore_blocks(), "no memory is left");
}

const struct scenario scenario = {
    .once = text_once,
    .start = start,
    .end = end,
    .actors = { { "register", go_and_come, 0, EXPLORE_THREAD },
                { "program", run, 1, EXPLORE_THREAD } },
    .outcomes = { "the probe is hit", "the other probe is hit" },
};
