/* extra.c - texts that are compared with words, and a comparison for qsort(). Owns nothing,
 * runs anywhere.
 */
#include "libc/include/extra.h"
#include "libc/include/ctype.h"
#include "libc/include/string.h"

bool str_begins(const char *s, const char *text, size_t len)
{
    size_t want = strlen(s);

    return len >= want && !memcmp(text, s, want);
}

bool str_is(const char *s, const char *text, size_t len)
{
    return strlen(s) == len && !memcmp(text, s, len);
}

char *skip_blanks(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return (char *)(uintptr_t)p;
}

size_t cut_blanks(const char *text, size_t len)
{
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return len;
}

bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

    return x < y ? -1 : x > y;
}
