/* hex.h - hexadecimal digits. Pure. */
#pragma once

/* hex_digit - get the value of the digit @c, in upper or lower case. Context: any.
 * Return: 0..15; -1: @c is no digit.
 */
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
