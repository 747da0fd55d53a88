/* poke.h - plans for a change of text that others execute meanwhile. You write poke.c. */
#pragma once

/* What the thread that changes the text does next. "New" is the text as it will be. */
enum poke_step {
    POKE_DONE,  /* the plan is over; the rest of a table is this */
    POKE_GUARD, /* store an int3 over the first byte */
    POKE_TAIL,  /* store the new bytes behind the first one, one by one */
    POKE_FIRST, /* store the new first byte */
    POKE_ALL,   /* store all new bytes, from the first one on, one by one */
    POKE_SYNC,  /* ask all CPUs to serialise, and wait until they have done so */
    POKE_DRAIN, /* wait until each CPU has been seen at neither of the instructions that
                 * change, nor in a trap or an NMI */
};

/* What a CPU does that has executed the int3 of a plan that is not yet over. */
enum poke_trap {
    POKE_RETRY, /* execute again what is in the text now */
    POKE_OLD,   /* execute a copy of the old first instruction, and go on behind it */
    POKE_NEW,   /* execute a copy of the new first instruction, and go on behind it */
    POKE_WAIT, /* wait in the trap, with interrupts off, until the plan is over; then retry */
};

#define POKE_STEPS_MAX 24

struct poke_plan {
    enum poke_step steps[POKE_STEPS_MAX];
    enum poke_trap on_trap;
};

/* poke_one - one instruction becomes another one of the same length.
 * poke_two - two instructions become one, a jump, that is as long as both. No other code
 *            jumps to the second one.
 * poke_back - that jump becomes the two instructions again.
 *
 * Other CPUs execute the text all the time, and an NMI may come to any of them at any moment
 * and execute it as well. An interrupt is how POKE_SYNC asks: a CPU in a trap or in an NMI
 * answers when it has left that. A thread may be preempted between the two instructions for
 * as long as you can imagine.
 */
extern const struct poke_plan poke_one, poke_two, poke_back;
