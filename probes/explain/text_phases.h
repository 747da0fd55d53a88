/* text_phases.h - the last phases of changes of text: what was stored when, that the CPUs
 * were asked to synchronise, and when each of them had done so.
 */
#pragma once

#include "probes/core/platform.h"

#define TEXT_PHASES_LEN 128
#define TEXT_PHASE_HALTED UINT32_MAX

struct text_phase {
    uintptr_t first; /* of the batch: its lowest address */
    size_t count;    /* of the batch: places */
    uint64_t ns;     /* plat_clock_ns(), when all was stored and the CPUs were asked */
    uint16_t level;
    uint8_t step; /* enum text_poke_step */
    uint8_t cpus; /* 0: they have not all answered yet */
    uint32_t
        answered[PLAT_CPUS_MAX]; /* nanoseconds behind @ns; HALTED: no need to ask it */
};

/* text_phases_count - how many there have been since boot. Context: any. */
uint64_t text_phases_count(void);
/* text_phases_get - phase @number, from 0 on.
 * Context: thread.  Locks: PLAT_TEXT held.  Return: false: not yet, or forgotten.
 */
bool text_phases_get(uint64_t number, struct text_phase *out);
/* text_phases_watch - have @fn called with each phase, twice: when all is stored, with cpus
 * still 0, and when all CPUs have answered. It may take its time.
 * @fn: NULL: none. Context of @fn: thread; machine stopped.
 * Locks: PLAT_TEXT held, in @fn, too.
 */
void text_phases_watch(void (*fn)(const struct text_phase *p));
/* text_phase_name - of a step: "guard", "tail", "first", "whole". Context: any. */
const char *text_phase_name(unsigned step);
