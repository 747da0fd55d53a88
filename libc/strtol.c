/* strtol.c - numbers from text. Owns nothing, runs anywhere.
 *
 * One scanner reads sign, prefix and digits for all functions. They differ in what they
 * accept, and in what they do if there is no number or if it does not fit.
 */
#include "kernel/base/err.h"
#include "libc/include/ctype.h"
#include "libc/include/stdlib.h"

#include <stdbool.h>

enum { BASE_MIN = 2, BASE_MAX = 36 };

struct number {
    const char *end; /* behind the last digit; NULL when there are no digits */
    uint64_t magnitude;
    bool negative;
    bool overflow; /* more than 64 bits: magnitude means nothing */
};

/* Return: the value of a digit; BASE_MAX: @c is no digit in any base. */
static int digit_value(char c)
{
    if (isdigit(c))
        return c - '0';
    if (isalpha(c))
        return tolower(c) - 'a' + 10;
    return BASE_MAX;
}

/* "0x" is a prefix only if a digit follows: in "0xyz" the number ends before the x. */
static bool has_hex_prefix(const char *s)
{
    return s[0] == '0' && tolower(s[1]) == 'x' && isxdigit(s[2]);
}

static const char *prefix_skip(const char *s, int *base)
{
    if ((*base == 0 || *base == 16) && has_hex_prefix(s)) {
        *base = 16;
        return s + 2;
    }
    if (*base == 0)
        *base = *s == '0' ? 8 : 10;
    return s;
}

static void digits_scan(const char *s, int base, struct number *n)
{
    for (; digit_value(*s) < base; s++) {
        n->overflow |=
            __builtin_mul_overflow(n->magnitude, (uint64_t)base, &n->magnitude);
        n->overflow |= __builtin_add_overflow(n->magnitude, (uint64_t)digit_value(*s),
                                              &n->magnitude);
        n->end = s + 1;
    }
}

static struct number number_scan(const char *s, int base)
{
    struct number n = { 0 };

    if (base != 0 && (base < BASE_MIN || base > BASE_MAX))
        return n;
    while (isspace(*s))
        s++;
    n.negative = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    s = prefix_skip(s, &base);
    digits_scan(s, base, &n);
    return n;
}

/* The greatest magnitude that a signed number of this sign can have. */
static uint64_t signed_limit(bool negative)
{
    return (uint64_t)INT64_MAX + negative;
}

static int64_t signed_make(uint64_t magnitude, bool negative)
{
    return (int64_t)(negative ? 0 - magnitude : magnitude);
}

static int64_t number_signed(const char *s, char **end, int base)
{
    struct number n = number_scan(s, base);
    uint64_t limit = signed_limit(n.negative);

    if (end)
        *end = (char *)(uintptr_t)(n.end ? n.end : s);
    if (n.overflow || n.magnitude > limit)
        n.magnitude = limit;
    return signed_make(n.magnitude, n.negative);
}

static uint64_t number_unsigned(const char *s, char **end, int base)
{
    struct number n = number_scan(s, base);

    if (end)
        *end = (char *)(uintptr_t)(n.end ? n.end : s);
    if (n.overflow)
        return UINT64_MAX;
    return n.negative ? 0 - n.magnitude : n.magnitude;
}

long strtol(const char *restrict s, char **restrict end, int base)
{
    return number_signed(s, end, base);
}

long long strtoll(const char *restrict s, char **restrict end, int base)
{
    return number_signed(s, end, base);
}

unsigned long strtoul(const char *restrict s, char **restrict end, int base)
{
    return number_unsigned(s, end, base);
}

unsigned long long strtoull(const char *restrict s, char **restrict end, int base)
{
    return number_unsigned(s, end, base);
}

int parse_u64(const char *s, int base, uint64_t *out)
{
    struct number n;

    if (!isalnum(*s)) /* spaces and signs, which the scanner would accept, are refused */
        return -EINVAL;
    n = number_scan(s, base);
    if (!n.end || *n.end)
        return -EINVAL;
    if (n.overflow)
        return -ERANGE;
    *out = n.magnitude;
    return 0;
}

static bool begins_with(const char *text, size_t len, const char *begin)
{
    size_t i = 0;

    while (begin[i] && i < len && tolower((unsigned char)text[i]) == begin[i])
        i++;
    return !begin[i];
}

int parse_bool(const char *text, size_t len, bool *out)
{
    static const struct {
        const char *begin;
        bool value;
    } words[] = { { "1", true },  { "y", true },  { "t", true },  { "on", true },
                  { "0", false }, { "n", false }, { "f", false }, { "of", false } };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (begins_with(text, len, words[i].begin)) {
            *out = words[i].value;
            return 0;
        }
    return -EINVAL;
}
