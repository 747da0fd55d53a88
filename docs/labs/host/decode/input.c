/* input.c - makes the input of lab 4: random bytes that are an instruction, and
 * instructions of programs.
 */
#define _GNU_SOURCE
#include "docs/labs/host/grader.h"
#include "probes/insn/insn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANDOM_INSNS 60
#define PROGRAM_INSNS 300
#define SKIPPED 20000

static bool is_integer_0f(unsigned opcode)
{
    static const uint8_t others[] = {
        0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0d, 0x30, 0x31,
        0x32, 0x33, 0x34, 0x35, 0x78, 0x79, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa8,
        0xa9, 0xaa, 0xab, 0xac, 0xad, 0xaf, 0xb0, 0xb1, 0xb3, 0xb6, 0xb7, 0xb8, 0xb9,
        0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf, 0xc0, 0xc1, 0xc3, 0xc7, 0xff
    };

    if ((opcode & 0xf0) == 0x40 || (opcode & 0xe0) == 0x80 || (opcode & 0xf8) == 0xc8 ||
        (opcode & 0xf8) == 0x18)
        return true;
    return memchr(others, (int)opcode, sizeof(others)) != NULL;
}

static bool is_integer(const struct insn *insn)
{
    if (insn->encoding != INSN_LEGACY || (insn->opsize66 && insn_is_near_branch(insn)))
        return false;
    if (insn->kind == INSN_XBEGIN)
        return false;
    if (insn->map == 1 && (insn->opcode | 1) == 0x79 && insn->legacy_len)
        return false; /* extrq and insertq, of SSE */
    if (insn->map == 1)
        return is_integer_0f(insn->opcode);
    return insn->map == 0 && (insn->opcode & 0xf8) != 0xd8 && insn->opcode != 0x9b;
}

static bool is_of_line(const char *line, const struct insn *insn)
{
    if (!strcmp(line, "two-byte"))
        return insn->map == 1;
    if (insn->map || !strcmp(line, "prefixes"))
        return !insn->map && insn->legacy_len;
    if (insn->legacy_len)
        return false;
    if (!strcmp(line, "one-byte"))
        return !insn->modrm_len;
    return insn->modrm_len && !insn->imm_len == !strcmp(line, "modrm");
}

static void show(const uint8_t *code)
{
    char text[2 * INSN_MAX_LEN + 1];

    for (unsigned i = 0; i < INSN_MAX_LEN; i++)
        snprintf(text + 2 * i, 3, "%02x", code[i]);
    lab_fact("%s", text);
}

static void random_bytes(const char *line, uint8_t *code)
{
    static const uint8_t prefixes[] = { 0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x64, 0x66 };
    unsigned at = 0;

    for (unsigned i = 0; i < INSN_MAX_LEN; i++)
        code[i] = (uint8_t)lab_random();
    if (!strcmp(line, "prefixes"))
        for (unsigned count = 1 + lab_below(2); count; count--)
            code[at++] = prefixes[lab_below(sizeof(prefixes))];
    if (!lab_below(3))
        code[at++] = (uint8_t)(0x40 | lab_below(16));
    if (!strcmp(line, "two-byte"))
        code[at] = 0x0f;
}

/* What each_opcode() leaves out: forms of ModRM, and several prefixes. The first case of each
 * line has all of it, so that no point depends on the seed. Zeros follow.
 */
static const struct fixed {
    const char *line;
    uint8_t bytes[INSN_MAX_LEN];
} fixed[] = {
    { "one-byte", { 0x48, 0x40, 0xb8, 1, 2, 3, 4 } }, /* a REX that counts for nothing */
    { "one-byte", { 0x49, 0xbf, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0x41, 0xb8, 1, 2, 3, 4 } }, /* a REX without W */
    { "one-byte", { 0x42, 0xb8, 1, 2, 3, 4 } },
    { "one-byte", { 0x44, 0xb8, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x00 } },
    { "modrm", { 0x89, 0x05, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x04, 0x25, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x04, 0x05, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x04, 0x24 } },
    { "modrm", { 0x89, 0x44, 0x25, 1 } },
    { "modrm", { 0x89, 0x84, 0x25, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x85, 1, 2, 3, 4 } },
    { "modrm", { 0x41, 0x89, 0x04, 0x25, 1, 2, 3, 4 } }, /* the base is r13 by REX.B */
    { "modrm", { 0x41, 0x89, 0x05, 1, 2, 3, 4 } },
    { "modrm", { 0x41, 0x89, 0x04, 0x24 } },
    { "modrm", { 0x89, 0xc4 } },
    { "modrm", { 0xf7, 0x10 } }, /* no immediate: the middle bits are 2 */
    { "modrm", { 0xf7, 0x90, 1, 2, 3, 4 } },
    { "immediate", { 0xf7, 0x05, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "immediate", { 0x80, 0x04, 0x25, 1, 2, 3, 4, 5 } },
    { "immediate", { 0x41, 0x80, 0x04, 0x25, 1, 2, 3, 4, 5 } },
    { "immediate", { 0x80, 0xc4, 1 } },
    { "prefixes",
      { 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 1, 2, 3, 4 } },
    { "prefixes", { 0x67, 0x89, 0x06 } }, /* 67 does not mean ModRM of 16 bits */
    { "prefixes", { 0x67, 0x89, 0x04, 0x24 } },
    { "prefixes", { 0x67, 0x89, 0x05, 1, 2, 3, 4 } },
    { "prefixes", { 0x48, 0x66, 0xb8, 1, 2 } }, /* a REX that counts for nothing */
    { "prefixes", { 0x48, 0x67, 0xb8, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0x41, 0xb8, 1, 2 } }, /* a REX without W */
    { "prefixes", { 0x66, 0x42, 0xb8, 1, 2 } },
    { "prefixes", { 0x66, 0x44, 0xb8, 1, 2 } },
    { "prefixes", { 0x66, 0xf7, 0x10 } },
    { "prefixes", { 0x66, 0x89, 0x04, 0x25, 1, 2, 3, 4 } },
    { "prefixes", { 0x67, 0x48, 0xa1, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0x41, 0x89, 0x04, 0x25, 1, 2, 3, 4 } },
    { "prefixes", { 0xf0, 0x01, 0x00 } },
    { "prefixes", { 0xf2, 0xa4 } },
    { "prefixes", { 0xf3, 0xa5 } },
    { "prefixes", { 0x2e, 0x89, 0x00 } },
    { "prefixes", { 0x36, 0x89, 0x00 } },
    { "prefixes", { 0x3e, 0x89, 0x00 } },
    { "prefixes", { 0x26, 0x89, 0x00 } },
    { "prefixes", { 0x64, 0x89, 0x00 } },
    { "prefixes", { 0x65, 0x89, 0x00 } },
    { "prefixes", { 0x64, 0x66, 0x2e, 0x89, 0x00 } },
    { "two-byte", { 0x0f, 0xb6, 0x04, 0x25, 1, 2, 3, 4 } },
    { "two-byte", { 0x41, 0x0f, 0xb6, 0x04, 0x25, 1, 2, 3, 4 } },
    { "two-byte", { 0x0f, 0xb6, 0x04, 0x24 } },
    { "two-byte", { 0x0f, 0x94, 0xc4 } },
    { "two-byte", { 0x0f, 0x20, 0xc0 } }, /* 20 to 23 have only registers */
    { "two-byte", { 0x0f, 0x21, 0xc0 } },
    { "two-byte", { 0x0f, 0x22, 0xc0 } },
    { "two-byte", { 0x0f, 0x23, 0xc0 } },
    { "programs", { 0x0f, 0x31 } }, /* which some pieces of programs have */
    { "programs",
      { 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0 } },
};

/* State the fixed instructions of a line. If the project's own decoder refuses one of them
 * as no instruction, it is left out.
 */
static void fixed_insns(const char *line)
{
    struct insn insn;

    for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (!strcmp(fixed[i].line, line) &&
            !insn_decode(&insn, fixed[i].bytes, sizeof(fixed[i].bytes), 0))
            show(fixed[i].bytes);
}

static bool is_wanted(const char *line, const uint8_t *code, struct insn *insn)
{
    return !insn_decode(insn, code, INSN_MAX_LEN, 0) && is_integer(insn) &&
           is_of_line(line, insn);
}

/* State each opcode behind a few prefixes, and with each middle part of a ModRM byte, in
 * memory and in a register by turns.
 */
static void each_opcode(const char *line)
{
    static const char *const heads[] = { "",         "\x48", "\x66", "\x67",
                                         "\x66\x48", "\xf2", "\xf3" };
    bool is_0f = !strcmp(line, "two-byte");

    for (unsigned i = 0; i < sizeof(heads) / sizeof(*heads) * 2048; i++) {
        uint8_t code[INSN_MAX_LEN] = { 0 };
        const char *head = heads[i / 2048];
        size_t at = strlen(head);
        struct insn insn;

        memcpy(code, head, at);
        if (is_0f)
            code[at++] = 0x0f;
        code[at++] = (uint8_t)(i / 8);
        code[at++] = (uint8_t)((i % 2 ? 0xc0 : 0x45) | i % 8 << 3);
        while (at < INSN_MAX_LEN)
            code[at++] = 1;
        if (is_wanted(line, code, &insn) && (insn.modrm_len || i % 8 == 0))
            show(code);
    }
}

static void random_insns(const char *line)
{
    uint8_t code[INSN_MAX_LEN];
    struct insn insn;

    if (!lab_case) {
        fixed_insns(line);
        each_opcode(line);
    }
    for (unsigned found = 0; found < RANDOM_INSNS;) {
        random_bytes(line, code);
        if (!is_wanted(line, code, &insn))
            continue;
        show(code);
        found++;
    }
}

static void program_insns(void)
{
    unsigned skipped = lab_below(SKIPPED), found = 0;
    const uint8_t *code = NULL;
    size_t size = lab_program(lab_case, &code);
    struct insn insn;

    if (!lab_case)
        fixed_insns("programs");
    for (size_t at = 0; at + INSN_MAX_LEN <= size && found < PROGRAM_INSNS;) {
        if (insn_decode(&insn, code + at, INSN_MAX_LEN, 0)) {
            at++;
            continue;
        }
        if (skipped) {
            skipped--;
        } else if (is_integer(&insn)) {
            show(code + at);
            found++;
        }
        at += insn.len;
    }
}

static void one_byte(void)
{
    random_insns("one-byte");
}

static void modrm(void)
{
    random_insns("modrm");
}

static void immediate(void)
{
    random_insns("immediate");
}

static void prefixes(void)
{
    random_insns("prefixes");
}

static void two_byte(void)
{
    random_insns("two-byte");
}

const struct lab_line lab_lines[] = {
    { "one-byte", one_byte },
    { "modrm", modrm },
    { "immediate", immediate },
    { "prefixes", prefixes },
    { "two-byte", two_byte },
    { "programs", program_insns },
    { 0 },
};
