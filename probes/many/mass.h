/* mass.h - registers, disables and unregisters very many probes, for a command that the
 * user may stop.
 *
 * The engine changes a set of probes in one step. If the set has all instructions of the
 * kernel, this takes seconds. So a set is divided into portions where that costs no time,
 * and the command looks for Ctrl-C between them. Arming stays one step, because the jumps
 * of neighbouring instructions are planned together.
 */
#pragma once

#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>

/* What such a function asks and tells between two portions. */
struct mass_caller {
    bool (*stop)(void *arg);                       /* does the user want it to stop? */
    void (*progress)(void *arg, const char *text); /* how far it is; NULL: it is done */
    void *arg;
};

/* mass_register - register and arm the probes that the rules accept, and move them to the
 * front of @ps, as register_kprobes_some() does.
 * @ps:      enabled probes
 * @refused: called for each probe that is refused
 *
 * Context: thread.
 * Return:  how many are registered; -EINTR the user has stopped it, or -ENOMEM: in both
 *          cases no probe is registered.
 */
long mass_register(const struct mass_caller *caller, struct kprobe **ps, size_t count,
                   void (*refused)(struct kprobe *p, const struct probe_reject *why,
                                   void *arg),
                   void *arg);

/* mass_disable - disable registered probes, beginning with the first one.
 * Context: thread.
 * Return:  0; -EINTR the user has stopped it, and some probes are disabled now; an errno of
 *          disable_kprobes().
 */
int mass_disable(const struct mass_caller *caller, struct kprobe **ps, size_t count);

/* mass_unregister - unregister the probes, beginning with the last one. If there are very
 * many, they are disabled first.
 * @count: how many there are; on return, how many are still registered
 *
 * Context: thread.
 * Return:  0; -EINTR the user has stopped it, and some probes are disabled or
 *          unregistered now; an errno of unregister_kprobes().
 */
int mass_unregister(const struct mass_caller *caller, struct kprobe **ps, size_t *count);
