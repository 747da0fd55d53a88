/* set.h - atomic sets: probes that are put in together or not at all.
 *
 *     struct kprobe_set set;
 *
 *     kprobe_set_begin(&set);
 *     for (...)
 *         err = err ? err : kprobe_set_add(&set, &probes[i]);
 *     if (!err)
 *         err = kprobe_set_commit(&set, &why);
 *     if (err)
 *         kprobe_set_abort(&set);
 *
 * Until the commit nothing has happened but that addresses were noted. From its return on
 * all of the probes are armed, and while it runs no CPU pays for more than one round of
 * synchronisation.
 */
#pragma once

#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>

/* Belongs to its maker; no lock of its own. */
struct kprobe_set {
    struct kprobe **probes; /* in the order of kprobe_set_add() */
    size_t count;
    size_t room;       /* of probes[] */
    bool is_committed; /* they are registered */
};

/* kprobe_set_begin - make @set empty. kprobe_set_abort() must end it. Context: any. */
void kprobe_set_begin(struct kprobe_set *set);

/* kprobe_set_add - one more. @p is borrowed until kprobe_set_abort().
 *
 * Return: 0; -ENOMEM; -EINVAL it is committed.
 */
int kprobe_set_add(struct kprobe_set *set, struct kprobe *p);

/* kprobe_set_commit - register all of them.
 * @why: on refusal, the rule; @why->index is the element's place, in order of adding
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EEXIST it is committed already; else as register_kprobe(), none is
 *          registered, and the set is as before: it may be tried again.
 */
int kprobe_set_commit(struct kprobe_set *set, struct probe_reject *why);

/* kprobe_set_abort - take out what was committed, in one round too, and forget the set.
 * The probes are the caller's again.
 *
 * Context: thread, not a handler of one of them.  Locks: takes PLAT_PROBES.
 * Return:  0; what unregister_kprobe() says, and the set is as before.
 */
int kprobe_set_abort(struct kprobe_set *set);
