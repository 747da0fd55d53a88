/* explore_watch_set.c - hits on three CPUs give a watch its address and take it away, one of
 * them with an address that cannot be watched.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "tests/explore/one_event.h"

#define OBJECT 0x1000ul
#define ONCE 0x2000ul /* a trigger with a count sets it */
#define OTHER 0x3000ul
#define REFUSED 0x4000ul

static struct live_event watched;
static struct live_probe watch;
static struct trigger lines[] = {
    { .kind = TRIGGER_SET_WATCH, .count = TRIGGER_UNLIMITED },
    { .kind = TRIGGER_SET_WATCH, .count = 1 },
    { .kind = TRIGGER_CLEAR_WATCH, .count = TRIGGER_UNLIMITED, .field = "object" },
    { .kind = TRIGGER_CLEAR_WATCH, .count = 1 }
};
static const struct filter_field field = { .size = sizeof(uint64_t),
                                           .kind = FILTER_NUMBER };
static struct live_trigger sets = { .line = &lines[0], .other = &watched };
static struct live_trigger sets_once = { .line = &lines[1], .other = &watched };
static struct live_trigger clears = { .line = &lines[2], .other = &watched };
static struct live_trigger clears_once = { .line = &lines[3], .other = &watched };
static unsigned moves, moves_once; /* to OBJECT, to ONCE */
static unsigned due; /* moves to OBJECT, when the object went that was watched then */

int watch_move(struct watch *w, uintptr_t addr)
{
    if (addr == REFUSED)
        return -EINVAL;
    if (!addr && explore_cpu() == 1 && explore_level() == EXPLORE_THREAD)
        explore_check(w->addr == OBJECT, "what is watched goes only with its own object");
    WRITE_ONCE(w->addr, addr);
    __atomic_fetch_add(&moves, addr == OBJECT, __ATOMIC_RELAXED);
    __atomic_fetch_add(&moves_once, addr == ONCE, __ATOMIC_RELAXED);
    return 0;
}

uintptr_t watch_addr(const struct watch *w)
{
    return READ_ONCE(w->addr);
}

static void start(void)
{
    list_init(&watched.probes);
    list_append(&watched.probes, &watch.sibling);
    watched.soft_disabled = true;
    sets.field = sets_once.field = clears.field = field;
}

static void hit_sets(void)
{
    uint64_t record = OBJECT;

    live_watch_set(&sets, (const uint8_t *)&record);
}

static void hit_sets_once(void)
{
    uint64_t record = ONCE;

    live_watch_set(&sets_once, (const uint8_t *)&record);
}

static void hit_is_refused(void)
{
    uint64_t record = REFUSED;

    live_watch_set(&sets, (const uint8_t *)&record);
}

static void object_goes(void)
{
    uint64_t record = OBJECT;
    unsigned before = READ_ONCE(moves);

    if (READ_ONCE(watch.claim) == LIVE_WITH)
        WRITE_ONCE(due, before);
    live_watch_clear(&clears, (const uint8_t *)&record);
}

static void other_goes(void)
{
    uint64_t record = OTHER;

    live_watch_clear(&clears, (const uint8_t *)&record);
}

static void hit_clears(void)
{
    live_watch_clear(&clears_once, NULL);
}

static void end(void)
{
    uintptr_t addr = watch.watch.addr;

    explore_check(watch.claim == (addr ? LIVE_WITH : LIVE_WITHOUT), "nobody claims it");
    explore_check(watched.soft_disabled == !addr,
                  "its hits count while it has an address");
    explore_check(addr != OBJECT || moves != due, "no object is watched that has gone");
    explore_check(lines[1].count + moves_once == 1, "a trigger counts what it has set");
    explore_seen(addr ? "it has an address" : "it has none any more");
    if (watched.lost[LIVE_NOT_SET])
        explore_seen("an address is refused");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "set", hit_sets, 0, EXPLORE_THREAD },
                { "refused", hit_is_refused, 0, EXPLORE_NMI },
                { "object goes", object_goes, 1, EXPLORE_THREAD },
                { "clear", hit_clears, 1, EXPLORE_NMI },
                { "set once", hit_sets_once, 2, EXPLORE_THREAD },
                { "other goes", other_goes, 2, EXPLORE_NMI } },
    .outcomes = { "it has an address", "it has none any more", "an address is refused" },
};
