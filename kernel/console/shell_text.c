/* shell_text.c - lines selected, counted and sorted; see shell_text.h. Pure. */
#include "kernel/console/shell_text.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool text_next_line(struct text *rest, struct text *line)
{
    const char *lf;

    if (rest->len == 0)
        return false;
    lf = memchr(rest->start, '\n', rest->len);
    line->start = rest->start;
    line->len = lf ? (size_t)(lf - rest->start) : rest->len;
    rest->start += line->len + (lf != NULL);
    rest->len -= line->len + (lf != NULL);
    return true;
}

static void put_text_line(struct seq *out, struct text line)
{
    seq_write(out, line.start, line.len);
    seq_write(out, "\n", 1);
}

/* -- patterns ------------------------------------------------------------------------ */

int pattern_parse(const char *source, bool fold, struct pattern *out)
{
    memset(out, 0, sizeof(*out));
    out->fold = fold;
    out->at_start = *source == '^';
    source += out->at_start;
    while (*source) {
        if (source[0] == '$' && !source[1]) {
            out->at_end = true;
            break;
        }
        if (out->count == PATTERN_MAX)
            return -E2BIG;
        out->elements[out->count].any = *source == '.';
        source += source[0] == '\\' && source[1];
        out->elements[out->count].c = *source++;
        if (*source == '*') {
            out->elements[out->count].star = true;
            source++;
        }
        out->count++;
    }
    return 0;
}

static bool element_takes(const struct pattern *p, unsigned idx, char c)
{
    char want = p->elements[idx].c;

    if (p->elements[idx].any || c == want)
        return true;
    return p->fold && tolower((unsigned char)c) == tolower((unsigned char)want);
}

/* pass_stars - add the states that are reached without reading a character. All the ways
 * in which a pattern can match are followed at the same time: bit i of a set says that
 * elements 0..i-1 match what was read so far.
 *
 * A starred element may match nothing. So if a match has reached the position in front of
 * the element, it has reached the position behind the element as well.
 */
static uint64_t pass_stars(const struct pattern *p, uint64_t set)
{
    for (unsigned i = 0; i < p->count; i++) {
        if (p->elements[i].star)
            set |= (set & BIT(i)) << 1;
    }
    return set;
}

static uint64_t pattern_advance(const struct pattern *p, uint64_t set, char c)
{
    uint64_t next = 0;

    for (unsigned i = 0; i < p->count; i++) {
        if ((set & BIT(i)) && element_takes(p, i, c))
            next |= p->elements[i].star ? BIT(i) : BIT(i + 1);
    }
    return next;
}

bool pattern_matches(const struct pattern *p, struct text line)
{
    uint64_t set = pass_stars(p, BIT(0));

    for (size_t i = 0; i < line.len; i++) {
        if ((set & BIT(p->count)) && !p->at_end)
            return true;
        set = pattern_advance(p, set, line.start[i]);
        if (!p->at_start)
            set |= BIT(0);
        set = pass_stars(p, set);
    }
    return set & BIT(p->count);
}

size_t text_grep(struct seq *out, struct text in, const struct pattern *p, bool invert)
{
    struct text line;
    size_t count = 0;

    while (text_next_line(&in, &line)) {
        if (pattern_matches(p, line) == invert)
            continue;
        count++;
        if (out)
            put_text_line(out, line);
    }
    return count;
}

/* -- counting ------------------------------------------------------------------------ */

void text_head(struct seq *out, struct text in, size_t count)
{
    struct text line;

    while (count-- > 0 && text_next_line(&in, &line))
        put_text_line(out, line);
}

void text_tail(struct seq *out, struct text in, size_t count)
{
    struct text_counts counts;
    struct text line;
    size_t skip;

    text_count(in, &counts);
    skip = counts.lines > count ? counts.lines - count : 0;
    while (text_next_line(&in, &line)) {
        if (skip > 0)
            skip--;
        else
            put_text_line(out, line);
    }
}

static size_t count_words(struct text line)
{
    size_t words = 0;
    bool inside = false;

    for (size_t i = 0; i < line.len; i++) {
        bool blank = isspace((unsigned char)line.start[i]);

        words += !blank && !inside;
        inside = !blank;
    }
    return words;
}

void text_count(struct text in, struct text_counts *out)
{
    struct text line;

    out->lines = out->words = 0;
    out->bytes = in.len;
    while (text_next_line(&in, &line)) {
        out->lines++;
        out->words += count_words(line);
    }
}

/* -- sorting ------------------------------------------------------------------------- */

static int compare_bytes(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    int order = memcmp(x->start, y->start, x->len < y->len ? x->len : y->len);

    if (order)
        return order;
    return (x->len > y->len) - (x->len < y->len);
}

/* line_leading_number - read the number that a line begins with. The line has no NUL, so its
 * first bytes are copied.
 */
static long long line_leading_number(const struct text *line)
{
    char digits[32];
    size_t len = line->len < sizeof(digits) - 1 ? line->len : sizeof(digits) - 1;

    memcpy(digits, line->start, len);
    digits[len] = '\0';
    return strtoll(digits, NULL, 10);
}

static int compare_line_numbers(const void *a, const void *b)
{
    long long x = line_leading_number(a), y = line_leading_number(b);

    if (x != y)
        return x < y ? -1 : 1;
    return compare_bytes(a, b);
}

static void put_sorted(struct seq *out, const struct text *lines, size_t count,
                       unsigned flags)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = flags & TEXT_SORT_REVERSE ? count - 1 - i : i;

        if ((flags & TEXT_SORT_UNIQUE) && at > 0 &&
            compare_bytes(&lines[at], &lines[at - 1]) == 0)
            continue;
        put_text_line(out, lines[at]);
    }
}

int text_sort(struct seq *out, struct text in, unsigned flags)
{
    struct text_counts counts;
    struct text *lines;

    text_count(in, &counts);
    lines = kmalloc(counts.lines * sizeof(*lines));
    if (!lines)
        return -ENOMEM;
    for (size_t i = 0; i < counts.lines; i++)
        text_next_line(&in, &lines[i]);
    qsort(lines, counts.lines, sizeof(*lines),
          flags & TEXT_SORT_NUMBERS ? compare_line_numbers : compare_bytes);
    put_sorted(out, lines, counts.lines, flags);
    kfree(lines);
    return 0;
}
