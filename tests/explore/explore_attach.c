/* explore_attach.c - a histogram is taken off its event, and comes back in vain and with
 * success, while two CPUs have hits of it: the last ones of the event while it was armed, or
 * new ones.
 */
#include "kernel/base/err.h"
#include "tests/explore/one_event.h"

static void take_off(void)
{
    explore_check(!live_trigger_write(&one_event, "!" ONE_HIST), "it goes");
    explore_check(!one_event.attached, "nothing is attached");
    one_event_refuses = true;
    explore_check(live_trigger_write(&one_event, ONE_HIST) == -ENOMEM, "it is refused");
    explore_check(!live_set_filter(&one_event, "a > 0", false), "a filter");
    one_event_refuses = false;
    explore_check(!live_trigger_write(&one_event, ONE_HIST), "it comes beside it");
}

static void hit(void)
{
    explore_seen(one_event_hit() ? "a hit counts" : "a hit finds nothing");
}

const struct scenario scenario = {
    .start = one_event_start,
    .actors = { { "trigger", take_off, 0, EXPLORE_THREAD },
                { "hit", hit, 1, EXPLORE_THREAD },
                { "nmi", hit, 1, EXPLORE_NMI } },
    .outcomes = { "a hit counts", "a hit finds nothing" },
};
