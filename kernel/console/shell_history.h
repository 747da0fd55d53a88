/* shell_history.h - the lines typed before, for the editor's up and down. */
#pragma once

#include <stddef.h>

#define HISTORY_MAX 64
#define HISTORY_LINE_MAX 1024 /* longer lines are not kept */

/* Belongs to one shell; no lock. */
struct history {
    char *lines[HISTORY_MAX]; /* oldest first; from the heap */
    unsigned count;
    unsigned at; /* the line that is shown; count: the draft */
    char *draft; /* what was being typed when the walk began; NULL: nothing */
};

/* history_add - keep a copy of @line, unless it is empty, too long, or the last one again.
 * Without memory nothing happens. Ends a walk.
 */
void history_add(struct history *h, const char *line);

/* history_older, history_newer - one step of a walk.
 * @current:  what the editor holds, kept as the draft when a walk begins
 *
 * Return:  the line to show, valid until the next call; NULL: there is none that way.
 */
const char *history_older(struct history *h, const char *current);
const char *history_newer(struct history *h);

/* history_leave - end a walk: the next one begins at the newest line. */
void history_leave(struct history *h);

/* history_free - forget everything. */
void history_free(struct history *h);
