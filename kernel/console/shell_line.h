/* shell_line.h - the line editor: bytes in, a line out, and how it looks meanwhile.
 *
 * Pure: it neither reads nor writes a console. The shell feeds it what comes in, acts on
 * what it answers, and lets it draw itself when no input is waiting, so that pasted text
 * is drawn once and not once for each byte.
 */
#pragma once

#include "kernel/console/shell_history.h"
#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>

#define LINE_COLUMNS 80 /* assumed width of the terminal */

enum line_event {
    LINE_MORE,     /* nothing to do */
    LINE_DONE,     /* the line is complete: take it, then line_reset() */
    LINE_CANCEL,   /* Ctrl-C: the line is to be thrown away */
    LINE_END,      /* Ctrl-D on an empty line: end of the input */
    LINE_COMPLETE, /* Tab */
    LINE_CLEAR,    /* Ctrl-L: the screen is to be cleared */
};

enum line_escape { ESCAPE_NONE, ESCAPE_START, ESCAPE_PARAMETERS };

struct line_editor {
    char *text;     /* room for @size bytes and a NUL; the shell's */
    size_t size;    /* bytes in the longest line that is taken */
    size_t len;     /* bytes in the line; NUL behind them */
    size_t cursor;  /* 0..len */
    size_t lost;    /* bytes of this line that found no room */
    bool takes_raw; /* lines that begin with '@' are not edited */
    bool raw;       /* this one is such a line: everything up to LF is text */
    bool after_cr;  /* an LF now belongs to the CR before it */
    unsigned tabs;  /* Tab keys in a row */
    enum line_escape escape;
    unsigned parameter; /* first number of an escape sequence */
    bool in_first;      /* its digits are still coming */
    size_t shown;       /* bytes on the screen, when the screen holds a prefix */
    bool redraw;        /* the screen holds something else */
    struct history history;
};

/* line_init - @text: @size + 1 bytes, lent for ever. */
void line_init(struct line_editor *e, char *text, size_t size, bool takes_raw);

/* line_reset - begin a new, empty line; the prompt has just been printed. */
void line_reset(struct line_editor *e);

/* line_feed - take one byte of input. */
enum line_event line_feed(struct line_editor *e, char byte);

/* line_insert - put @len bytes in at the cursor, as if typed. */
void line_insert(struct line_editor *e, const char *text, size_t len);

/* line_draw - write to @out what brings the screen up to date.
 * @prompt:  what stands before the line
 */
void line_draw(struct line_editor *e, const char *prompt, struct seq *out);

/* line_forget_screen - the screen was used for something else: draw everything again. */
void line_forget_screen(struct line_editor *e);
