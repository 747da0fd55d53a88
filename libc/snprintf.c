/* snprintf.c - the other forms of vsnprintf: with arguments instead of a list, and with the
 * number of stored characters as the result instead of the length of the whole text. Owns
 * nothing, runs anywhere.
 */
#include "libc/include/stdio.h"

int snprintf(char *buf, size_t size, const char *fmt, ...)
{
    va_list list;
    int len;

    va_start(list, fmt);
    len = vsnprintf(buf, size, fmt, list);
    va_end(list);
    return len;
}

int vscnprintf(char *buf, size_t size, const char *fmt, va_list list)
{
    int len = vsnprintf(buf, size, fmt, list);

    if (size == 0)
        return 0;
    if (len < 0 || (size_t)len >= size)
        return (int)(size - 1);
    return len;
}

int scnprintf(char *buf, size_t size, const char *fmt, ...)
{
    va_list list;
    int len;

    va_start(list, fmt);
    len = vscnprintf(buf, size, fmt, list);
    va_end(list);
    return len;
}
