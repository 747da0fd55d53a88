/* seq.h - a text that grows: every file and every command prints into a seq.
 *
 * Without @drain the seq keeps the text until it is read: the content of a file, or the
 * buffer between two stages of a pipe. With @drain the text goes on to another place,
 * such as a console, and the seq keeps only the last line until it is complete.
 *
 * After the first failure all later output is dropped, and seq.err keeps the errno. So
 * callers print without checks, and check seq.err once, at the end.
 *
 * Locks of all: none. A seq belongs to one thread at a time.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdarg.h>
#include <stddef.h>

struct seq {
    char *text; /* @len bytes and a NUL; NULL until the first write */
    size_t len;
    size_t cap;                  /* bytes allocated */
    int err;                     /* 0, or a negative errno after output was lost */
    void (*drain)(struct seq *); /* called after a write that completed a line. It sends
                                  * the complete lines on, and removes them with
                                  * seq_remove(). If it may wait for the reader, it leaves
                                  * them while the thread owns a mutex */
    void *priv;                  /* for @drain */
};

/* seq_init - make @s empty; @drain may be NULL. */
void seq_init(struct seq *s, void (*drain)(struct seq *), void *priv);
/* seq_free - free the text and make @s empty. @drain and @priv stay. */
void seq_free(struct seq *s);

/* seq_write - append @len bytes of any value.
 * seq_puts - append a string.
 * seq_printf, seq_vprintf - append formatted text of any length.
 * Return:  nothing. Without memory seq.err becomes -ENOMEM, and the call appends nothing.
 */
void seq_write(struct seq *s, const char *text, size_t len);
void seq_puts(struct seq *s, const char *text);
void seq_printf(struct seq *s, const char *fmt, ...) PRINTF(2, 3);
void seq_vprintf(struct seq *s, const char *fmt, va_list args) PRINTF(2, 0);

/* seq_resize - set the length of the text to @len bytes: cut it, or append NULs.
 * Return:  0; -ENOMEM and the text is unchanged. seq.err is never changed.
 */
int seq_resize(struct seq *s, size_t len);

/* seq_remove - remove the first @len bytes. @len: 0..s->len. */
void seq_remove(struct seq *s, size_t len);

/* seq_pass_on - call @drain, for lines that were printed while the thread owned a mutex. */
static inline void seq_pass_on(struct seq *s)
{
    if (s->drain)
        s->drain(s);
}

/* seq_str - return the text as a string, "" if there is none; valid until the next write.
 */
const char *seq_str(const struct seq *s);
