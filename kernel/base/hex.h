/* hex.h - hexadecimal digits. Pure. */
#pragma once

/* hex_digit - 0..15; -1: @c is no digit. Both cases are taken. Context: any. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}
