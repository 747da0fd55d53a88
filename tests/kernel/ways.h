/* ways.h - all ways in which a hit can come, for tests that expect the same of each: a
 * trap whose instruction is boosted, emulated or stepped; a jump by each kind of detour;
 * a return. In each way a handler runs, which calls a function of the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct way;

/* way_get - return way @i; NULL: there are not that many.
 * way_name - return the name of @way, in words.
 * Context: any.
 */
const struct way *way_get(size_t i);
const char *way_name(const struct way *way);

/* way_begin - register the probes of @way; the handler of the first calls @act.
 * Return: false, after a failure was reported, when a hit would not come by @way.
 * way_hit - call the probed function once. Return: has it returned the right value?
 * way_acts - return how often @act was called since way_begin().
 * way_is_off - has the engine switched off the probe whose handler calls @act?
 * way_end - unregister the probes.
 * Context: thread; for way_hit() any.
 */
bool way_begin(const struct way *way, void (*act)(void));
bool way_hit(void);
uint64_t way_acts(void);
bool way_is_off(void);
void way_end(void);
/* way_hits - return the hits, since way_begin(), of the probe whose handler calls @act.
 * Context: any.
 */
uint64_t way_hits(void);
/* way_second_is_right - has the handler of the second probe, if the way has one, always
 * found DF clear, and interrupts off in a trap, else as the program had them?
 */
bool way_second_is_right(void);
/* way_count_is_right - do the counters of the probes agree with the number of calls of
 * way_hit() since way_begin()? With a second probe, its hits and misses are all calls.
 * For returns, each hit is counted once as returned, missed or dropped. Otherwise hits
 * and misses are at most all calls, since a probe that was switched off is not hit.
 * Context: thread.
 */
bool way_count_is_right(void);
