/* explore_hist_clear.c - a histogram is cleared while another CPU has hits that count in
 * it, in a thread and in an NMI.
 */
#include "kernel/base/compiler.h"
#include "probes/trace/language/hist_parts.h"
#include "tests/explore/one_event.h"

static struct hist *hist;
static uint64_t behind; /* hits that began when it was clear */
static bool is_clear;

static void start(void)
{
    one_event_start();
    hist = one_event.attached->trigger[0]->hist;
}

static void clear(void)
{
    explore_check(!live_trigger_write(&one_event, ONE_HIST ":clear"), "it is clear");
    WRITE_ONCE(is_clear, true);
}

static void hit(void)
{
    bool is_behind = READ_ONCE(is_clear);

    one_event_hit();
    __atomic_fetch_add(&behind, is_behind, __ATOMIC_RELAXED);
}

static void end(void)
{
    uint32_t numbers[128];
    uint64_t sum = 0, before = 0;

    explore_check(hist_sorted(hist, numbers) <= 1, "a key has one entry");
    if (hist_sorted(hist, numbers))
        sum = hist_entry(hist, numbers[0])->sum[0];
    before = hist->table->hits;
    explore_check(sum == before, "each hit that is counted is in an entry");
    explore_check(before >= behind, "hits behind the clear count");
    one_event_hit();
    explore_check(hist->table->hits == before + 1, "and so do later ones");
    explore_seen(before ? "hits that stay" : "hits that are cleared");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "trigger", clear, 0, EXPLORE_THREAD },
                { "hit", hit, 1, EXPLORE_THREAD },
                { "nmi", hit, 1, EXPLORE_NMI } },
    .outcomes = { "hits that stay", "hits that are cleared" },
};
