/* input.c - makes the input of lab 9: a piece of a program, and the instructions in it
 * that shall become jumps.
 */
#include "docs/labs/host/grader.h"
#include "docs/labs/host/pun/shared.h"
#include "probes/insn/insn.h"

#include <stdbool.h>
#include <string.h>

#define SKIPPED 20000
#define ALONE 2 /* pieces */
#define PIECES 3
#define NOP 0x90
#define JMP_LEN 5
#define MARGIN UINT64_C(0x10000)
#define PIECE (TEXT_MAX - BEHIND)

static uint8_t code[TEXT_MAX];
static struct site sites[SITES_MAX];
static size_t count;

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
    size_t at = 0, first, size;
    unsigned skipped = lab_below(SKIPPED);
    const uint8_t *program = NULL;
    struct insn insn;
    struct text text;

    size = lab_program(lab_case, &program);
    while (skipped && at + 2 * TEXT_MAX < size) {
        at += insn_decode(&insn, program + at, INSN_MAX_LEN, 0) ? 1 : insn.len;
        skipped--;
    }
    first = at;
    while (at - first + INSN_MAX_LEN < PIECE && count < SITES_MAX) {
        if (insn_decode(&insn, program + at, INSN_MAX_LEN, 0)) {
            at++;
            continue;
        }
        if (is_wanted(line, insn.len))
            sites[count++] = (struct site){ .offset = at - first, .len = insn.len };
        at += insn.len;
    }
    text = shared_text(program + first, TEXT_MAX);
    shared_tell(&text, sites, count);
}

/* Add a site of @len bytes. Return the bytes behind it. */
static uint8_t *add_site(unsigned len)
{
    size_t offset = 8 + 32 * count;

    sites[count++] = (struct site){ .offset = offset, .len = len };
    return code + offset + len;
}

/* Add sites of @len bytes, for which one number of prefixes leads to a pad, above the text
 * or below it: with another number the displacement begins with NOP, and is too large. The
 * last site leads into the hole if it has no prefix.
 */
static void add_narrow(unsigned len)
{
    unsigned pinned = JMP_LEN - len;

    for (unsigned prefixes = 0; prefixes < len; prefixes++) {
        add_site(len)[pinned - 1 + prefixes] = 0x10;
        add_site(len)[pinned - 1 + prefixes] = 0xf8;
    }
    memset(add_site(len), 0, pinned);
    if (len > 1)
        code[sites[count - 1].offset + JMP_LEN] = 0x10;
}

static void narrow(unsigned longest, unsigned shortest)
{
    struct text text = shared_text(code, TEXT_MAX);

    memset(code, NOP, sizeof(code));
    for (unsigned len = longest; len >= shortest; len--)
        add_narrow(len);
    shared_tell(&text, sites, count);
}

/* The first cases have pieces of programs. */
static void alone(const char *line, unsigned longest, unsigned shortest)
{
    if (lab_case < ALONE)
        piece_of(line);
    else
        narrow(longest, shortest);
}

static void four(void)
{
    alone("four", 4, 4);
}

static void three(void)
{
    alone("three", 3, 3);
}

static void two(void)
{
    alone("short", 2, 1);
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
    struct text text = shared_text(code, TEXT_MAX);
    uint64_t near;

    text.hole_start = text.start - MARGIN;
    text.hole_end = text.start + MARGIN;
    near = text.hole_end;
    memset(code, NOP, sizeof(code));
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
