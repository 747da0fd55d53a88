/* live_direct.c - a hit whose arguments are registers and constants: the probe's own code
 * stores them into the ring, without an image of the registers.
 *
 * It does what hit_probe() of live_hit.c does for an event with nothing attached. Where a
 * filter or a trigger is attached the probe is switched to that by kprobe_by_image(), before
 * hits can see what is attached, and back behind that.
 */
#include "kernel/cpu/instr.h"
#include "probes/trace/files/buffer.h"
#include "probes/trace/files/files.h"
#include "probes/trace/live/live.h"

static struct kprobe_room direct_begin(struct kprobe *kp, uintptr_t ip)
{
    const struct live_probe *p = CONTAINER_OF(kp, struct live_probe, rp.kp);
    struct live_event *e = p->event;
    struct record_probe *record;
    struct ring *ring;

    if (unlikely(READ_ONCE(e->soft_disabled)) || !trace_takes_hit())
        return (struct kprobe_room){ 0 };
    record = record_begin(&e->event, e->fixed, read_flags(), &ring);
    if (unlikely(!record)) {
        if (ring)
            __atomic_add_fetch(&e->lost[LIVE_LOST_RING], 1, __ATOMIC_RELAXED);
        return (struct kprobe_room){ 0 };
    }
    record->ip = ip;
    return (struct kprobe_room){ record, ring };
}

static void direct_end(void *ring)
{
    record_end(ring);
}

/* store_of - Return: false: @arg needs more than a store. */
static bool store_of(const struct fetch_arg *arg, struct kprobe_store *out)
{
    size_t offset = sizeof(struct record_probe) + arg->offset;
    const struct fetch_insn *load;

    if (!fetch_is_operand(arg, &load) || offset > UINT16_MAX)
        return false;
    *out = (struct kprobe_store){ .size = arg->code[1].size, .offset = (uint16_t)offset };
    switch (load->op) {
    case FETCH_LOAD_VALUE:
        out->is_value = true;
        out->value = (int32_t)load->value;
        return out->value == load->value;
    case FETCH_LOAD_SP:
        out->reg = offsetof(struct pt_regs, sp);
        return true;
    default:
        out->reg = (uint8_t)load->value;
        return true;
    }
}

void live_direct_fill(struct live_probe *p)
{
    const struct def *def = p->def;

    if (def->is_return || def->has_strings || def->arg_count > KPROBE_STORES_MAX)
        return;
    for (size_t i = 0; i < def->arg_count; i++)
        if (!store_of(&def->args[i], &p->stores.store[i]))
            return;
    p->stores.count = def->arg_count;
    p->stores.begin = direct_begin;
    p->stores.end = direct_end;
    p->rp.kp.stores = &p->stores;
}

void live_direct_allow(const struct live_event *e, bool allowed)
{
    struct live_probe *p;

    list_for_each(p, &e->probes, sibling)
        if (p->rp.kp.stores)
            kprobe_by_image(&p->rp.kp, !allowed);
}
