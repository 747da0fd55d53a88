/* ctype.h - the classes of characters, as C11 "Character handling <ctype.h>" defines them
 * for ASCII, without locales. Characters from 128 on, and EOF, are in no class.
 *
 * @c: any int. A negative char, which other libraries do not allow, is in no class
 *
 * Context: any.
 * Return:  not 0: @c is in the class. toupper and tolower return @c if it has no other case.
 */
#pragma once

static inline int isdigit(int c)
{
    return c >= '0' && c <= '9';
}

static inline int islower(int c)
{
    return c >= 'a' && c <= 'z';
}

static inline int isupper(int c)
{
    return c >= 'A' && c <= 'Z';
}

static inline int isalpha(int c)
{
    return islower(c) || isupper(c);
}

static inline int isalnum(int c)
{
    return isalpha(c) || isdigit(c);
}

static inline int isxdigit(int c)
{
    return isdigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline int isblank(int c)
{
    return c == ' ' || c == '\t';
}

static inline int isspace(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline int iscntrl(int c)
{
    return (c >= 0 && c < ' ') || c == 0x7f;
}

static inline int isprint(int c)
{
    return c >= ' ' && c < 0x7f;
}

static inline int isgraph(int c)
{
    return c > ' ' && c < 0x7f;
}

static inline int ispunct(int c)
{
    return isgraph(c) && !isalnum(c);
}

static inline int tolower(int c)
{
    return isupper(c) ? c - 'A' + 'a' : c;
}

static inline int toupper(int c)
{
    return islower(c) ? c - 'a' + 'A' : c;
}
