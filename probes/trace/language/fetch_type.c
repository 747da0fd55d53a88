/* fetch_type.c - holds the types of arguments, and reads numbers as Linux does. */
#include "probes/trace/language/fetch.h"
#include "probes/trace/language/fetch_parse.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"

#include <ctype.h>
#include <string.h>

static const struct fetch_type types[] = {
    { "string", "__data_loc char[]", 4, FETCH_STRING },
    { "ustring", "__data_loc char[]", 4, FETCH_STRING },
    { "symstr", "__data_loc char[]", 4, FETCH_STRING },
    { "u8", "u8", 1, FETCH_UNSIGNED },
    { "u16", "u16", 2, FETCH_UNSIGNED },
    { "u32", "u32", 4, FETCH_UNSIGNED },
    { "u64", "u64", 8, FETCH_UNSIGNED },
    { "s8", "s8", 1, FETCH_SIGNED },
    { "s16", "s16", 2, FETCH_SIGNED },
    { "s32", "s32", 4, FETCH_SIGNED },
    { "s64", "s64", 8, FETCH_SIGNED },
    { "x8", "u8", 1, FETCH_HEX },
    { "x16", "u16", 2, FETCH_HEX },
    { "x32", "u32", 4, FETCH_HEX },
    { "x64", "u64", 8, FETCH_HEX },
    { "char", "u8", 1, FETCH_CHAR },
    { "symbol", "u64", 8, FETCH_SYMBOL },
};

static const struct fetch_type *named(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (str_is(types[i].name, name, len))
            return &types[i];
    return NULL;
}

/* b4@0/8 is a bit field: 4 bits of a u8, from bit 0. */
const struct fetch_type *fetch_type_find(const char *name, size_t len)
{
    const char *slash;
    uint64_t bits;

    if (!len || *name != 'b')
        return named(name, len);
    slash = memchr(name, '/', len);
    if (!slash || fetch_number(slash + 1, len - (size_t)(slash + 1 - name), &bits))
        return NULL;
    switch (bits) {
    case 8:
        return named("u8", 2);
    case 16:
        return named("u16", 3);
    case 32:
        return named("u32", 3);
    case 64:
        return named("u64", 3);
    default:
        return NULL;
    }
}

size_t fetch_fixed_size(const struct fetch_arg *arg)
{
    return (size_t)arg->type->size * (arg->count ? arg->count : 1u);
}

#define NUMBER_MAX 128 /* no 64-bit number needs that many digits */

int fetch_number(const char *text, size_t len, uint64_t *out)
{
    char number[NUMBER_MAX];

    if (len && *text == '+') {
        text++;
        len--;
    }
    if (len >= sizeof(number) || memchr(text, '\0', len))
        return -EINVAL;
    memcpy(number, text, len);
    number[len] = '\0';
    return parse_u64(number, 0, out);
}

int fetch_signed(const char *text, size_t len, int64_t *out)
{
    bool negative = len && *text == '-';
    uint64_t magnitude;
    int err;

    if (negative && len > 1 && text[1] == '+')
        return -EINVAL;
    err = fetch_number(text + negative, len - negative, &magnitude);
    if (err)
        return err;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return 0;
}

bool fetch_name_is_good(const char *name, size_t len)
{
    if (!len || isdigit((unsigned char)*name))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_word_char(name[i]))
            return false;
    return true;
}
