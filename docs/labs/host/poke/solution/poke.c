/* poke.c - changes text in three steps. After each step all CPUs synchronise.
 *
 * The int3 guards the first byte while the bytes behind it change. After the first
 * synchronisation no CPU executes the old instruction, so no CPU reads its tail. After
 * the second no CPU has fetched an old tail, and the new first byte may appear. After the
 * third no CPU has the int3 any more.
 */
#include "poke.h"

/* A CPU that traps may run either instruction. But it must not stay: if an NMI retried,
 * its CPU would never answer the synchronisation, and the plan would wait forever.
 */
const struct poke_plan poke_one = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_TAIL, POKE_SYNC, POKE_FIRST, POKE_SYNC },
    .on_trap = POKE_OLD,
};

/* After the old first instruction a CPU comes to the second one, and its bytes
 * change. So no CPU may get there any more, also not from a trap, and CPUs that are
 * there have to leave.
 */
const struct poke_plan poke_two = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_DRAIN, POKE_TAIL, POKE_SYNC, POKE_FIRST,
               POKE_SYNC },
    .on_trap = POKE_NEW,
    .why = { POKE_MIXTURE, POKE_MIXTURE, POKE_MIXTURE, POKE_MIXTURE, POKE_MIXTURE,
             POKE_STALE, POKE_STALE },
};

/* Here a copy of the new first instruction would lead to a second one that is not
 * complete, so a CPU that traps runs the old one: the jump. No CPU can be in the middle
 * of a jump.
 */
const struct poke_plan poke_back = {
    .steps = { POKE_GUARD, POKE_SYNC, POKE_TAIL, POKE_SYNC, POKE_FIRST, POKE_SYNC },
    .on_trap = POKE_OLD,
};
