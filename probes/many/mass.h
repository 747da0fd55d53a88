/* mass.h - very many probes in, off and out for a command that people may stop.
 *
 * The engine changes a set in one step, which takes seconds for all instructions of the
 * kernel. Here a set is handled in portions as far as that costs nothing, with a look for
 * Ctrl-C in between. Arming stays one step: jumps are planned for all of their neighbours
 * together.
 */
#pragma once

#include "kernel/console/shell.h"
#include "probes/kprobe.h"

#include <stddef.h>

/* mass_register - as register_kprobes_some(): those that are accepted come first in @ps, and
 * are armed; @refused hears of the others. None of @ps may be disabled.
 *
 * Context: thread.
 * Return:  how many are registered; -EINTR stopped, or -ENOMEM, with none of them registered.
 */
long mass_register(struct shell *sh, struct kprobe **ps, size_t count,
                   void (*refused)(struct kprobe *p, const struct probe_reject *why,
                                   void *arg),
                   void *arg);

/* mass_disable - switch registered probes off, from the first one on.
 *
 * Context: thread.
 * Return:  0; -EINTR stopped, some of them are off now; what disable_kprobes() says.
 */
int mass_disable(struct shell *sh, struct kprobe **ps, size_t count);

/* mass_unregister - switch them off, then take them out, from the last one on.
 * @count: of them; those that are left
 *
 * Context: thread.
 * Return:  0; -EINTR stopped, some are off or out now; what unregister_kprobes() says.
 */
int mass_unregister(struct shell *sh, struct kprobe **ps, size_t *count);
