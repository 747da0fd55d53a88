/* rig.h - for the tests of lab 10: what happens in the world. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* run_tests - you write it, in tests.c. Is called once. */
void run_tests(void);

/* check - a fact that has to hold, in words. Tests go on behind a fact that does not. */
void check(bool holds, const char *what);

/* Functions that exist: alpha is at 0x1000, beta at 0xffffffff81002000. No probe may be at
 * 0x1001, the middle of an instruction, and none below 0x1000.
 */

/* rig_hit - a CPU executes what is at @addr: a hit, from its beginning to its end.
 * rig_hit_begins - another CPU does, and its hit has only begun. Handlers are called when
 * the tracer calls world_wait(), or with rig_hit_ends().
 */
void rig_hit(uint64_t addr);
void rig_hit_begins(uint64_t addr);
void rig_hit_ends(void);

/* rig_other_writer - another thread has the mutex: the next world_lock() waits for it. What
 * it does meanwhile is @fn, which may call the tracer.
 */
void rig_other_writer(void (*fn)(void));

/* The rig itself checks that memory is not used when it has been freed, that no byte in front
 * of it or behind it is written, and that the mutex is not taken twice or left.
 */
