/* shell_line.h - the line editor: takes bytes of input, makes lines of them, and draws
 * the line that is being edited.
 *
 * Pure: it neither reads nor writes a console. The shell gives each byte of input to
 * line_put_byte() and acts on the event that this returns. The shell calls line_draw() only
 * when no input is waiting, so pasted text is drawn once and not once for each byte.
 */
#pragma once

#include "kernel/console/shell_history.h"
#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>

#define LINE_COLUMNS 80 /* assumed width of the terminal */

enum line_event {
    LINE_MORE,     /* the line is not complete yet */
    LINE_DONE,     /* the line is complete: take it, then line_reset() */
    LINE_CANCEL,   /* Ctrl-C: drop the line */
    LINE_END,      /* Ctrl-D on an empty line: end of the input */
    LINE_COMPLETE, /* Tab */
    LINE_CLEAR,    /* Ctrl-L: clear the screen */
};

enum line_escape { ESCAPE_NONE, ESCAPE_START, ESCAPE_PARAMETERS };

struct line_editor {
    char *text;     /* room for @size bytes and a NUL; belongs to the shell */
    size_t size;    /* bytes in the longest line that fits */
    size_t len;     /* bytes in the line; NUL behind them */
    size_t cursor;  /* 0..len */
    size_t lost;    /* bytes of this line for which there was no room */
    bool takes_raw; /* lines that begin with '@' are not edited */
    bool raw;       /* this line begins with '@': up to CR or LF all but Ctrl-C is text */
    bool after_cr;  /* the last byte was a CR; an LF now would belong to it */
    unsigned tabs;  /* Tab keys in a row */
    enum line_escape escape;
    unsigned parameter; /* first number of an escape sequence */
    bool in_first;      /* the digits of this number are still arriving */
    size_t shown;       /* if the screen holds the first bytes of @text: how many */
    bool redraw;        /* the whole line has to be drawn again */
    struct history history;
};

/* line_init - make an empty editor.
 * @text: @size + 1 bytes, lent for ever
 */
void line_init(struct line_editor *e, char *text, size_t size, bool takes_raw);

/* line_reset - begin a new, empty line; the prompt has just been printed. */
void line_reset(struct line_editor *e);

/* line_put_byte - take one byte of input. Return: what the shell has to do. */
enum line_event line_put_byte(struct line_editor *e, char byte);

/* line_insert - insert @len bytes at the cursor, as if typed. */
void line_insert(struct line_editor *e, const char *text, size_t len);

/* line_draw - write to @out the bytes that bring the screen up to date.
 * @prompt:  the text in front of the line
 */
void line_draw(struct line_editor *e, const char *prompt, struct seq *out);

/* line_forget_screen - note that other text was written to the screen: the next
 * line_draw() draws prompt and line again.
 */
void line_forget_screen(struct line_editor *e);
