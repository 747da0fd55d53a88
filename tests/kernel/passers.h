/* passers.h - while a kernel test changes something, threads on all CPUs come by: each calls
 * one function all the time, and NMIs call it, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Calls of the latest passers_start(), complete behind passers_end(). */
struct passers {
    uint64_t calls;   /* by threads */
    uint64_t in_nmis; /* apart from these */
};
extern struct passers passers;

/* passers_start - make the threads, which call @fn with any number until passers_end(). NMIs
 * come to one CPU after the other, in the middle of whatever it does.
 * passers_end - wait for the ends of the threads.
 * passers_add_to - does a CPU add to *@counter from now on? Waits until a CPU has; gives up
 * after 10,000 turns of other threads.
 * Context: thread.
 */
void passers_start(uint64_t (*fn)(uint64_t n));
void passers_end(void);
bool passers_add_to(const volatile uint64_t *counter);
