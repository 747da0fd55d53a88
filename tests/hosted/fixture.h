/* fixture.h - running a fixture: a function that is given all registers and a memory, and
 * leaves results in both. Fixtures are the functions fx_* of fixtures.asm and fixtures.c.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIXTURE_MEM 1024   /* bytes */
#define FIXTURE_STACK 8192 /* bytes */

/* What goes in and what comes out. Known to fixture_call.asm. */
struct image {
    uint64_t regs[16]; /* by number; 4, the stack pointer, only goes in */
    uint64_t flags;
};

/* The outcome of a run: digests. Handlers that a jump brings use the program's stack below
 * its stack pointer. Those bytes stay as they were only in runs with traps alone, which
 * have a stack of their own.
 */
struct outcome {
    uint64_t all; /* but the stack */
    uint64_t stack;
};

static inline bool outcomes_differ(struct outcome a, struct outcome b, bool with_stack)
{
    return a.all != b.all || (with_stack && a.stack != b.stack);
}

/* One thread's place to run fixtures: always the same addresses, so that two runs of the
 * same input can be compared byte by byte.
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

/* The text of all fixtures, and one index for each byte of it. */
#define FIXTURES_TEXT_MAX 32768
uintptr_t fixtures_start(void);
size_t fixtures_size(void);

/* fixture_get - fixture @i, those left out that this processor cannot run.
 * Return: false behind the last.
 */
bool fixture_get(size_t i, struct fixture *out);
/* fixture_boundaries - where the instructions of all functions among the fixtures begin.
 * @out: room for FIXTURES_TEXT_MAX
 */
size_t fixture_boundaries(uintptr_t *out);
/* fixture_original - the byte at @addr as it was before any probe. */
uint8_t fixture_original(uintptr_t addr);

void bench_init(struct bench *b);
/* bench_fill - registers, flags, memory and stack for input number @seed. */
void bench_fill(struct bench *b, uint64_t seed);
/* bench_run - fill and run. Return: what came out. */
struct outcome bench_run(struct bench *b, const struct fixture *f, uint64_t seed);

/* fixture_trace - the same under single steps. @counts, by offset into the fixtures' text,
 * goes up by one for each instruction that is executed.
 */
struct outcome fixture_trace(struct bench *b, const struct fixture *f, uint64_t seed,
                             uint32_t *counts);
