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

/* watch_debug_handler - #DB: steps as kprobe_debug_handler(), and registers of watches. What
 * belongs to others stays in regs->dr6.
 * Context: trap.  Return: false: other handlers are to be asked.
 */
bool watch_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu);
