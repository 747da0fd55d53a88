/* posix_tsan.c - tells the thread sanitizer which races of the engine are intended.
 *
 * READ_ONCE and WRITE_ONCE are volatile accesses that may race with each other. The
 * compiler reports volatile accesses separately (--param tsan-distinguish-volatile). This
 * file turns them into relaxed atomic accesses, so that TSan still reports a race with a
 * plain access.
 */
#ifdef POSIX_TSAN

#include <stdint.h>

enum { RELAXED }; /* the sanitizer's number of this memory order */

uint8_t __tsan_atomic8_load(const volatile uint8_t *p, int order);
uint16_t __tsan_atomic16_load(const volatile uint16_t *p, int order);
uint32_t __tsan_atomic32_load(const volatile uint32_t *p, int order);
uint64_t __tsan_atomic64_load(const volatile uint64_t *p, int order);
uint8_t __tsan_atomic8_fetch_add(volatile uint8_t *p, uint8_t v, int order);
uint16_t __tsan_atomic16_fetch_add(volatile uint16_t *p, uint16_t v, int order);
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t *p, uint32_t v, int order);
uint64_t __tsan_atomic64_fetch_add(volatile uint64_t *p, uint64_t v, int order);

/* TSan calls these functions before the access. For a write they add 0, which changes
 * nothing.
 */
#define VOLATILE_ACCESS(bytes, bits)                                                     \
    void __tsan_volatile_read##bytes(void *p);                                           \
    void __tsan_volatile_read##bytes(void *p)                                            \
    {                                                                                    \
        __tsan_atomic##bits##_load(p, RELAXED);                                          \
    }                                                                                    \
    void __tsan_volatile_write##bytes(void *p);                                          \
    void __tsan_volatile_write##bytes(void *p)                                           \
    {                                                                                    \
        __tsan_atomic##bits##_fetch_add(p, 0, RELAXED);                                  \
    }

VOLATILE_ACCESS(1, 8)
VOLATILE_ACCESS(2, 16)
VOLATILE_ACCESS(4, 32)
VOLATILE_ACCESS(8, 64)

/* One plain access races on purpose: a hit looks into the cache of its CPU without atomic
 * accesses, while another CPU may clear the entry of a site that is being freed. No hit
 * looks for that site any more, because no CPU can hit its address. For any other site
 * both results are right, the entry and no entry.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:cache_find\n";
}

#else

extern int posix_tsan_is_empty; /* a file must hold something */

#endif
