/* vsnprintf.c - print into a buffer. Owns nothing, runs anywhere.
 *
 * Three parts: a sink, which counts all characters and stores those that fit; the parser of
 * one conversion specification; and the conversions. The largest buffer on the stack holds
 * the digits of one number. Padding that is not stored costs no time.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/ctype.h"
#include "libc/include/limits.h"
#include "libc/include/stdio.h"
#include "libc/include/string.h"

#include <stdbool.h>

/* --- the sink --- */

struct sink {
    char *buf;
    size_t size;
    size_t len; /* of the whole text so far; only the first @size bytes are stored */
};

static size_t sink_room(const struct sink *out, size_t wanted)
{
    size_t room = out->len < out->size ? out->size - out->len : 0;

    return wanted < room ? wanted : room;
}

static void put_bytes(struct sink *out, const char *s, size_t len)
{
    size_t room = sink_room(out, len);

    if (room)
        memcpy(out->buf + out->len, s, room);
    out->len += len;
}

static void put_run(struct sink *out, char c, size_t len)
{
    size_t room = sink_room(out, len);

    if (room)
        memset(out->buf + out->len, c, room);
    out->len += len;
}

/* A text that does not fit has filled the whole buffer, so the NUL replaces its last byte. */
static void sink_finish(struct sink *out)
{
    if (out->size)
        out->buf[out->len < out->size ? out->len : out->size - 1] = '\0';
}

/* --- one conversion specification --- */

struct args {
    va_list list; /* in a struct, so that functions can get a pointer to it */
};

struct format_spec {
    bool left, plus, space, alt, zero;
    bool has_precision;
    size_t width;
    size_t precision;
    size_t arg_size; /* of an integer argument, in bytes */
    char conversion;
};

static bool *flag_find(struct format_spec *spec, char c)
{
    switch (c) {
    case '-':
        return &spec->left;
    case '+':
        return &spec->plus;
    case ' ':
        return &spec->space;
    case '#':
        return &spec->alt;
    case '0':
        return &spec->zero;
    default:
        return NULL;
    }
}

static const char *flags_parse(const char *fmt, struct format_spec *spec)
{
    bool *flag;

    while ((flag = flag_find(spec, *fmt))) {
        *flag = true;
        fmt++;
    }
    return fmt;
}

/* Read a width or a precision: digits, or * for an int argument. A number above INT_MAX
 * counts as INT_MAX, so *count does not overflow.
 */
static const char *count_parse(const char *fmt, struct args *args, long *count)
{
    *count = 0;
    if (*fmt == '*') {
        *count = va_arg(args->list, int);
        return fmt + 1;
    }
    for (; isdigit(*fmt); fmt++) {
        *count = *count * 10 + (*fmt - '0');
        if (*count > INT_MAX)
            *count = INT_MAX;
    }
    return fmt;
}

static const char *width_parse(const char *fmt, struct args *args,
                               struct format_spec *spec)
{
    long count;

    fmt = count_parse(fmt, args, &count);
    if (count < 0) {
        spec->left = true;
        count = -count;
    }
    spec->width = (size_t)count;
    return fmt;
}

static const char *precision_parse(const char *fmt, struct args *args,
                                   struct format_spec *spec)
{
    long count;

    if (*fmt != '.')
        return fmt;
    fmt = count_parse(fmt + 1, args, &count);
    spec->has_precision = count >= 0; /* a negative precision counts as none */
    spec->precision = spec->has_precision ? (size_t)count : 0;
    return fmt;
}

static const char *length_parse(const char *fmt, struct format_spec *spec)
{
    spec->arg_size = sizeof(int);
    switch (*fmt) {
    case 'h':
        spec->arg_size = fmt[1] == 'h' ? sizeof(char) : sizeof(short);
        break;
    case 'l':
    case 'z':
    case 't':
    case 'j':
        spec->arg_size = sizeof(long); /* all of these types have that size */
        break;
    default:
        return fmt;
    }
    return fmt + (fmt[1] == *fmt && (*fmt == 'h' || *fmt == 'l') ? 2 : 1);
}

/* @fmt: behind the %. Return: behind the conversion character, or at the final NUL. */
static const char *spec_parse(const char *fmt, struct args *args,
                              struct format_spec *spec)
{
    *spec = (struct format_spec){ 0 };
    fmt = flags_parse(fmt, spec);
    fmt = width_parse(fmt, args, spec);
    fmt = precision_parse(fmt, args, spec);
    fmt = length_parse(fmt, spec);
    spec->conversion = *fmt;
    return *fmt ? fmt + 1 : fmt;
}

/* --- the conversions --- */

static int64_t arg_signed(struct args *args, const struct format_spec *spec)
{
    switch (spec->arg_size) {
    case sizeof(char):
        return (signed char)va_arg(args->list, int);
    case sizeof(short):
        return (short)va_arg(args->list, int);
    case sizeof(int):
        return va_arg(args->list, int);
    default:
        return va_arg(args->list, long);
    }
}

static NOINLINE uint64_t arg_unsigned(struct args *args, const struct format_spec *spec)
{
    switch (spec->arg_size) {
    case sizeof(char):
        return (unsigned char)va_arg(args->list, unsigned);
    case sizeof(short):
        return (unsigned short)va_arg(args->list, unsigned);
    case sizeof(int):
        return va_arg(args->list, unsigned);
    default:
        return va_arg(args->list, unsigned long);
    }
}

/* Write the digits of @value in front of @end; none if it is 0. Return: the first digit. */
static char *digits_make(char *end, uint64_t value, unsigned base, bool upper)
{
    const char *digit = upper ? "0123456789ABCDEF" : "0123456789abcdef";

    for (; value; value /= base)
        *--end = digit[value % base];
    return end;
}

/* Print an integer: spaces, prefix, zeros, digits, spaces. Each part may be empty. */
static void put_number(struct sink *out, const struct format_spec *spec, uint64_t value,
                       unsigned base, const char *prefix)
{
    char buf[22]; /* the longest: 64 bits in octal */
    char *end = buf + sizeof(buf);
    char *digits = digits_make(end, value, base, spec->conversion == 'X');
    size_t count = (size_t)(end - digits);
    size_t wanted = spec->has_precision ? spec->precision : 1;
    size_t zeros = wanted > count ? wanted - count : 0;
    size_t len, pad;

    if (base == 8 && spec->alt && zeros == 0)
        zeros = 1;
    len = strlen(prefix) + zeros + count;
    pad = spec->width > len ? spec->width - len : 0;
    if (spec->zero && !spec->left && !spec->has_precision) {
        zeros += pad;
        pad = 0;
    }
    put_run(out, ' ', spec->left ? 0 : pad);
    put_bytes(out, prefix, strlen(prefix));
    put_run(out, '0', zeros);
    put_bytes(out, digits, count);
    put_run(out, ' ', spec->left ? pad : 0);
}

static void put_signed(struct sink *out, const struct format_spec *spec, int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    const char *sign = value < 0 ? "-" : spec->plus ? "+" : spec->space ? " " : "";

    put_number(out, spec, magnitude, 10, sign);
}

static void put_hex(struct sink *out, const struct format_spec *spec, uint64_t value)
{
    const char *prefix = spec->conversion == 'X' ? "0X" : "0x";

    put_number(out, spec, value, 16, spec->alt && value ? prefix : "");
}

static void put_text(struct sink *out, const struct format_spec *spec, const char *s,
                     size_t len)
{
    size_t pad = spec->width > len ? spec->width - len : 0;

    put_run(out, ' ', spec->left ? 0 : pad);
    put_bytes(out, s, len);
    put_run(out, ' ', spec->left ? pad : 0);
}

static void put_string(struct sink *out, const struct format_spec *spec, const char *s)
{
    if (!s)
        s = "(null)";
    put_text(out, spec, s, strnlen(s, spec->has_precision ? spec->precision : SIZE_MAX));
}

static void put_char(struct sink *out, const struct format_spec *spec, int c)
{
    char text = (char)c;

    put_text(out, spec, &text, 1);
}

/* Return: false for a conversion that does not exist. */
static bool put_converted(struct sink *out, const struct format_spec *spec,
                          struct args *args)
{
    switch (spec->conversion) {
    case 'd':
    case 'i':
        put_signed(out, spec, arg_signed(args, spec));
        return true;
    case 'u':
        put_number(out, spec, arg_unsigned(args, spec), 10, "");
        return true;
    case 'x':
    case 'X':
        put_hex(out, spec, arg_unsigned(args, spec));
        return true;
    case 'o':
        put_number(out, spec, arg_unsigned(args, spec), 8, "");
        return true;
    case 'p':
        put_number(out, spec, (uintptr_t)va_arg(args->list, void *), 16, "0x");
        return true;
    case 'c':
        put_char(out, spec, va_arg(args->list, int));
        return true;
    case 's':
        put_string(out, spec, va_arg(args->list, const char *));
        return true;
    case '%':
        put_bytes(out, "%", 1);
        return true;
    default:
        return false;
    }
}

/* --- all of it --- */

static size_t plain_len(const char *fmt)
{
    size_t len = 0;

    while (fmt[len] && fmt[len] != '%')
        len++;
    return len;
}

static void format_run(struct sink *out, const char *fmt, struct args *args)
{
    while (*fmt) {
        const char *start = fmt;
        struct format_spec spec;

        if (*fmt != '%') {
            fmt += plain_len(fmt);
            put_bytes(out, start, (size_t)(fmt - start));
            continue;
        }
        fmt = spec_parse(fmt + 1, args, &spec);
        if (!put_converted(out, &spec, args))
            put_bytes(out, start, (size_t)(fmt - start));
    }
}

int vsnprintf(char *buf, size_t size, const char *fmt, va_list list)
{
    struct sink out = { buf, size, 0 };
    struct args args;

    va_copy(args.list, list);
    format_run(&out, fmt, &args);
    va_end(args.list);
    sink_finish(&out);
    return out.len <= INT_MAX ? (int)out.len : -ERANGE;
}
