/* live_direct.c - records hits that have only registers and constants as arguments: the
 * code of the detour stores them into the ring, and no image is made.
 *
 * The effect is that of hit_probe() in live_hit.c for an event with nothing attached.
 * Before hits can see an attached filter or trigger, kprobe_by_image() switches the probe
 * to hit_probe(). After the last filter or trigger was removed, it switches the probe
 * back.
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

/* store_of - describe the store of @arg. Return: false: a single store cannot do it. */
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
