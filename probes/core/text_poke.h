/* text_poke.h - change instructions that other CPUs are executing.
 *
 * docs/text-poke.md argues the protocol. Meanwhile a CPU executes the old
 * instruction, the new one, or an int3, which is dealt with: every patched address has a
 * site in the registry, whose hit runs the old instruction.
 */
#pragma once

#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One change. An instruction may extend over more bytes than are its own: a jump whose
 * displacement is made of bytes of the instructions behind it.
 */
struct text_poke {
    uintptr_t addr;
    uint8_t len; /* bytes that change, 1..15, all of the instruction or instructions */
    uint8_t old_span; /* bytes the instruction there extends over now; 0: len */
    uint8_t new_span; /* the same of the new one; 0: len */
    uint8_t bytes[INSN_MAX_LEN]; /* the new ones */
    uint16_t guard_level; /* filled in by text_poke_batch(): the int3 is written in it, */
    uint16_t first_level; /* the same: and the new first byte in this */
};

#define TEXT_POKE_UNGUARDED UINT16_MAX /* a guard_level: it needs no int3 */

/* text_poke_batch - make all of @pokes. On return every CPU executes the new text.
 * @pokes:  ascending, not overlapping; each begins with an instruction now and afterwards,
 *          and has a site in the registry. Where an instruction extends over bytes of
 *          another poke, before or afterwards, it is in the batch as well.
 *          Where one poke replaces several instructions, its int3 is in place already, and
 *          no thread can be, or come back, behind the first one: plat_quiesce().
 * @count:  any number; 0 is nothing to do
 *
 * Any number of pokes that do not depend on each other takes three synchronisations, and
 * one where a single byte of each changes. The text is written page by page, the highest
 * first.
 *
 * Context: thread, interrupts on.  Locks: PLAT_TEXT held.
 * Source:  SDM vol. 3A, "Handling Self- and Cross-Modifying Code", for what a CPU must do
 *          before it executes changed code; int3 first is practice, of Linux among others.
 */
void text_poke_batch(struct text_poke *pokes, size_t count);

/* The steps of a batch: each may take several levels, and ends with a synchronisation. */
enum text_poke_step {
    TEXT_POKE_GUARD, /* int3 into first bytes */
    TEXT_POKE_TAIL,  /* all bytes behind the first */
    TEXT_POKE_FIRST, /* the new first bytes */
    TEXT_POKE_WHOLE, /* all bytes at once: by a store of xmc, never in a batch */
};
