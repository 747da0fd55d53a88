/* hash.h - makes a number from a name. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* hash_name - FNV-1a of @len bytes. Context: any. */
static inline uint32_t hash_name(const char *name, size_t len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)name[i]) * 16777619u;
    return hash;
}
