/* shell_parse.h - a command line taken apart: words, stages of a pipe, a target file.
 *
 *     LINE  = [STAGE { '|' STAGE }] ['#' comment]
 *     STAGE = { WORD | '>' FILE | '>>' FILE }      the target only behind the last stage
 *
 * A word ends at a blank or an operator. Between quotes, '...' or "...", every character
 * stands for itself; there are no escapes, variables or patterns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SHELL_STAGES_MAX 16
#define SHELL_WORDS_MAX 1024 /* in one line */

struct shell_stage {
    int argc;    /* 0 only in a line that is empty or has nothing but a target */
    char **argv; /* argc words, then NULL */
};

struct shell_pipeline {
    unsigned stage_count; /* 1 and up */
    struct shell_stage stages[SHELL_STAGES_MAX];
    char *target; /* the file that takes the output, or NULL */
    bool append;  /* ">>" */
    char *words[SHELL_WORDS_MAX + SHELL_STAGES_MAX];
};

struct shell_parse_error {
    const char *why;
    size_t column; /* 1 and up */
};

/* shell_parse - take @line apart, in place: the words of @out are pieces of it.
 *
 * Context: any.
 * Return:  0; -EINVAL not a command line, -E2BIG too many words or stages; then @error
 *          says why and where.
 */
int shell_parse(char *line, struct shell_pipeline *out, struct shell_parse_error *error);
