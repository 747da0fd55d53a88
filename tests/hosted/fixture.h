/* fixture.h - runs fixtures. A fixture is a function that gets values in all registers
 * and in a piece of memory, and leaves results in both. Fixtures are the functions fx_*
 * of fixtures.asm and fixtures.c.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIXTURE_MEM 1024   /* bytes */
#define FIXTURE_STACK 8192 /* bytes */

/* The registers before and after a run. fixture_call.asm knows the layout. */
struct image {
    uint64_t regs[16]; /* by number; regs[4], the stack pointer, is only an input */
    uint64_t flags;
};

/* The outcome of a run, as digests. Handlers that a jump calls write to the program's
 * stack, below its stack pointer. Handlers of traps have a stack of their own. So the
 * digest of the stack can be compared only if no probe is a jump.
 */
struct outcome {
    uint64_t all; /* of everything but the stack */
    uint64_t stack;
};

static inline bool outcomes_differ(struct outcome a, struct outcome b, bool with_stack)
{
    return a.all != b.all || (with_stack && a.stack != b.stack);
}

/* The memory in which a thread runs fixtures. Its addresses do not change, so that two
 * runs with the same input can be compared byte by byte.
 */
struct bench {
    struct image image;
    uint8_t *mem, *stack;
};

struct fixture {
    const char *name;
    uintptr_t start;
    size_t size;
};

/* fixtures_start, fixtures_size - return the range of the text of all fixtures. Arrays
 * with an element for each byte of it have FIXTURES_TEXT_MAX elements.
 */
#define FIXTURES_TEXT_MAX 32768
uintptr_t fixtures_start(void);
size_t fixtures_size(void);

/* fixture_get - find fixture @i, of those that this processor can run.
 * Return: false: @i is behind the last one.
 */
bool fixture_get(size_t i, struct fixture *out);
/* fixture_boundaries - find the start of each instruction of all functions among the
 * fixtures.
 * @out: receives the addresses; has room for FIXTURES_TEXT_MAX
 * Return: the number of addresses.
 */
size_t fixture_boundaries(uintptr_t *out);
/* fixture_original - return the byte at @addr as it was before any probe was there. */
uint8_t fixture_original(uintptr_t addr);

void bench_init(struct bench *b);
/* bench_fill - set registers, flags, memory and stack to the input number @seed. */
void bench_fill(struct bench *b, uint64_t seed);
/* bench_run - run the fixture @f with the input number @seed. Return: the outcome. */
struct outcome bench_run(struct bench *b, const struct fixture *f, uint64_t seed);

/* fixture_trace - as bench_run(), with single steps.
 * @counts: by offset into the fixtures' text; the element of an instruction is increased
 *          by one for each execution
 */
struct outcome fixture_trace(struct bench *b, const struct fixture *f, uint64_t seed,
                             uint32_t *counts);

/* fixture_trap_is_lost - has the host lost the trap behind the instruction at @addr? Some
 * hypervisors do that behind cpuid, with or without a probe.
 */
bool fixture_trap_is_lost(uintptr_t addr);
