/* nothing.h - handlers that do nothing: their probes are hit by a handler, and counted. */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/kprobe.h"

static inline int no_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static inline void no_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                           unsigned long flags UNUSED)
{
}
