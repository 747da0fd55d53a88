/* shell_output.c - sends the output of commands to a user or to a tool.
 *
 * The output is split into lines, and each line is written to the console in one call, so
 * no other output comes into the middle of a line. Lines that are printed while the thread
 * owns a mutex wait until it owns none, because the console may take nothing for a long
 * time: the host reads no more, for instance. The buffers are allocated when the
 * shell starts. So a line that fits into them can be printed even when there is no free
 * memory.
 */
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/sync/mutex.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define RESERVED 1024 /* bytes that each buffer has from the start */
#define PAGE_LINES 23 /* of the smallest terminal that is usual, without its last line */
#define KEPT (64u << 10) /* a buffer that is larger than this is made small again */

static void send_bytes(struct shell *sh)
{
    sh->con->write(sh->con, seq_str(&sh->bytes), sh->bytes.len);
}

/* format_typed - format output for a user: LF becomes CR LF. Bytes that a terminal could
 * take as commands are escaped as for tools.
 */
static void format_typed(struct seq *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if ((c >= 0x20 && c < 0x7f) || c == '\t')
            seq_write(out, &c, 1);
        else
            machine_escape(out, &c, 1);
    }
}

static void send_line(struct shell *sh, const char *text, size_t len, bool whole)
{
    seq_resize(&sh->bytes, 0);
    sh->bytes.err = 0;
    if (sh->tag) {
        machine_format_line(&sh->bytes, sh->tag, whole ? '|' : '~', text, len);
    } else {
        format_typed(&sh->bytes, text, len);
        seq_puts(&sh->bytes, "\r\n");
    }
    if (sh->bytes.err)
        sh->lines.err = sh->bytes.err;
    else
        send_bytes(sh);
}

/* send_lines - the drain of sh->lines: send each complete line. */
static void send_lines(struct seq *lines)
{
    struct shell *sh = lines->priv;
    size_t done = 0;

    while (!lines->err && !mutex_any_held()) {
        const char *start = lines->text + done;
        const char *lf = memchr(start, '\n', lines->len - done);

        if (!lf)
            break;
        if (done >= sh->told && shell_interrupted(sh))
            lines->err = -EINTR;
        else
            send_line(sh, start, (size_t)(lf - start), true);
        done = (size_t)(lf - lines->text) + 1;
    }
    sh->told -= sh->told < done ? sh->told : done;
    seq_remove(lines, done);
}

int shell_output_init(struct shell *sh)
{
    int err;

    seq_init(&sh->lines, send_lines, sh);
    seq_init(&sh->bytes, NULL, NULL);
    err = seq_resize(&sh->lines, RESERVED);
    if (!err)
        err = seq_resize(&sh->bytes, RESERVED);
    if (err) {
        seq_free(&sh->lines);
        return err;
    }
    seq_resize(&sh->lines, 0);
    seq_resize(&sh->bytes, 0);
    sh->out = sh->console = &sh->lines;
    sh->outermost = sh;
    return 0;
}

/* shrink_buffer - replace a buffer that a long line has made large by a small one. The small
 * buffer is allocated first; if there is no memory, the shell keeps the large one.
 */
static void shrink_buffer(struct seq *s)
{
    struct seq fresh;

    if (s->cap <= KEPT)
        return;
    seq_init(&fresh, s->drain, s->priv);
    if (seq_resize(&fresh, RESERVED))
        return;
    seq_free(s);
    *s = fresh;
    seq_resize(s, 0);
}

void shell_output_flush(struct shell *sh)
{
    struct seq *lines = &sh->lines;

    if (lines->len > 0 && !lines->err)
        send_line(sh, lines->text, lines->len, false);
    seq_resize(lines, 0);
    lines->err = 0;
    sh->told = 0;
    shrink_buffer(lines);
    shrink_buffer(&sh->bytes);
}

void shell_echo(struct shell *sh, const char *text, size_t len)
{
    seq_resize(&sh->bytes, 0);
    sh->bytes.err = 0;
    format_typed(&sh->bytes, text, len);
    send_bytes(sh);
}

void shell_send(struct shell *sh, const char *text)
{
    seq_resize(&sh->bytes, 0);
    sh->bytes.err = 0;
    for (; *text; text++) {
        if (*text == '\n')
            seq_puts(&sh->bytes, "\r");
        seq_write(&sh->bytes, text, 1);
    }
    send_bytes(sh);
}

void shell_printf(struct shell *sh, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    seq_vprintf(sh->out, fmt, args);
    va_end(args);
}

struct seq *shell_out(struct shell *sh)
{
    return sh->out;
}

void shell_progress(struct shell *sh, const char *fmt, ...)
{
    char text[LINE_COLUMNS] = "", drawn[LINE_COLUMNS + 8];
    va_list args;

    if (!sh->con || sh->tag || !shell_on_terminal(sh) || (!fmt && !sh->has_progress))
        return;
    sh->has_progress = fmt != NULL;
    va_start(args, fmt);
    if (fmt)
        vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sh->con->show(sh->con, drawn,
                  (size_t)snprintf(drawn, sizeof(drawn), "\r%s\x1b[K", text));
}

bool shell_is_read(const struct shell *sh)
{
    return sh->con && !sh->tag && shell_on_terminal(sh) && sh->out == &sh->lines;
}

unsigned shell_page(struct shell *sh)
{
    if (!shell_is_read(sh))
        return 0;
    shell_send(sh, "\x1b[H\x1b[J");
    return PAGE_LINES;
}

void shell_show_progress(void *sh, const char *text)
{
    shell_progress(sh, text ? "%s" : NULL, text);
}

/* begin_message - prepare @s for a message. If output was lost or dropped by Ctrl-C, the
 * message must be printed all the same. If the last output line has no line feed, one is
 * added.
 * Return: -EINTR: output behind the message is to be dropped again; 0.
 */
static int begin_message(struct seq *s)
{
    int err = s->err;

    if (s->drain && err) { /* ENOMEM or EINTR */
        s->err = 0;
        seq_resize(s, 0);
    }
    if (s->len > 0 && s->text[s->len - 1] != '\n')
        seq_puts(s, "\n");
    return err == -EINTR ? err : 0;
}

static void print_message(struct shell *sh, int err, const char *fmt, va_list args)
{
    struct shell *sender = sh->outermost;
    int before;

    sender->told = SIZE_MAX;
    before = begin_message(sh->console);
    seq_vprintf(sh->console, fmt, args);
    if (err)
        seq_printf(sh->console, ": %s", err_text(err));
    seq_puts(sh->console, "\n");
    sender->told = sender->lines.len; /* 0 unless the message waits */
    if (before && !sender->told)
        sh->console->err = before;
}

int shell_error(struct shell *sh, int err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_message(sh, err, fmt, args);
    va_end(args);
    return err < 0 ? err : -err;
}

int shell_refuse(struct shell *sh, int err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_message(sh, 0, fmt, args);
    va_end(args);
    return err < 0 ? err : -err;
}

bool shell_stop(void *sh)
{
    return shell_interrupted(sh);
}

bool shell_interrupted(struct shell *sh)
{
    sh = sh->outermost;
    if (!sh->con)
        return false;
    if (memchr(sh->input + sh->input_at, SHELL_CTRL_C, sh->input_len - sh->input_at))
        return true;
    return sh->con->interrupt_pending(sh->con);
}
