/* poke.c - text that changes under other CPUs, in three steps, each seen by all of them.
 *
 * The int3 guards the first byte while the bytes behind it change: behind the first
 * synchronisation no CPU executes the old instruction, so no CPU reads its tail; behind the
 * second no CPU has an old tail when the new first byte appears; behind the third no CPU has
 * the int3.
 */
#include "poke.h"

/* A CPU that traps may run either instruction. It must not stay: an NMI that retried would
 * never answer the synchronisation that the plan waits for.
 */
const struct poke_plan poke_one = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_TAIL, POKE_SYNC, POKE_FIRST, POKE_SYNC },
    .on_trap = POKE_OLD,
};

/* Behind the old first instruction a CPU comes to the second one, whose bytes change. So no
 * CPU may get there any more, by a trap neither, and those that are there have to leave.
 */
const struct poke_plan poke_two = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_DRAIN, POKE_TAIL, POKE_SYNC, POKE_FIRST,
               POKE_SYNC },
    .on_trap = POKE_NEW,
};

/* Here the new first instruction would lead to a second one that is not complete. The jump
 * leads away, so no CPU is in the middle.
 */
const struct poke_plan poke_back = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_TAIL, POKE_SYNC, POKE_FIRST, POKE_SYNC },
    .on_trap = POKE_OLD,
};
