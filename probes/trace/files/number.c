/* number.c - reads words and numbers that are written to files. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/files/files_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *trace_word(const char *text, size_t *len)
{
    *len = cut_blanks(text, *len);
    for (; *len && isspace((unsigned char)*text); --*len)
        text++;
    return text;
}

int trace_number(const char *text, size_t len, uint64_t *out)
{
    char number[32];

    if (len && text[len - 1] == '\n')
        len--;
    if (len && *text == '+') {
        text++;
        len--;
    }
    if (!len || len >= sizeof(number) || memchr(text, '\0', len))
        return -EINVAL;
    memcpy(number, text, len);
    number[len] = '\0';
    return parse_u64(number, 10, out);
}

int trace_switch(const char *text, size_t len, bool *on)
{
    uint64_t value;
    int err = trace_number(text, len, &value);

    if (err || value > 1)
        return err ? err : -EINVAL;
    *on = value;
    return 0;
}
