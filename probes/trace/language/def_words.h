/* def_words.h - splits a line into words, and finds the column of a word for the caret. A
 * column is counted in the line whose words are joined by single blanks.
 */
#pragma once

#include <stddef.h>

struct def_word {
    const char *p; /* in the line */
    size_t len;
};

/* def_word_next - find the first word at or behind *@line, and move *@line behind it.
 * Return: the word; with len 0 at the end of the line.
 */
struct def_word def_word_next(const char **line);

/* def_word_count - count the words of @line. */
size_t def_word_count(const char *line);

/* def_word_column - return the column of word @index, from 0. For an @index behind the
 * last word it is the column of a word that would be appended.
 */
unsigned def_word_column(const char *line, size_t index);
