/* text_phases.h - the last phases of changes of text. In a phase the engine stores some
 * bytes, asks the CPUs to synchronise, and waits until each CPU has done so.
 */
#pragma once

#include "probes/core/platform.h"

#define TEXT_PHASES_LEN 128
#define TEXT_PHASE_HALTED UINT32_MAX

struct text_phase {
    uintptr_t first; /* the lowest address of the batch */
    size_t count;    /* how many places the batch changes */
    uint64_t ns;     /* plat_clock_ns() when all was stored and the CPUs were asked */
    uint16_t level;
    uint8_t step; /* enum text_poke_step */
    uint8_t cpus; /* 0: they have not all answered yet */
    /* For each CPU, when it has answered, in nanoseconds after @ns. TEXT_PHASE_HALTED:
     * the CPU was halted, and was not asked.
     */
    uint32_t answered[PLAT_CPUS_MAX];
};

/* text_phases_count - how many phases there have been since boot. Context: any. */
extern uint64_t text_phases_noted;
static inline uint64_t text_phases_count(void)
{
    return text_phases_noted;
}
/* text_phases_get - fill @out with a phase.
 * @number: 0 is the first phase since boot
 * Context: thread or held.  Locks: PLAT_TEXT held.
 * Return:  false: there has been no such phase yet, or newer ones have taken its place.
 */
bool text_phases_get(uint64_t number, struct text_phase *out);
/* text_phases_watch - let @fn be called twice for each phase: when all bytes are stored
 * (p->cpus is still 0), and when all CPUs have answered. @fn may take long.
 * @fn: NULL: call no function any more. Else it runs in a thread, stopped or held, with
 *      PLAT_TEXT held. Locks: PLAT_TEXT held.
 */
void text_phases_watch(void (*fn)(const struct text_phase *p));
/* text_phase_name - the name of a step: "guard", "tail", "first", "whole". Context: any.
 */
const char *text_phase_name(unsigned step);
