/* def_words.h - a line as words, and where each of them stands when they are joined by single
 * blanks: there goes the caret.
 */
#pragma once

#include <stddef.h>

struct def_word {
    const char *p; /* in the line */
    size_t len;
};

/* def_word_next - the word that begins at or behind *@line, which is moved behind it.
 * Return: it; with len 0 at the end.
 */
struct def_word def_word_next(const char **line);

/* def_word_count - how many words. */
size_t def_word_count(const char *line);

/* def_word_column - where word @index stands; behind the last one, one place behind the end.
 */
unsigned def_word_column(const char *line, size_t index);
