/* shell_parse.h - splits a command line into words, stages of a pipe, and a target file.
 *
 *     LINE  = [STAGE { '|' STAGE }] ['#' comment]
 *     STAGE = { WORD | '>' FILE | '>>' FILE }      a target only in the last stage
 *
 * A word ends at a blank or an operator. Between quotes, '...' or "...", every character
 * stands for itself. There are no escapes, variables or patterns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SHELL_STAGES_MAX 16
#define SHELL_WORDS_MAX 1024 /* in one line */

struct shell_stage {
    int argc;    /* 0 only if the whole line is empty or has only a target */
    char **argv; /* argc words, then NULL */
};

struct shell_pipeline {
    unsigned stage_count; /* at least 1 */
    struct shell_stage stages[SHELL_STAGES_MAX];
    char *target; /* the file that the output goes to; NULL: none */
    bool append;  /* the operator was ">>" */
    char *words[SHELL_WORDS_MAX + SHELL_STAGES_MAX];
};

struct shell_parse_error {
    const char *why;
    size_t column; /* from 1 on */
};

/* shell_parse - split @line in place: the words of @out are pieces of @line.
 * Context: any.
 * Return:  0; -EINVAL not a command line, -E2BIG too many words or stages; then @error
 *          says why and where.
 */
int shell_parse(char *line, struct shell_pipeline *out, struct shell_parse_error *error);
