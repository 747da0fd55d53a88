/* shell_machine.c - parses requests and formats replies; see shell_machine.h. Pure. */
#include "kernel/console/shell_machine.h"

#include "kernel/base/err.h"
#include "kernel/base/hex.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int machine_parse(char *line, size_t len, struct machine_request *out)
{
    size_t digits = 0;

    if (line[0] != '@')
        return -EINVAL;
    while (line[1 + digits] >= '0' && line[1 + digits] <= '9')
        digits++;
    if (digits == 0 || digits > MACHINE_TAG_MAX || line[1 + digits] != ' ')
        return -EINVAL;
    memcpy(out->tag, line + 1, digits);
    out->tag[digits] = '\0';
    out->command = line + 1 + digits + 1;
    return strlen(line) == len ? 0 : -EILSEQ;
}

static bool is_plain(char c)
{
    if (c >= 0x20 && c < 0x7f)
        return c != '\\';
    return c == '\t';
}

void machine_escape(struct seq *out, const char *text, size_t len)
{
    size_t i = 0;

    while (i < len) {
        size_t plain = i;

        while (plain < len && is_plain(text[plain]))
            plain++;
        seq_write(out, text + i, plain - i);
        i = plain;
        if (i == len)
            break;
        if (text[i] == '\\')
            seq_puts(out, "\\\\");
        else
            seq_printf(out, "\\x%02x", (uint8_t)text[i]);
        i++;
    }
}

void machine_format_line(struct seq *out, const char *tag, char kind, const char *text,
                         size_t len)
{
    seq_puts(out, "#");
    seq_puts(out, tag);
    seq_write(out, &kind, 1);
    machine_escape(out, text, len);
    seq_write(out, "\n", 1);
}

size_t machine_format_status(char buf[MACHINE_STATUS_MAX], const char *tag, int status)
{
    return (size_t)snprintf(buf, MACHINE_STATUS_MAX, "#%s=%d %s\n", tag, -status,
                            err_name(status));
}

/* escaped_byte - return the byte that "\xHH" at @s stands for, or -1. */
static int escaped_byte(const char *s)
{
    int high, low;

    if (s[0] != '\\' || s[1] != 'x')
        return -1;
    high = hex_digit(s[2]);
    low = high < 0 ? -1 : hex_digit(s[3]);
    return low < 0 ? -1 : high * 16 + low;
}

size_t machine_unescape(char *out, const char *text)
{
    size_t len = 0;

    while (*text) {
        int byte = escaped_byte(text);

        out[len++] = byte < 0 ? *text : (char)byte;
        text += byte < 0 ? 1 : 4;
    }
    return len;
}
