/* liveness.h - which status flags the program may still read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct insn;

/* liveness_flags - the status flags (FLAGS_*) whose value right before @insn may be read, by
 * it or by what comes behind it. What cannot be told counts as read.
 *
 * Looks at the original bytes of the function around it, a limited number of instructions
 * far. In a compiler's function no code reads flags across a call or a return.
 *
 * Context: thread.  Locks: PLAT_PROBES held.
 */
uint32_t liveness_flags(const struct insn *insn);
