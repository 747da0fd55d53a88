/* watch_parts.h - what a hit reads about a debug register, and the handler of #DB. Only for
 * this room's files, and for those that set the handler: probes/port and probes/film.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/watch/watch.h"

/* Locks: p PLAT_PROBES to write, while the register is not in use on any CPU. */
struct watch_slot {
    struct watch *watch; /* [p] NULL: no watch has the register */
    bool executes;       /* [p] the watch is on an instruction */
    struct site *site;   /* [p] stands for the watch, because each hit needs a site */
};

extern struct watch_slot watch_slots[WATCH_SLOTS];

/* watch_debug_handler - handle #DB. It passes single steps to kprobe_debug_handler(), and
 * handles hits of debug registers, for which it clears the bits of regs->dr6.
 * Context: trap.  Return: false: a single step that is not the engine's: the caller must
 * ask other handlers of #DB.
 */
bool watch_debug_handler(struct pt_regs *regs, struct probe_cpu *cpu);
