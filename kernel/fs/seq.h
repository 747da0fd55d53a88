/* seq.h - a text that grows: where every file and every command prints to.
 *
 * Two uses of one type. Without @drain the text is kept, to be read afterwards: a file's
 * content, the buffer between two stages of a pipe. With @drain the text is on its way
 * somewhere, a console say, and only what does not make a whole line yet is kept.
 *
 * The first failure sticks: later output is dropped and seq.err says why, so that callers
 * print without looking and ask once, at the end.
 *
 * Locks: none; a seq belongs to one thread at a time.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdarg.h>
#include <stddef.h>

struct seq {
    char *text; /* @len bytes, NUL behind them; NULL while nothing was written */
    size_t len;
    size_t cap;                  /* bytes allocated */
    int err;                     /* 0 or a negative errno: output was lost */
    void (*drain)(struct seq *); /* called after a write that completed a line: hands
                                    lines on and removes them with seq_remove() */
    void *priv;                  /* of the owner of @drain */
};

/* seq_init - make @s empty; @drain may be NULL. */
void seq_init(struct seq *s, void (*drain)(struct seq *), void *priv);
/* seq_free - give the memory back and leave @s empty, @drain unchanged. */
void seq_free(struct seq *s);

/* seq_write - append @len bytes, any bytes.
 * seq_puts - append a string.
 * seq_printf, seq_vprintf - append formatted text, of any length.
 *
 * Return:  nothing; -ENOMEM goes to seq.err, and then nothing of the piece was appended.
 */
void seq_write(struct seq *s, const char *text, size_t len);
void seq_puts(struct seq *s, const char *text);
void seq_printf(struct seq *s, const char *fmt, ...) PRINTF(2, 3);
void seq_vprintf(struct seq *s, const char *fmt, va_list args) PRINTF(2, 0);

/* seq_resize - make the text @len bytes long: cut it, or lengthen it with NULs.
 *
 * Return:  0; -ENOMEM and nothing changed; seq.err is left alone.
 */
int seq_resize(struct seq *s, size_t len);

/* seq_remove - drop the first @len bytes. @len: 0..s->len. */
void seq_remove(struct seq *s, size_t len);

/* seq_str - the text as a string, "" when there is none; valid until the next write. */
const char *seq_str(const struct seq *s);
