/* agent_format.c - the printf of agent expressions: check a format once, and print with
 * it at a hit.
 *
 * Each conversion of a format is printed with a call of snprintf() of its own, because an
 * array of words cannot be turned into a list of variable arguments. Pure; any context.
 */
#include "probes/agent/agent_op.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SPEC_MAX 16 /* bytes of a conversion, from its % to its letter */
#define STRING_PART                                                                      \
    16 /* bytes of a string that are read at once. The pieces are aligned, so no page
        * is read in which the string has no byte
        */
#define STRING_MAX 200 /* characters of a string that are printed at most */

/* A conversion of a format, such as "%-8lx". */
struct spec {
    size_t len;     /* bytes of the conversion; 0: it is not supported */
    char letter;    /* d i u x X o c s p % */
    unsigned bytes; /* of a number: how many bytes of the word it has */
};

static struct spec spec_at(const char *text)
{
    struct spec spec = { .bytes = 4 };
    bool lengths = false; /* is there a letter that only numbers have? */
    size_t i = 1;

    while (text[i] && strchr("-+ #0", text[i]))
        i++;
    while (isdigit((unsigned char)text[i]))
        i++;
    if (text[i] == '.')
        i++;
    while (isdigit((unsigned char)text[i]))
        i++;
    for (; text[i] && strchr("hlzt", text[i]); i++) {
        lengths = true;
        if (text[i] == 'h')
            spec.bytes /= 2;
        else
            spec.bytes = 8;
    }
    spec.letter = text[i];
    if (spec.letter && strchr(lengths ? "diuxXo" : "diuxXocsp%", spec.letter) &&
        spec.bytes && i < SPEC_MAX - 3)
        spec.len = i + 1;
    return spec;
}

/* escape_at - read the escape at @text, such as "\\n": the debugger sends a format as the
 * user has typed it. @c: the character that it stands for.
 * Return: its length in bytes; 0: it is not supported.
 */
static size_t escape_at(const char *text, char *c)
{
    static const char letters[] = "abefnrtv\\\"", values[] = "\a\b\x1b\f\n\r\t\v\\\"";
    const char *letter = text[1] ? strchr(letters, text[1]) : NULL;
    size_t i = 1;

    if (letter) {
        *c = values[letter - letters];
        return 2;
    }
    for (*c = 0; i < 4 && text[i] >= '0' && text[i] <= '7'; i++)
        *c = (char)(*c * 8 + text[i] - '0');
    return i > 1 ? i : 0;
}

const char *agent_format_check(const char *format, size_t len, unsigned count)
{
    unsigned used = 0;

    if (!len || len > AGENT_FORMAT_MAX)
        return "a format is 1 to 256 bytes long";
    if (memchr(format, '\0', len) != format + len - 1)
        return "the format does not end where it should";
    for (const char *p = format; *p; p++) {
        struct spec spec;
        char c;

        if (*p == '\\') {
            size_t escape = escape_at(p, &c);

            if (!escape)
                return "an escape of the format is not understood";
            p += escape - 1;
        }
        if (*p != '%')
            continue;
        spec = spec_at(p);
        if (!spec.len || (spec.letter == '%' && spec.len != 2))
            return "a conversion of the format is not understood";
        used += spec.letter != '%';
        p += spec.len - 1;
    }
    return used == count ? NULL : "the format has not as many conversions as words";
}

/* read_text - copy the string at @addr to @buf, at most STRING_MAX characters.
 * Return: false: the string cannot be read.
 */
static bool read_text(const struct agent_world *world, uintptr_t addr, char *buf)
{
    size_t len = 0;

    while (len < STRING_MAX) {
        size_t take = STRING_PART - (addr + len) % STRING_PART, part;

        if (take > STRING_MAX - len)
            take = STRING_MAX - len;
        if (world->read(world->arg, buf + len, addr + len, take))
            return false;
        part = strnlen(buf + len, take);
        len += part;
        if (part < take)
            break;
    }
    buf[len] = '\0';
    return true;
}

static int64_t signed_word(uint64_t word, unsigned bytes)
{
    unsigned unused = 64 - 8 * bytes;

    return (int64_t)(word << unused) >> unused;
}

/* print_number - print @word as the number that @spec describes. This function itself
 * cuts @word to the size that the letters h, l, z and t mean. snprintf() then always gets
 * a long.
 */
static int print_number(char *buf, size_t size, const char *spec, struct spec known,
                        uint64_t word)
{
    char own[SPEC_MAX];
    size_t len = known.len - 1;

    while (len && strchr("hlzt", spec[len - 1]))
        len--;
    memcpy(own, spec, len);
    memcpy(own + len, (char[]){ 'l', known.letter, '\0' }, 3);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (known.letter == 'd' || known.letter == 'i')
        return snprintf(buf, size, own, signed_word(word, known.bytes));
    return snprintf(buf, size, own,
                    known.bytes == 8 ? word
                                     : word & ((UINT64_C(1) << 8 * known.bytes) - 1));
#pragma GCC diagnostic pop
}

static int print_word(char *buf, size_t size, const char *spec, struct spec known,
                      uint64_t word, const struct agent_world *world)
{
    char own[SPEC_MAX], text[STRING_MAX + 1];

    if (known.letter != 's' && known.letter != 'c' && known.letter != 'p')
        return print_number(buf, size, spec, known, word);
    memcpy(own, spec, known.len);
    own[known.len] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (known.letter == 'c' && !(uint8_t)word)
        return 0; /* a NUL would end the printed text */
    if (known.letter == 'c')
        return snprintf(buf, size, own, (int)(uint8_t)word);
    if (known.letter == 'p')
        return snprintf(buf, size, own,
                        (void *)word); // NOLINT(performance-no-int-to-ptr)
    return snprintf(buf, size, own, read_text(world, word, text) ? text : "(fault)");
#pragma GCC diagnostic pop
}

size_t agent_format(const char *format, const uint64_t *word,
                    const struct agent_world *world, char *buf, size_t size)
{
    size_t len = 0;

    for (const char *p = format; *p && len + 1 < size;) {
        struct spec spec = { 0 };
        int more;

        if (*p == '\\') {
            p += escape_at(p, buf + len);
            len += buf[len] != '\0'; /* a NUL would end the printed text */
            continue;
        }
        if (*p == '%')
            spec = spec_at(p);
        if (!spec.len || spec.letter == '%') {
            buf[len++] = *p;
            p += spec.len ? spec.len : 1;
            continue;
        }
        more = print_word(buf + len, size - len, p, spec, *word++, world);
        len = more < 0 || (size_t)more >= size - len ? size - 1 : len + (size_t)more;
        p += spec.len;
    }
    buf[len] = '\0';
    return len;
}
