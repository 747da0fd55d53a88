/* text_history.h - the last changes of text. */
#pragma once

#include "probes/insn/insn.h"

#include <stddef.h>
#include <stdint.h>

#define TEXT_HISTORY_LEN 1024

/* What a piece of text became. */
struct text_change {
    uintptr_t addr;
    uint64_t ns; /* plat_clock_ns(), when all CPUs had it */
    uint8_t len;
    uint8_t bytes[INSN_MAX_LEN]; /* from then on */
};

/* text_history_find - the latest changes of bytes in [@start, @end), the last one first.
 * Context: thread.  Locks: PLAT_TEXT held.  Return: how many, at most @max.
 */
size_t text_history_find(uintptr_t start, uintptr_t end, struct text_change *out,
                         size_t max);
/* text_history_count - changes noted since boot, those that are forgotten included. */
uint64_t text_history_count(void);
