/* posix_tsan.c - what the thread sanitizer has to be told of the engine.
 *
 * READ_ONCE and WRITE_ONCE are volatile accesses: one each, and meant. The compiler reports
 * them apart from others (--param tsan-distinguish-volatile), and here they become relaxed
 * atomic ones, so that a race with a plain access is still seen.
 */
#ifdef POSIX_TSAN

#include <stdint.h>

enum { RELAXED }; /* the sanitizer's number for it */

uint8_t __tsan_atomic8_load(const volatile uint8_t *p, int order);
uint16_t __tsan_atomic16_load(const volatile uint16_t *p, int order);
uint32_t __tsan_atomic32_load(const volatile uint32_t *p, int order);
uint64_t __tsan_atomic64_load(const volatile uint64_t *p, int order);
uint8_t __tsan_atomic8_fetch_add(volatile uint8_t *p, uint8_t v, int order);
uint16_t __tsan_atomic16_fetch_add(volatile uint16_t *p, uint16_t v, int order);
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t *p, uint32_t v, int order);
uint64_t __tsan_atomic64_fetch_add(volatile uint64_t *p, uint64_t v, int order);

/* Called in front of the access; adding nothing is a write that changes nothing. */
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

/* The one plain access that races, on purpose. A hit looks into its CPU's cache as cheaply as
 * it can, while another CPU clears the entry of a site that goes. It finds the entry or does
 * not: for the site that goes it no longer asks, since no CPU can run into its address, and
 * for any other either answer is right.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:cache_find\n";
}

#else

extern int posix_tsan_is_empty; /* a file must hold something */

#endif
