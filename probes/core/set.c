/* set.c - stage 1 for many: a list that grows, and register_kprobes() for all of it. */
#include "probes/core/set.h"

#include "kernel/base/err.h"
#include "probes/core/platform.h"

#define ROOM_MIN 16

void kprobe_set_begin(struct kprobe_set *set)
{
    *set = (struct kprobe_set){ 0 };
}

static int grow(struct kprobe_set *set)
{
    size_t room = set->room ? 2 * set->room : ROOM_MIN;
    struct kprobe **probes = plat_alloc(room * sizeof(probes[0]));

    if (!probes)
        return -ENOMEM;
    for (size_t i = 0; i < set->count; i++)
        probes[i] = set->probes[i];
    plat_free(set->probes);
    set->probes = probes;
    set->room = room;
    return 0;
}

int kprobe_set_add(struct kprobe_set *set, struct kprobe *p)
{
    int err = 0;

    if (set->is_committed)
        return -EINVAL;
    if (set->count == set->room)
        err = grow(set);
    if (!err)
        set->probes[set->count++] = p;
    return err;
}

int kprobe_set_commit(struct kprobe_set *set, struct probe_reject *why)
{
    int err;

    if (set->is_committed)
        return probe_refuse(why, PROBE_REGISTERED, 0);
    err = register_kprobes_why(set->probes, set->count, why);
    set->is_committed = !err;
    return err;
}

int kprobe_set_abort(struct kprobe_set *set)
{
    int err = 0;

    if (set->is_committed)
        err = unregister_kprobes(set->probes, set->count);
    if (err)
        return err;
    plat_free(set->probes);
    kprobe_set_begin(set);
    return 0;
}
