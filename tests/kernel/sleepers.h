/* sleepers.h - threads asleep inside one function, for tests of returns. */
#pragma once

#include <stdint.h>

#define SLEEPERS 1000 /* many */

/* Of the latest sleepers_start(): the threads that have come to sleep_inside(), and those
 * of them that got the right answer.
 */
struct sleepers {
    uint64_t inside, came_back;
};
extern struct sleepers sleepers;

/* sleep_inside - Return: 2 * @x, when the sleepers are woken. */
long sleep_inside(long x);

/* sleepers_start - make @count threads, and wait until all sleep inside.
 * @tids: receives each one's, or an error
 * Context: thread.  Return: how many there are.
 * sleepers_end - wake them, and wait for their ends.
 */
unsigned sleepers_start(int *tids, unsigned count);
void sleepers_end(const int *tids, unsigned count);
