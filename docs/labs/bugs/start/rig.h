/* rig.h - lets the tests of lab 10 check facts, and make hits and other writers happen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* run_tests - run your tests. You write this function in tests.c. It is called once. */
void run_tests(void);

/* check - check a fact; @what says it in words. If it does not hold, the tests go on. */
void check(bool holds, const char *what);

/* Two functions exist: alpha at 0x1000, and beta at 0xffffffff81002000. No probe may be
 * at 0x1001, which is the middle of an instruction, and no probe may be below 0x1000.
 */

/* rig_hit - let a CPU execute the instruction at @addr: a hit from beginning to end.
 * rig_hit_begins - let another CPU execute it: its hit begins, but does not end
 * yet. The handlers are called later, when the tracer calls world_wait() or a
 * test calls rig_hit_ends(). Behind a world_wait() the CPU executes it once more.
 */
void rig_hit(uint64_t addr);
void rig_hit_begins(uint64_t addr);
void rig_hit_ends(void);

/* rig_other_writer - let another thread hold the mutex, so that the next
 * world_lock() waits for it. The other thread calls @fn while world_lock() waits.
 * @fn may call the tracer.
 */
void rig_other_writer(void (*fn)(void));

/* rig_allocated - return how many blocks of memory are allocated, and not freed. */
unsigned rig_allocated(void);

/* The rig itself checks that freed memory is not used, that no byte in front of memory
 * or behind it is written, that the mutex is not taken twice, and that it is taken when
 * it is left.
 */
