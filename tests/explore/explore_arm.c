/* explore_arm.c - three events are armed together, one of each kind: a probe, a watch and a
 * marker. Each step of that may be refused; then all must be as before.
 */
#include "kernel/base/err.h"
#include "kernel/debug/log.h"
#include "probes/marker/marker.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/live/live.h"
#include "tests/explore/machine.h"

enum { KPROBE, WATCH, MARK, KINDS };

static struct live_event events[KINDS], *const all[] = { &events[0], &events[1],
                                                         &events[2] };
static struct live_probe probes[KINDS];
static struct def defs[KINDS] = { [WATCH] = { .is_watch = true } };
static bool is_on[KINDS];

/* refused - return 0, or in another schedule -ENOMEM. */
static int refused(void)
{
    return explore_choose(2) ? -ENOMEM : 0;
}

int buffer_expand(void)
{
    return refused();
}

int enable_kprobes(struct kprobe **list, size_t count)
{
    int err = refused();

    explore_check(count == 1 && list[0] == &probes[KPROBE].rp.kp, "it is the kprobe");
    is_on[KPROBE] |= !err;
    return err;
}

int disable_kprobes(struct kprobe **list, size_t count)
{
    explore_check(count == 1 && list[0] == &probes[KPROBE].rp.kp, "it is the kprobe");
    is_on[KPROBE] = false;
    return 0;
}

int register_watch_why(struct watch *w UNUSED, enum watch_reason *why)
{
    int err = refused();

    *why = 0;
    is_on[WATCH] |= !err;
    return err;
}

int unregister_watch(struct watch *w UNUSED)
{
    is_on[WATCH] = false;
    return 0;
}

uint64_t watch_hits(const struct watch *w UNUSED)
{
    return 0;
}

uint64_t watch_misses(const struct watch *w UNUSED)
{
    return 0;
}

const char *watch_owner(unsigned i UNUSED)
{
    return NULL;
}

const char *watch_reason_text(enum watch_reason why UNUSED)
{
    return "";
}

void log_print(enum log_level level UNUSED, const char *fmt UNUSED, ...)
{
}

static bool have_programs;

void live_program_update(struct live_event *const *list UNUSED, size_t count UNUSED,
                         bool arming)
{
    have_programs = arming;
}

struct marker_wish live_mark_wish(struct live_probe *p UNUSED)
{
    return (struct marker_wish){ 0 };
}

int marker_connect_all(const struct marker_wish *wishes UNUSED, size_t count UNUSED)
{
    int err = refused();

    is_on[MARK] |= !err;
    return err;
}

int marker_disconnect_all(const struct marker_wish *wishes UNUSED, size_t count UNUSED)
{
    is_on[MARK] = false;
    return 0;
}

static void start(void)
{
    probes[KPROBE].is_registered = true;
    probes[MARK].mark = (char *)"%u";
    for (unsigned i = 0; i < KINDS; i++) {
        list_init(&events[i].probes);
        list_append(&events[i].probes, &probes[i].sibling);
        probes[i].event = &events[i];
        probes[i].def = &defs[i];
    }
}

static void check_all(bool on)
{
    explore_check(have_programs == on, "what is off has no program");
    for (unsigned i = 0; i < KINDS; i++) {
        explore_check(events[i].armed == on, "each event knows its state");
        explore_check(is_on[i] == on, "all probes are on, or none of them");
    }
}

static void arm(void)
{
    int err = live_switch(all, KINDS, true);

    check_all(!err);
    explore_seen(err ? "it is refused" : "it is armed");
    if (err)
        return;
    explore_check(!live_switch(all, KINDS, false), "it is disarmed");
    check_all(false);
}

const struct scenario scenario = {
    .start = start,
    .actors = { { "arm", arm, 0, EXPLORE_THREAD } },
    .outcomes = { "it is refused", "it is armed" },
};
