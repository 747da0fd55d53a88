/* shell_text.h - selects, counts and sorts lines for the filters of the shell. Pure. */
#pragma once

#include "kernel/fs/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text of @len bytes. Its last line may have no line feed. */
struct text {
    const char *start;
    size_t len;
};

/* text_next_line - take the first line off *rest. Neither *line nor *rest contains its
 * line feed.
 * Return:  false: *rest was empty.
 */
bool text_next_line(struct text *rest, struct text *line);

#define PATTERN_MAX 63 /* elements */

struct pattern {
    struct {
        char c;
        bool any;  /* '.': any character */
        bool star; /* X*: any number of this element */
    } elements[PATTERN_MAX];
    unsigned count;
    bool at_start, at_end; /* '^' and '$' */
    bool fold;             /* upper and lower case count as equal */
};

/* pattern_parse - read a pattern. A pattern consists of:
 * c  a character   .  any character   X*  any number of X   ^  $  the ends of the line
 * \c  the character c itself
 *
 * @fold: upper and lower case count as equal
 * Return:  0; -E2BIG too long.
 */
int pattern_parse(const char *source, bool fold, struct pattern *out);

/* pattern_matches - does @p match anywhere in @line? Cost: linear in the line's length.
 */
bool pattern_matches(const struct pattern *p, struct text line);

/* text_grep - find the lines that match, or with @invert those that do not match, and
 * write them to @out. @out may be NULL.
 * Return:  how many lines were found.
 */
size_t text_grep(struct seq *out, struct text in, const struct pattern *p, bool invert);

/* text_head, text_tail - write the first or the last @count lines to @out. */
void text_head(struct seq *out, struct text in, size_t count);
void text_tail(struct seq *out, struct text in, size_t count);

struct text_counts {
    size_t lines, words, bytes;
};

void text_count(struct text in, struct text_counts *out);

#define TEXT_SORT_NUMBERS 1u /* sort by the number that a line begins with */
#define TEXT_SORT_REVERSE 2u
#define TEXT_SORT_UNIQUE 4u /* write equal lines only once */

/* text_sort - sort the lines and write them to @out.
 * Return:  0; -ENOMEM.
 */
int text_sort(struct seq *out, struct text in, unsigned flags);
