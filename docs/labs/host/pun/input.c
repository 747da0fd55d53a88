/* input.c - makes the input of lab 9: a piece of a program, and the instructions in it
 * that shall become jumps.
 */
#include "docs/labs/host/grader.h"
#include "docs/labs/host/pun/shared.h"
#include "probes/insn/insn.h"

#include <stdbool.h>
#include <string.h>

#define SKIPPED 20000
#define PIECE (TEXT_MAX - BEHIND)

static bool is_wanted(const char *line, unsigned len)
{
    if (!strcmp(line, "four"))
        return len == 4;
    if (!strcmp(line, "three"))
        return len == 3;
    return strcmp(line, "short") || len <= 2;
}

static void piece_of(const char *line)
{
    static struct site sites[SITES_MAX];
    size_t at = 0, first, count = 0, size;
    unsigned skipped = lab_below(SKIPPED);
    const uint8_t *code = NULL;
    struct insn insn;
    struct text text;

    size = lab_program(lab_case, &code);
    while (skipped && at + 2 * TEXT_MAX < size) {
        at += insn_decode(&insn, code + at, INSN_MAX_LEN, 0) ? 1 : insn.len;
        skipped--;
    }
    first = at;
    while (at - first + INSN_MAX_LEN < PIECE && count < SITES_MAX) {
        if (insn_decode(&insn, code + at, INSN_MAX_LEN, 0)) {
            at++;
            continue;
        }
        if (is_wanted(line, insn.len))
            sites[count++] = (struct site){ .offset = at - first, .len = insn.len };
        at += insn.len;
    }
    text = shared_text(code + first, TEXT_MAX);
    shared_tell(&text, sites, count);
}

static void four(void)
{
    piece_of("four");
}

static void three(void)
{
    piece_of("three");
}

static void two(void)
{
    piece_of("short");
}

static void all(void)
{
    piece_of("all");
}

static void nothing(void)
{
}

const struct lab_line lab_lines[] = {
    { "four", four },
    { "three", three },
    { "short", two },
    { "all", all },
    { "most", all },
    { "run", nothing },
    { 0 },
};
