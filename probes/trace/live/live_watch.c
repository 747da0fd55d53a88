/* live_watch.c - a trigger of a hit gives a watch its address, or takes it away.
 *
 * Several hits may try at once, on several CPUs and on top of each other. The hit that has
 * claimed the watch changes it, and the others do nothing, as if they had come just before.
 * A hit that only looks whether it is meant claims nothing: a trigger that takes away the
 * address of an object must not come to nothing because another object goes meanwhile.
 */
#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "probes/trace/live/live.h"

/* field_of - return the address that the record has for a trigger of a watch. */
static uintptr_t field_of(const struct live_trigger *t, const uint8_t *record)
{
    return filter_field_number(&t->field, record, cpu_id()) + (uintptr_t)t->line->adjust;
}

static bool live_watch_claim(struct live_probe *p, enum live_claim from)
{
    return __atomic_compare_exchange_n(&p->claim, &from, LIVE_CLAIMED, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void live_watch_unclaim(struct live_probe *p, enum live_claim to)
{
    __atomic_store_n(&p->claim, to, __ATOMIC_RELEASE);
}

void live_watch_set(struct live_trigger *t, const uint8_t *record)
{
    struct live_probe *p = live_event_probe(t->other);
    uintptr_t addr = field_of(t, record);
    bool was_soft;

    if (!addr || !READ_ONCE(t->line->count) || !live_watch_claim(p, LIVE_WITHOUT))
        return;
    was_soft = READ_ONCE(t->other->soft_disabled);
    WRITE_ONCE(t->other->soft_disabled, false);
    if (!watch_move(&p->watch, addr)) {
        trigger_take(t->line);
        live_watch_unclaim(p, LIVE_WITH);
        return;
    }
    WRITE_ONCE(t->other->soft_disabled, was_soft);
    live_watch_unclaim(p, LIVE_WITHOUT);
    live_count_loss(t->other, LIVE_NOT_SET, 1);
}

static bool is_meant(const struct live_trigger *t, const struct live_probe *p,
                     const uint8_t *record)
{
    return !t->line->field || watch_addr(&p->watch) == field_of(t, record);
}

void live_watch_clear(struct live_trigger *t, const uint8_t *record)
{
    struct live_probe *p = live_event_probe(t->other);

    if (!is_meant(t, p, record) || !live_watch_claim(p, LIVE_WITH))
        return;
    if (!is_meant(t, p, record) || !trigger_take(t->line)) {
        live_watch_unclaim(p, LIVE_WITH);
        return;
    }
    watch_move(&p->watch, 0);
    WRITE_ONCE(t->other->soft_disabled, true);
    live_watch_unclaim(p, LIVE_WITHOUT);
}
