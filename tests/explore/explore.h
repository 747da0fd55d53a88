/* explore.h - runs a scenario of several actors under a scheduler, in every order of their
 * steps that needs at most a few preemptions.
 *
 * An actor is a thread, an interrupt or an NMI of a CPU: a function on a stack of its own.
 * One actor runs at a time. Before each access to memory that actors share, and in each
 * function that waits, the scheduler chooses which actor goes on. README.md tells how it
 * sees the accesses, and how it knows that it has seen a state before.
 *
 * A scenario is a program: tests/explore/explore_NAME.c defines `scenario`. Its static
 * variables, and those of the files that it tests, are as at the start of the program when
 * a schedule begins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPLORE_ACTORS 6 /* at most */

enum explore_level { EXPLORE_THREAD, EXPLORE_IRQ, EXPLORE_NMI };

struct actor {
    const char *name;
    void (*run)(void);
    unsigned cpu;
    enum explore_level level; /* a higher level interrupts a lower one of its CPU */
    bool (*comes)(void); /* an interrupt comes each time that this holds; NULL: once */
};

struct scenario {
    void (*once)(void);  /* before all schedules: what it makes stays as it is */
    void (*start)(void); /* before the actors; NULL: nothing to do */
    void (*end)(void);   /* after them; checks what is left */
    struct actor actors[EXPLORE_ACTORS + 1];
    const char *outcomes[8]; /* each must be seen in some schedule: explore_seen() */
    unsigned preemptions;    /* in the usual run; 0: two */
    bool is_cut; /* there are too many orders with so many: it runs the first ones */
};

extern const struct scenario scenario;

/* explore_check - the schedule fails unless @holds; explore_fail - it fails.
 * Context: an actor, start() or end().
 */
void explore_check(bool holds, const char *what);
void explore_fail(const char *what) __attribute__((noreturn));

/* explore_seen - count that @outcome, one of scenario.outcomes, was seen. */
void explore_seen(const char *outcome);

/* explore_point - let the scheduler choose; for a function that stands for one which other
 * code takes part in, such as a clock or an instruction.
 */
void explore_point(void);

/* explore_together - what this actor does until explore_together(false) is one step, with no
 * choice in it. For what the processor does as a whole.
 */
void explore_together(bool on);

/* explore_wait - wait until @holds(@arg), which only reads. */
void explore_wait(bool (*holds)(const void *arg), const void *arg);

/* explore_pause - in a loop that waits. If this turn of the loop has left memory as it was,
 * and has read the same as the turn before, the actor goes on when something that it has
 * read has changed.
 */
void explore_pause(void);

/* explore_choose - return each of 0..@n - 1 in some schedule: what no actor decides, such
 * as which of two contents of a byte an instruction fetch sees.
 */
unsigned explore_choose(unsigned n);

/* explore_cpu - return the CPU of the actor that runs; 0 outside of actors. */
unsigned explore_cpu(void);
enum explore_level explore_level(void);

/* explore_irqs - keep interrupts of this actor's CPU out, or let them in again. */
void explore_irqs(bool on);

/* explore_alloc, explore_free - zeroed memory that is not used again in this schedule: an
 * access after explore_free() fails. All of it is gone when the schedule ends.
 * explore_blocks - return how many blocks are not freed.
 */
void *explore_alloc(size_t len);
void explore_free(void *p);
size_t explore_blocks(void);
