/* poke.h - plans to change text while other CPUs execute it. You write poke.c. */
#pragma once

/* A step of the thread that changes the text. "New" bytes are those after the change. */
enum poke_step {
    POKE_DONE,  /* the plan is over; the entries that you do not write have this value */
    POKE_GUARD, /* store an int3 over the first byte */
    POKE_TAIL,  /* store the new bytes behind the first one, one by one */
    POKE_FIRST, /* store the new first byte */
    POKE_ALL,   /* store all new bytes, from the first one on, one by one */
    POKE_SYNC,  /* ask all CPUs to serialise, and wait until they have done so */
    POKE_DRAIN, /* wait until each CPU has been seen outside of the instructions that
                 * change, and outside of traps and NMIs */
};

/* What a CPU does after it has executed the int3 of a plan that is not over yet. */
enum poke_trap {
    POKE_RETRY, /* execute the bytes that are in the text now */
    POKE_OLD,   /* execute a copy of the old first instruction, and go on behind it */
    POKE_NEW,   /* execute a copy of the new first instruction, and go on behind it */
    POKE_WAIT, /* wait in the trap, with interrupts off, until the plan is over; then retry */
};

/* The faults that a plan has if a step is left out. */
enum poke_why {
    POKE_UNSAID,
    POKE_MIXTURE, /* a CPU may execute a mixture */
    POKE_STALE,   /* the plan is over, and a CPU may execute something else than the new
                   * text */
    POKE_ENDLESS, /* the plan may never end */
};

#define POKE_STEPS_MAX 24

struct poke_plan {
    enum poke_step steps[POKE_STEPS_MAX];
    enum poke_trap on_trap;
    enum poke_why why[POKE_STEPS_MAX]; /* why[i] is of steps[i]; only poke_two needs it */
};

/* poke_one - change one instruction into another one of the same length.
 * poke_two - change two instructions into a jump that is as long as both. No other code
 *            jumps to the second instruction.
 * poke_back - change this jump into the two instructions again.
 *
 * Other CPUs execute the text all the time. An NMI may come to any CPU at any moment, and
 * may execute the text, too. POKE_SYNC sends an interrupt to each CPU: a CPU in a trap or
 * in an NMI answers when it has left the trap or the NMI. A thread may be preempted between
 * the two instructions: the scheduler lets another thread run, for any length of time.
 */
extern const struct poke_plan poke_one, poke_two, poke_back;
