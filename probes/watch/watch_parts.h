/* watch_parts.h - what a hit finds at a register. Private to the room. */
#pragma once

#include "probes/core/life.h"
#include "probes/watch/watch.h"

/* Locks: p PLAT_PROBES to write, while the register is not in use on any CPU. */
struct watch_slot {
    struct watch *watch; /* [p] NULL: the register is not a watch's */
    bool executes;       /* [p] of an instruction */
    struct site *site;   /* [p] what makes a hit of it, as of an instruction */
};

extern struct watch_slot watch_slots[WATCH_SLOTS];

/* watch_debug_handler - handle #DB. It passes single steps to kprobe_debug_handler(), and
 * handles the debug registers that watches use. The bits of regs->dr6 that it has handled
 * are cleared; the others stay.
 * Context: trap.  Return: false: the caller asks other handlers of #DB.
 */
bool watch_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu);
