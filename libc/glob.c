/* glob.c - patterns for names: * ? [...], as a shell has them for the names of files. Owns
 * nothing, runs anywhere.
 */
#include "kernel/base/compiler.h"
#include "libc/include/extra.h"

/* set_end - the address behind the ']' that ends a set; NULL if no ']' ends it.
 * @p: behind the '[' of the set. A ']' as its first character is a member, and does not end
 *     it.
 */
static const char *set_end(const char *p)
{
    if (*p == '!' || *p == '^')
        p++;
    if (*p == ']')
        p++;
    while (*p && *p != ']')
        p++;
    return *p ? p + 1 : NULL;
}

static bool set_contains(const char *p, const char *end, unsigned char c)
{
    bool negated = *p == '!' || *p == '^';
    bool found = false;

    p += negated;
    while (p < end - 1) {
        unsigned char low = (unsigned char)p[0], high = low;

        if (p[1] == '-' && p + 2 < end - 1) {
            high = (unsigned char)p[2];
            p += 2;
        }
        found |= low <= c && c <= high;
        p++;
    }
    return found != negated;
}

/* match_one - does @c match the first element of @p? @behind: receives the rest of @p. */
static bool match_one(const char *p, unsigned char c, const char **behind)
{
    const char *end = *p == '[' ? set_end(p + 1) : NULL;

    *behind = end ? end : p + 1;
    if (end)
        return set_contains(p + 1, end, c);
    if (*p == '\\' && p[1]) {
        *behind = p + 2;
        return (unsigned char)p[1] == c;
    }
    return *p == '?' || (unsigned char)*p == c;
}

/* On a mismatch, only the last '*' is tried again with a longer text. It is not necessary
 * to try an earlier '*' again: the pattern between the two matches as early in the text
 * as it can.
 */
bool glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL, *behind;

    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern && match_one(pattern, (unsigned char)*text, &behind)) {
            pattern = behind;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
