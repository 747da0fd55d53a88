/* fuzz_memory.h - the memory that a fuzzed program may read, at 0x10000. */
#pragma once

#include "kernel/base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Two pages with letters, numbers, and pointers into these pages. */
static uint8_t memory[8192];

static int memory_read(void *dst, uintptr_t addr, size_t len)
{
    if (addr < 0x10000 || addr - 0x10000 > sizeof(memory) ||
        len > sizeof(memory) - (addr - 0x10000))
        return -EFAULT;
    memcpy(dst, memory + (addr - 0x10000), len);
    return 0;
}

static void fill_memory(uint64_t seed)
{
    for (size_t i = 0; i < sizeof(memory); i += 8) {
        uint64_t word;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        word = seed >> 62 ? 0x10000 + (seed >> 40) % 9000 : seed;
        memcpy(memory + i, &word, sizeof(word));
    }
}
