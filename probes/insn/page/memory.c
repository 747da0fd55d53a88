/* memory.c - the few functions of C's library that decode.c needs, for wasm32: libc/string.c
 * is for x86-64 alone. With -fno-builtin the compiler does not replace the loop in memcpy()
 * by a call of memcpy().
 */
#include <string.h>

void *memcpy(void *restrict dst, const void *restrict src, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)dst)[i] = ((const unsigned char *)src)[i];
    return dst;
}

void *memset(void *dst, int byte, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)dst)[i] = (unsigned char)byte;
    return dst;
}

size_t strnlen(const char *text, size_t max)
{
    size_t len = 0;

    while (len < max && text[len])
        len++;
    return len;
}

size_t strlen(const char *text)
{
    return strnlen(text, (size_t)-1);
}
