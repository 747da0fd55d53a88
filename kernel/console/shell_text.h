/* shell_text.h - what the filters of the shell do to a text. Pure. */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text is @len bytes; its last line may lack the line feed. */
struct text {
    const char *start;
    size_t len;
};

/* text_next_line - take the first line off *rest; its line feed belongs to neither.
 * Return:  false: *rest was empty.
 */
bool text_next_line(struct text *rest, struct text *line);

#define PATTERN_MAX 63 /* elements */

struct pattern {
    struct {
        char c;
        bool any;  /* '.' */
        bool star; /* any number of it */
    } elements[PATTERN_MAX];
    unsigned count;
    bool at_start, at_end; /* '^' and '$' */
    bool fold;             /* upper and lower case are the same */
};

/* pattern_parse - c  a character   .  any   X*  any number of X   ^  $  ends of the line
 *                 \c  the character itself
 *
 * Return:  0; -E2BIG too long.
 */
int pattern_parse(const char *source, bool fold, struct pattern *out);

/* pattern_matches - does it match anywhere in @line? Takes time linear in the line. */
bool pattern_matches(const struct pattern *p, struct text line);

/* text_grep - the lines that match, or with @invert those that do not; whole lines to
 * @out, which may be NULL.
 * Return:  how many.
 */
size_t text_grep(struct seq *out, struct text in, const struct pattern *p, bool invert);

/* text_head, text_tail - the first or last @count lines, to @out. */
void text_head(struct seq *out, struct text in, size_t count);
void text_tail(struct seq *out, struct text in, size_t count);

struct text_counts {
    size_t lines, words, bytes;
};

void text_count(struct text in, struct text_counts *out);

#define TEXT_SORT_NUMBERS 1u /* by the number that a line begins with */
#define TEXT_SORT_REVERSE 2u
#define TEXT_SORT_UNIQUE 4u /* equal lines once */

/* text_sort - the lines in order, to @out.
 * Return:  0; -ENOMEM.
 */
int text_sort(struct seq *out, struct text in, unsigned flags);
