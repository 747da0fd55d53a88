/* shell_history.h - keeps the lines typed before, for the editor's keys up and down. */
#pragma once

#include <stddef.h>

#define HISTORY_MAX 64
#define HISTORY_LINE_MAX 1024 /* longer lines are not kept */

/* Belongs to one shell, so it needs no lock. */
struct history {
    char *lines[HISTORY_MAX]; /* oldest first; from the heap */
    unsigned count;
    unsigned at; /* index of the line that is shown; @count: the draft is shown */
    char *draft; /* the text in the editor when the walk began; NULL: none */
};

/* history_add - keep a copy of @line, and end the walk. An empty line, a line that is too
 * long, and a line equal to the last one are not kept. Without memory no line is kept.
 */
void history_add(struct history *h, const char *line);

/* history_older, history_newer - make one step of a walk through the lines.
 * @current:  the text in the editor, which is kept as the draft when a walk begins
 *
 * Return:  the line to show, valid until the next call; NULL: there is no further line.
 */
const char *history_older(struct history *h, const char *current);
const char *history_newer(struct history *h);

/* history_leave - end a walk. The next walk begins at the newest line. */
void history_leave(struct history *h);

/* history_free - free all lines. */
void history_free(struct history *h);
