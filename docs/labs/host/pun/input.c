/* input.c - makes the input of lab 9: a piece of a program, and the instructions in it
 * that shall become jumps.
 */
#include "docs/labs/host/grader.h"
#include "docs/labs/host/pun/shared.h"
#include "probes/insn/insn.h"

#include <stdbool.h>
#include <string.h>

#define SKIPPED 20000
#define PIECES 3
#define JMP_LEN 5
#define MARGIN UINT64_C(0x10000)
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

/* Two sites, and room for few pads. The last byte of a displacement, `high`, is behind the
 * site. If it is negative, the pads lie below the text. A site of two bytes reaches 256
 * bytes; in two rows the pads lie just behind what can be reached. A site of 15 bytes would
 * reach them with 13 prefixes, too, which are too many.
 */
static void few_pads(unsigned nth)
{
    static const struct {
        uint8_t len;
        int8_t high;
        uint16_t from, room;
    } rows[] = { { 5, 0, 0, 10 },     { 5, 0, 0, 9 },        { 2, 0x10, 100, 10 },
                 { 2, 0x10, 100, 9 }, { 2, 0x10, 100, 4 },   { 2, -2, 100, 10 },
                 { 2, -2, 100, 9 },   { 15, 0x10, 100, 10 }, { 1, 0x10, 6, 10 },
                 { 2, 0x10, 281, 10 } };
    static uint8_t code[TEXT_MAX];
    struct site sites[2] = { { 0 } };
    struct text text = shared_text(code, TEXT_MAX);
    uint64_t near;

    text.hole_start = text.start - MARGIN;
    text.hole_end = text.start + MARGIN;
    near = text.hole_end;
    memset(code, 0x90, sizeof(code));
    for (unsigned i = 0; i < 2; i++) {
        unsigned len = rows[nth].len, last = len < JMP_LEN ? JMP_LEN - 1 : len + 2;

        sites[i] = (struct site){ .offset = 20 * i, .len = len };
        memset(code + 20 * i + len, 0, last - len);
        code[20 * i + last] = (uint8_t)rows[nth].high;
    }
    if (rows[nth].high)
        near = text.start + ((uint64_t)rows[nth].high << 24) + rows[nth].from;
    if (near < text.start) {
        text.pads_start = near;
        text.hole_start = near + rows[nth].room;
        text.pads_end = text.hole_end;
    } else {
        text.pads_start = text.hole_start;
        text.hole_end = near;
        text.pads_end = near + rows[nth].room;
    }
    shared_tell(&text, sites, 2);
}

/* The first cases have pieces of programs. */
static void all(void)
{
    if (lab_case < PIECES)
        piece_of("all");
    else
        few_pads(lab_case - PIECES);
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
