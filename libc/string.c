/* string.c - bytes and strings. Owns nothing, runs anywhere.
 *
 * Most functions are loops over bytes. memcpy() and memset() use the string instructions of
 * the CPU, because callers use them on whole pages, and memcmp() compares words. A compiler
 * may replace such a loop by a call of a library function, and so a function could call
 * itself. The pragma prevents that in gcc, -ffreestanding in clang.
 */
#include "libc/include/string.h"

#include "kernel/base/compiler.h"

#include <stdbool.h>

#ifndef __clang__
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

static inline void rep_movsq(uint8_t **dst, const uint8_t **src, size_t count)
{
    __asm__ volatile("rep movsq" : "+D"(*dst), "+S"(*src), "+c"(count) : : "memory");
}

static inline void rep_movsb(uint8_t *dst, const uint8_t *src, size_t count)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(count) : : "memory");
}

static inline void rep_stosq(uint8_t **dst, uint64_t word, size_t count)
{
    __asm__ volatile("rep stosq" : "+D"(*dst), "+c"(count) : "a"(word) : "memory");
}

static inline void rep_stosb(uint8_t *dst, uint8_t byte, size_t count)
{
    __asm__ volatile("rep stosb" : "+D"(dst), "+c"(count) : "a"(byte) : "memory");
}

void *memcpy(void *restrict dst, const void *restrict src, size_t len)
{
    uint8_t *d = dst;
    const uint8_t *s = src;

    rep_movsq(&d, &s, len / 8);
    rep_movsb(d, s, len % 8);
    return dst;
}

void *memmove(void *dst, const void *src, size_t len)
{
    uint8_t *d = dst;
    const uint8_t *s = src;

    /* memcpy() copies upwards. That is right if @dst begins below @src, where the difference
     * wraps around and is large, or if the two do not overlap: then each byte is read before
     * it is overwritten.
     */
    if ((uintptr_t)dst - (uintptr_t)src >= len)
        return memcpy(dst, src, len);
    while (len-- > 0)
        d[len] = s[len];
    return dst;
}

void *memset(void *dst, int byte, size_t len)
{
    uint8_t *d = dst;

    rep_stosq(&d, (uint8_t)byte * UINT64_C(0x0101010101010101), len / 8);
    rep_stosb(d, (uint8_t)byte, len % 8);
    return dst;
}

static uint64_t word_at(const uint8_t *p)
{
    struct {
        uint64_t word;
    } PACKED const *u = (const void *)p;

    return u->word;
}

int memcmp(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a;
    const uint8_t *y = b;
    size_t i = 0;

    while (len - i >= sizeof(uint64_t) && word_at(x + i) == word_at(y + i))
        i += sizeof(uint64_t);
    for (; i < len; i++)
        if (x[i] != y[i])
            return x[i] - y[i];
    return 0;
}

void *memchr(const void *mem, int byte, size_t len)
{
    const uint8_t *m = mem;

    for (size_t i = 0; i < len; i++)
        if (m[i] == (uint8_t)byte)
            return (void *)(uintptr_t)&m[i];
    return NULL;
}

size_t strlen(const char *s)
{
    size_t len = 0;

    while (s[len])
        len++;
    return len;
}

size_t strnlen(const char *s, size_t max_len)
{
    size_t len = 0;

    while (len < max_len && s[len])
        len++;
    return len;
}

int strcmp(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}

int strncmp(const char *a, const char *b, size_t max_len)
{
    for (size_t i = 0; i < max_len; i++)
        if (!a[i] || a[i] != b[i])
            return (uint8_t)a[i] - (uint8_t)b[i];
    return 0;
}

char *strcpy(char *restrict dst, const char *restrict src)
{
    return memcpy(dst, src, strlen(src) + 1);
}

size_t strlcpy(char *restrict dst, const char *restrict src, size_t size)
{
    size_t len = strlen(src);
    size_t stored;

    if (size == 0)
        return len;
    stored = len < size ? len : size - 1;
    memcpy(dst, src, stored);
    dst[stored] = '\0';
    return len;
}

size_t strlcat(char *restrict dst, const char *restrict src, size_t size)
{
    size_t len = strnlen(dst, size);

    return len + strlcpy(dst + len, src, size - len);
}

char *strchr(const char *s, int c)
{
    return memchr(s, c, strlen(s) + 1);
}

char *strrchr(const char *s, int c)
{
    size_t i = strlen(s) + 1; /* @c may be the NUL */

    while (i-- > 0)
        if (s[i] == (char)c)
            return (char *)(uintptr_t)&s[i];
    return NULL;
}

char *strstr(const char *s, const char *wanted)
{
    size_t len = strlen(wanted);

    for (;; s++) {
        if (strncmp(s, wanted, len) == 0)
            return (char *)(uintptr_t)s;
        if (!*s)
            return NULL;
    }
}

/* Return: how many characters at the beginning of @s are in @set, or, if @in is false, are
 * not in it.
 */
static size_t run_len(const char *s, const char *set, bool in)
{
    uint64_t has[256 / 64] = { 0 };
    size_t len = 0;

    for (; *set; set++)
        has[(uint8_t)*set / 64] |= UINT64_C(1) << (uint8_t)*set % 64;
    while (s[len] && (has[(uint8_t)s[len] / 64] >> (uint8_t)s[len] % 64 & 1) == in)
        len++;
    return len;
}

size_t strspn(const char *s, const char *accept)
{
    return run_len(s, accept, true);
}

size_t strcspn(const char *s, const char *reject)
{
    return run_len(s, reject, false);
}

char *strpbrk(const char *s, const char *accept)
{
    s += strcspn(s, accept);
    return *s ? (char *)(uintptr_t)s : NULL;
}

char *strsep(char **rest, const char *delims)
{
    char *field = *rest;

    if (!field)
        return NULL;
    *rest = strpbrk(field, delims);
    if (*rest)
        *(*rest)++ = '\0';
    return field;
}
