/* sleepers.h - makes threads that sleep inside of one function, for tests of returns. */
#pragma once

#include <stdint.h>

#define SLEEPERS 1000 /* many */

/* Of the latest sleepers_start(): how many threads have entered sleep_inside(), and how
 * many have returned from it with the right value.
 */
struct sleepers {
    uint64_t inside, came_back;
};
extern struct sleepers sleepers;

/* sleep_inside - sleep until sleepers_end() wakes all sleepers. Return: 2 * @x. */
long sleep_inside(long x);

/* sleepers_start - make @count threads, and wait until all of them are in sleep_inside().
 * @tids: receives the number of each thread, or an error
 * Context: thread.  Return: how many threads could be made.
 * sleepers_end - wake the threads, and wait for their ends.
 */
unsigned sleepers_start(int *tids, unsigned count);
void sleepers_end(const int *tids, unsigned count);
