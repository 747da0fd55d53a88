/* guard.h - makes buffers that border on pages without access: a CPU that reads or writes
 * beyond the buffer faults.
 *
 * Sanitizers do not see the accesses of inline assembly; the MMU does.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD_PAGE = 4096, GUARD_MAX = 16 * GUARD_PAGE };

/* guard_map - map GUARD_MAX readable and writable bytes between two pages without
 * access.
 */
static inline uint8_t *guard_map(void)
{
    uint8_t *map = mmap(NULL, GUARD_MAX + 2 * GUARD_PAGE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED ||
        mprotect(map + GUARD_PAGE, GUARD_MAX, PROT_READ | PROT_WRITE))
        abort();
    return map + GUARD_PAGE;
}

/* guard_tail - return the last @len bytes of @map. A read behind them faults. */
static inline void *guard_tail(uint8_t *map, size_t len)
{
    return map + GUARD_MAX - len;
}

/* guard_string - copy @s into @map, so that its NUL is the last byte of the map. */
static inline char *guard_string(uint8_t *map, const char *s)
{
    return memcpy(guard_tail(map, strlen(s) + 1), s, strlen(s) + 1);
}
