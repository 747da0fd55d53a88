/* ways.h - all ways of a hit, for tests that want the same of each: a trap whose instruction
 * is boosted, emulated or stepped; a jump by each kind of detour; a return. In each of them a
 * handler runs, and does what the test wants.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct way;

/* way_get - way @i, NULL behind the last. way_name - in words. Context: any. */
const struct way *way_get(size_t i);
const char *way_name(const struct way *way);
/* way_is_trap - do its handlers run behind a trap, with interrupts off? */
bool way_is_trap(const struct way *way);
/* way_is_return - is its handler a return handler? */
bool way_is_return(const struct way *way);

/* way_begin - register the probes of @way, whose handler calls @act.
 * Return: false, after a failed fact, when a hit would not come by @way.
 * way_hit - call the probed function once. Return: has it computed what it should?
 * way_acts - how often @act was called since way_begin().
 * way_is_off - has the engine switched the probe with the handler off?
 * way_end - unregister them.
 * Context: thread; for way_hit() any.
 */
bool way_begin(const struct way *way, void (*act)(void));
bool way_hit(void);
uint64_t way_acts(void);
bool way_is_off(void);
void way_end(void);
/* way_hits - hits of the probe with the handler since way_begin(). Context: any. */
uint64_t way_hits(void);
/* way_second_is_right - has the handler of the probe behind it, if there is one, found the
 * CPU as it should: with interrupts off behind a trap, else as the program has them?
 */
bool way_second_is_right(void);
/* way_count_is_right - do hits and misses, and for returns all that became of the calls, add
 * up to the calls of way_hit() since way_begin()? Context: thread.
 */
bool way_count_is_right(void);
