/* passers.h - threads that execute the code which a kernel test changes meanwhile: on
 * each CPU a thread calls one function all the time, and an NMI handler calls it, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The calls since the latest passers_start(); complete after passers_end() has returned.
 */
struct passers {
    uint64_t calls;   /* by threads, without those in NMIs */
    uint64_t in_nmis; /* by the NMI handler */
};
extern struct passers passers;

/* passers_start - make the threads, which call @fn with any numbers until passers_end().
 * One CPU after the other gets an NMI, in the middle of whatever it does.
 * passers_end - stop the threads, and wait for their ends.
 * passers_add_to - wait until a CPU has changed *@counter. Return: false if no CPU has
 * done so while this thread gave its turn away 10,000 times.
 * Context: thread.
 */
void passers_start(uint64_t (*fn)(uint64_t n));
void passers_end(void);
bool passers_add_to(const volatile uint64_t *counter);
