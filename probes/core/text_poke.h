/* text_poke.h - changes instructions that other CPUs are executing.
 *
 * docs/text-poke.md explains why the steps are safe. During a change, a CPU executes the
 * old instruction, the new one, or an int3. Each changed address has a site in the
 * registry, so a CPU that traps on the int3 makes a hit of this site, and the hit runs
 * the old instruction.
 */
#pragma once

#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One change. An instruction may extend over more bytes than the change writes: the
 * displacement of a pun is made of bytes of the instructions behind it.
 */
struct text_poke {
    uintptr_t addr;
    uint8_t len; /* bytes to write, 1..15, from the first byte of an instruction on */
    uint8_t old_span; /* bytes that the present instruction extends over; 0: len */
    uint8_t new_span; /* bytes that the new instruction extends over; 0: len */
    uint8_t bytes[INSN_MAX_LEN]; /* the new bytes */
    bool whole;                  /* by the engine: one store makes the whole change */
    uint16_t guard_level; /* by text_poke_batch(): the level that writes the int3 */
    uint16_t first_level; /* by text_poke_batch(): the level that writes the first byte */
};

#define TEXT_POKE_UNGUARDED UINT16_MAX /* as guard_level: this poke needs no int3 */

/* text_poke_batch - make all changes of @pokes. On return every CPU executes the new
 * text.
 * @pokes:  in ascending order, not overlapping. Each has a site in the registry, and an
 *          instruction begins at its address before and after the change. If an
 *          instruction extends over bytes of another poke, before or after the change,
 *          then this instruction has a poke in the batch, too. If one poke replaces
 *          several instructions, its int3 is already in the text, and no thread is behind
 *          the first of them, or comes back there: plat_quiesce().
 * @count:  any number; 0: nothing is done
 *
 * Pokes that do not depend on each other share three synchronisations, however many they
 * are; if each changes a single byte, they share one. The text is written page by page,
 * beginning with the highest page.
 *
 * Context: thread, interrupts on; held.  Locks: PLAT_TEXT held.
 * Source:  SDM vol. 3A, "Handling Self- and Cross-Modifying Code", for what a CPU must do
 *          before it executes changed code; int3 first is practice, of Linux among others.
 */
void text_poke_batch(struct text_poke *pokes, size_t count);

/* The steps of a batch. A step may have several levels, and each level ends with a
 * synchronisation. An engine may also make pokes whole: they have no other step.
 */
enum text_poke_step {
    TEXT_POKE_GUARD, /* int3 over the first bytes */
    TEXT_POKE_TAIL,  /* all bytes behind the first */
    TEXT_POKE_FIRST, /* the new first bytes */
    TEXT_POKE_WHOLE, /* all bytes at once, by one store: text_whole.h */
    TEXT_POKE_STEPS
};
