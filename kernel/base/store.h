/* store.h - stores that another CPU sees whole. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* store_bytes - store @len bytes. 1, 2, 4 or 8 bytes at an address that is a multiple of
 * their number are stored by a single instruction.
 * @len: at least 1
 * Context: any.
 */
static inline void store_bytes(void *to, const void *bytes, size_t len)
{
    uint64_t word = 0;

    if (len > sizeof(word) || len & (len - 1) || (uintptr_t)to % len) {
        __builtin_memcpy(to, bytes, len);
        return;
    }
    __builtin_memcpy(&word, bytes, len);
    switch (len) {
    case 1:
        *(volatile uint8_t *)to = (uint8_t)word;
        break;
    case 2:
        *(volatile uint16_t *)to = (uint16_t)word;
        break;
    case 4:
        *(volatile uint32_t *)to = (uint32_t)word;
        break;
    default:
        *(volatile uint64_t *)to = word;
    }
}
