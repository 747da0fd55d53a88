/* seq.c - a text that grows; see seq.h. The memory is from the heap. Runs in threads. */
#include "kernel/fs/seq.h"

#include "kernel/base/err.h"
#include "kernel/mm/heap.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAP 128

void seq_init(struct seq *s, void (*drain)(struct seq *), void *priv)
{
    memset(s, 0, sizeof(*s));
    s->drain = drain;
    s->priv = priv;
}

void seq_free(struct seq *s)
{
    kfree(s->text);
    seq_init(s, s->drain, s->priv);
}

/* seq_reserve - make room for @more bytes and a NUL. */
static int seq_reserve(struct seq *s, size_t more)
{
    size_t cap = s->cap ? s->cap : FIRST_CAP;
    char *text;

    if (more < s->cap - s->len)
        return 0;
    if (more >= SIZE_MAX / 4 - s->len)
        return -ENOMEM;
    while (cap <= s->len + more)
        cap *= 2;
    text = krealloc(s->text, cap);
    if (!text)
        return -ENOMEM;
    s->text = text;
    s->cap = cap;
    return 0;
}

/* drain_lines - call @drain if there is a line feed behind the first @old bytes. */
static void drain_lines(struct seq *s, size_t old)
{
    if (s->drain && memchr(s->text + old, '\n', s->len - old))
        s->drain(s);
}

void seq_write(struct seq *s, const char *text, size_t len)
{
    size_t old = s->len;

    if (s->err || len == 0)
        return;
    s->err = seq_reserve(s, len);
    if (s->err)
        return;
    memcpy(s->text + old, text, len);
    s->len += len;
    s->text[s->len] = '\0';
    drain_lines(s, old);
}

void seq_puts(struct seq *s, const char *text)
{
    seq_write(s, text, strlen(text));
}

void seq_printf(struct seq *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    seq_vprintf(s, fmt, args);
    va_end(args);
}

/* seq_format - format @args into the room that is left. Return: as vsnprintf(). */
static int seq_format(struct seq *s, const char *fmt, va_list args)
{
    va_list copy;
    int len;

    va_copy(copy, args);
    len = vsnprintf(s->text + s->len, s->cap - s->len, fmt, copy);
    va_end(copy);
    return len;
}

/* Formatting is the most expensive part of this file. So the text is formatted into the
 * room that is left, and a second time only if that was too small.
 */
void seq_vprintf(struct seq *s, const char *fmt, va_list args)
{
    size_t old = s->len;
    int len;

    if (s->err)
        return;
    len = seq_format(s, fmt, args);
    if (len <= 0)
        return;
    if ((size_t)len >= s->cap - old) {
        if (s->text)
            s->text[old] = '\0';
        s->err = seq_reserve(s, (size_t)len);
        if (s->err)
            return;
        seq_format(s, fmt, args);
    }
    s->len += (size_t)len;
    drain_lines(s, old);
}

int seq_resize(struct seq *s, size_t len)
{
    int err;

    if (len > s->len) {
        err = seq_reserve(s, len - s->len);
        if (err)
            return err;
        memset(s->text + s->len, 0, len - s->len);
    }
    s->len = len;
    if (s->text)
        s->text[len] = '\0';
    return 0;
}

void seq_remove(struct seq *s, size_t len)
{
    if (len == 0)
        return;
    s->len -= len;
    memmove(s->text, s->text + len, s->len + 1);
}

const char *seq_str(const struct seq *s)
{
    return s->text ? s->text : "";
}
