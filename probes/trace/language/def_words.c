/* def_words.c - cuts the text that is written to kprobe_events into lines and words. */
#include "probes/trace/language/def_words.h"

#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/def.h"

#include <ctype.h>
#include <string.h>

struct def_word def_word_next(const char **line)
{
    struct def_word word;
    const char *p = skip_blanks(*line);

    word.p = p;
    while (*p && !isspace((unsigned char)*p))
        p++;
    word.len = (size_t)(p - word.p);
    *line = p;
    return word;
}

size_t def_word_count(const char *line)
{
    size_t count = 0;

    while (def_word_next(&line).len)
        count++;
    return count;
}

unsigned def_word_column(const char *line, size_t index)
{
    size_t column = 0, len;

    for (; index && (len = def_word_next(&line).len); index--)
        column += len + 1;
    return (unsigned)column;
}

size_t def_join(const char *line, char *buf, size_t size)
{
    struct def_word word;
    size_t len = 0;

    if (size)
        buf[0] = '\0';
    while (word = def_word_next(&line), word.len) {
        if (len < size)
            scnprintf(buf + len, size - len, "%s%.*s", len ? " " : "", (int)word.len,
                      word.p);
        len += word.len + (len ? 1 : 0);
    }
    return len;
}

/* As on Linux, a line with its newline must be shorter than DEF_LINE_MAX. */
bool def_next_line(const char **text, size_t *len, char *line, int *err)
{
    const char *newline;
    size_t size;

    *err = 0;
    if (!*len)
        return false;
    newline = memchr(*text, '\n', *len);
    size = newline ? (size_t)(newline - *text) : *len;
    if (size + (newline != NULL) >= DEF_LINE_MAX || memchr(*text, '\0', size)) {
        *err = -EINVAL;
        return false;
    }
    memcpy(line, *text, size);
    line[size] = '\0';
    line[strcspn(line, "#")] = '\0';
    *text += size + (newline != NULL);
    *len -= size + (newline != NULL);
    return true;
}
