/* bits.h - arithmetic with bits, alignments and addresses. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BIT(n) (UINT64_C(1) << (n))
#define KiB UINT64_C(1024)
#define MiB (KiB * 1024)
#define GiB (MiB * 1024)

static inline uint64_t align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) & ~(align - 1);
}

static inline uint64_t align_down(uint64_t x, uint64_t align)
{
    return x & ~(align - 1);
}

static inline bool is_aligned(uint64_t x, uint64_t align)
{
    return (x & (align - 1)) == 0;
}

/* leads_into - does @object lie in [@start, @end), or does one of its words point there? An
 * object in the heap may have functions of a module.
 * @object: a struct or a table of structs; @size: its bytes, a multiple of 8
 */
static inline bool leads_into(const void *object, size_t size, uintptr_t start,
                              uintptr_t end)
{
    const uintptr_t *word = object, *behind = word + size / sizeof(*word);
    uintptr_t addr = (uintptr_t)object;

    for (; addr - start >= end - start; addr = *word++)
        if (word == behind)
            return false;
    return true;
}

/* bit_lowest - index of the lowest set bit. @x: not 0. */
static inline unsigned bit_lowest(uint64_t x)
{
    return (unsigned)__builtin_ctzll(x);
}

/* bit_count - count the set bits: add them up in pairs, in fours, in bytes, then in all.
 * Written out, since the compiler's built-in would call the compiler's library.
 */
static inline unsigned bit_count(uint64_t x)
{
    x -= (x >> 1) & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)((x * UINT64_C(0x0101010101010101)) >> 56);
}
