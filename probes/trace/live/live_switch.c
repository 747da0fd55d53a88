/* live_switch.c - arms events, and switches their recording. An event may be armed
 * without being recorded: a trigger may need the hits of an event that is not recorded.
 *
 *     enabled by file   soft_users   armed   soft_disabled   the file `enable` says
 *     no                0            no      no              0
 *     yes               0            yes     no              1
 *     no                1..          yes     yes             0*
 *     yes               1..          yes     no              1*
 *
 * The triggers enable_event, disable_event, set_wprobe and clear_wprobe change
 * soft_disabled in a hit.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/wait_check.h"
#include "probes/marker/marker.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/live/live.h"

static size_t count_probes(struct live_event *const *events, size_t count)
{
    const struct live_probe *p;
    size_t probes = 0;

    for (size_t i = 0; i < count; i++)
        list_for_each(p, &events[i]->probes, sibling)
            probes++;
    return probes;
}

/* probes_of - list the kprobes that have to be enabled, or disabled if @on is false.
 * Return: how many.
 */
static size_t probes_of(struct live_event *const *events, size_t count, bool on,
                        struct kprobe **out)
{
    struct live_probe *p;
    size_t probes = 0;

    for (size_t i = 0; i < count; i++) {
        if (events[i]->armed == on || live_event_probe(events[i])->def->is_watch)
            continue;
        list_for_each(p, &events[i]->probes, sibling)
            if (p->is_registered)
                out[probes++] = &p->rp.kp;
    }
    return probes;
}

/* ---- watches: they have a debug register while the event is armed ---- */

static void log_owners(const struct watch *w, enum watch_reason why)
{
    log_warn("trace: %s: %s", w->name, watch_reason_text(why));
    for (unsigned i = 0; why == WATCH_ALL_TAKEN && watch_owner(i); i++)
        log_warn("trace: dr%u has %s", i, watch_owner(i));
}

static int watch_on(struct live_probe *p)
{
    enum watch_reason why;
    int err;

    p->claim = p->event->setters ? LIVE_WITHOUT : LIVE_WITH;
    p->watch.addr = p->event->setters ? 0 : p->def->addr;
    err = register_watch_why(&p->watch, &why);
    if (err)
        log_owners(&p->watch, why);
    p->is_registered = !err;
    return err;
}

static void watch_off(struct live_probe *p)
{
    if (!p->def->is_watch || !p->is_registered || unregister_watch(&p->watch))
        return;
    p->is_registered = false;
    p->hits += watch_hits(&p->watch);
    p->misses += watch_misses(&p->watch);
    p->watch.hits = p->watch.nmissed = 0;
}

/* watches_off - take the registers of the watches that are not armed. */
static void watches_off(struct live_event *const *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!events[i]->armed)
            watch_off(live_event_probe(events[i]));
}

/* watches_on - give a register to all watches that are not armed, or to none of them. */
static int watches_on(struct live_event *const *events, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++)
        if (!events[i]->armed && live_event_probe(events[i])->def->is_watch)
            err = watch_on(live_event_probe(events[i]));
    if (err)
        watches_off(events, count);
    return err;
}

/* arm_marks - connect or disconnect the markers of @events: all in one batch, or none. */
static int arm_marks(struct live_event *const *events, size_t count, bool on)
{
    struct marker_wish *wishes = kmalloc((count + 1) * sizeof(*wishes));
    size_t found = 0;
    int err = 0;

    if (!wishes)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (events[i]->armed != on && live_mark(events[i]))
            wishes[found++] = live_mark_wish(live_mark(events[i]));
    if (found)
        err =
            on ? marker_connect_all(wishes, found) : marker_disconnect_all(wishes, found);
    kfree(wishes);
    return err;
}

/* live_arm - arm or disarm all of @events; in case of an error none of them changes. */
static int live_arm(struct live_event *const *events, size_t count, bool on)
{
    struct kprobe **probes =
        kmalloc((count_probes(events, count) + 1) * sizeof(struct kprobe *));
    size_t found;
    int err = 0;

    if (!probes)
        return -ENOMEM;
    found = probes_of(events, count, on, probes);
    if (on)
        err = buffer_expand();
    if (!err && on)
        err = watches_on(events, count);
    if (!err && on)
        live_program_update(events, count, true);
    if (!err && found)
        err = on ? enable_kprobes(probes, found) : disable_kprobes(probes, found);
    if (!err) {
        err = arm_marks(events, count, on);
        if (err && found)
            on ? disable_kprobes(probes, found) : enable_kprobes(probes, found);
    }
    for (size_t i = 0; !err && i < count; i++)
        events[i]->armed = on;
    if (!err != on) /* the programs of what is not armed go */
        live_program_update(events, count, false);
    if (err || !on)
        watches_off(events, count);
    kfree(probes);
    return err;
}

/* record_hits - let the hits of @e, which is armed, be recorded, or not. */
static void record_hits(struct live_event *e, bool on)
{
    if (e->soft_disabled == !on)
        return;
    WRITE_ONCE(e->soft_disabled, !on);
    live_program_update(&e, 1, false);
}

static int live_switch_on(struct live_event *const *events, size_t count)
{
    int err = live_arm(events, count, true);

    for (size_t i = 0; !err && i < count; i++)
        record_hits(events[i], true);
    return err;
}

/* live_switch_off - stop recording. An event that a trigger needs stays armed. */
static int live_switch_off(struct live_event *const *events, size_t count)
{
    struct live_event **off = kmalloc((count + 1) * sizeof(struct live_event *));
    size_t offs = 0;
    int err;

    if (!off)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (live_is_soft(events[i]))
            record_hits(events[i], false);
        else
            off[offs++] = events[i];
    err = live_arm(off, offs, false);
    kfree(off);
    return err;
}

int live_switch(struct live_event *const *events, size_t count, bool on)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    return on ? live_switch_on(events, count) : live_switch_off(events, count);
}

int live_hold(struct live_event *e)
{
    int err;

    if (!e->armed) {
        WRITE_ONCE(e->soft_disabled, true);
        err = live_arm(&e, 1, true);
        if (err) {
            WRITE_ONCE(e->soft_disabled, false);
            return err;
        }
    }
    e->soft_users++;
    return 0;
}

void live_release(struct live_event *e)
{
    BUG_ON(wait_check(__func__)); /* the caller has been refused */
    if (--e->soft_users || !e->soft_disabled)
        return;
    /* If disarming fails for lack of memory, the event stays armed and is not recorded:
     * its hits cost time and have no effect.
     */
    if (!live_arm(&e, 1, false))
        WRITE_ONCE(e->soft_disabled, false);
}
