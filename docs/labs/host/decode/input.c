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
    static const uint8_t others[] = { 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x1f,
                                      0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0xa0,
                                      0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa8, 0xa9,
                                      0xaa, 0xab, 0xac, 0xad, 0xaf, 0xb0, 0xb1,
                                      0xb3, 0xb6, 0xb7, 0xb8, 0xba, 0xbb, 0xbc,
                                      0xbd, 0xbe, 0xbf, 0xc0, 0xc1, 0xc3, 0xc7 };

    if ((opcode & 0xf0) == 0x40 || (opcode & 0xe0) == 0x80 || (opcode & 0xf8) == 0xc8)
        return true;
    return memchr(others, (int)opcode, sizeof(others)) != NULL;
}

static bool is_integer(const struct insn *insn)
{
    if (insn->encoding != INSN_LEGACY || (insn->opsize66 && insn_is_near_branch(insn)))
        return false;
    if (insn->kind == INSN_XBEGIN)
        return false;
    if (insn->map == 1)
        return is_integer_0f(insn->opcode);
    return insn->map == 0 && (insn->opcode & 0xf8) != 0xd8 && insn->opcode != 0x9b;
}

static bool is_of_line(const char *line, const struct insn *insn)
{
    if (!strcmp(line, "two-byte"))
        return insn->map == 1 && !insn->legacy_len;
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

/* The exceptions that the task and its hints name, and their neighbours. The first case of
 * each line has all of them, so that no point depends on the seed. Zeros follow.
 */
static const struct fixed {
    const char *line;
    uint8_t bytes[INSN_MAX_LEN];
} fixed[] = {
    { "one-byte", { 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0x41, 0xbf, 1, 2, 3, 4 } },
    { "one-byte", { 0x49, 0xbf, 1, 2, 3, 4 } },
    { "one-byte", { 0xa0, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0xa2, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0xa3, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "one-byte", { 0xc2, 1, 2 } },
    { "one-byte", { 0xca, 1, 2 } },
    { "one-byte", { 0xc8, 1, 2, 3 } },
    { "one-byte", { 0xcd, 0x80 } },
    { "one-byte", { 0x6a, 1 } },
    { "one-byte", { 0x68, 1, 2, 3, 4 } },
    { "one-byte", { 0xa8, 1 } },
    { "one-byte", { 0xa9, 1, 2, 3, 4 } },
    { "one-byte", { 0x48, 0xa9, 1, 2, 3, 4 } },
    { "one-byte", { 0xe8, 1, 2, 3, 4 } },
    { "one-byte", { 0xe9, 1, 2, 3, 4 } },
    { "one-byte", { 0xeb, 1 } },
    { "one-byte", { 0xe3, 1 } },
    { "one-byte", { 0xe4, 1 } },
    { "one-byte", { 0xe7, 1 } },
    { "one-byte", { 0xb0, 1 } },
    { "one-byte", { 0x90 } },
    { "modrm", { 0x89, 0x00 } },
    { "modrm", { 0x89, 0x05, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x04, 0x25, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x04, 0x05, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x04, 0x24 } },
    { "modrm", { 0x89, 0x44, 0x25, 1 } },
    { "modrm", { 0x89, 0x45, 1 } },
    { "modrm", { 0x89, 0x84, 0x25, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0x85, 1, 2, 3, 4 } },
    { "modrm", { 0x89, 0xc4 } },
    { "modrm", { 0x89, 0xc5 } },
    { "modrm", { 0xf7, 0xd8 } },
    { "modrm", { 0xf6, 0xd0 } },
    { "modrm", { 0xf7, 0x55, 1 } },
    { "modrm", { 0x8f, 0xc0 } },
    { "modrm", { 0x8f, 0x45, 1 } },
    { "modrm", { 0xff, 0x25, 1, 2, 3, 4 } },
    { "modrm", { 0x63, 0xc7 } },
    { "modrm", { 0x8e, 0xd8 } },
    { "modrm", { 0x8c, 0x05, 1, 2, 3, 4 } },
    { "modrm", { 0xd3, 0xe0 } },
    { "immediate", { 0xf6, 0xc0, 1 } },
    { "immediate", { 0xf6, 0xc8, 1 } },
    { "immediate", { 0xf7, 0xc0, 1, 2, 3, 4 } },
    { "immediate", { 0xf7, 0xc8, 1, 2, 3, 4 } },
    { "immediate", { 0xf7, 0x05, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "immediate", { 0x48, 0xf7, 0xc0, 1, 2, 3, 4 } },
    { "immediate", { 0x80, 0xc0, 1 } },
    { "immediate", { 0x81, 0xc0, 1, 2, 3, 4 } },
    { "immediate", { 0x83, 0xc0, 1 } },
    { "immediate", { 0x69, 0xc0, 1, 2, 3, 4 } },
    { "immediate", { 0x6b, 0xc0, 1 } },
    { "immediate", { 0xc0, 0xe0, 1 } },
    { "immediate", { 0xc1, 0xe0, 1 } },
    { "immediate", { 0xc6, 0xc0, 1 } },
    { "immediate", { 0xc7, 0xc0, 1, 2, 3, 4 } },
    { "prefixes",
      { 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 1, 2, 3, 4 } },
    { "prefixes", { 0x67, 0x89, 0x06 } }, /* 67 does not mean ModRM of 16 bits */
    { "prefixes", { 0x67, 0x89, 0x04, 0x24 } },
    { "prefixes", { 0x67, 0x89, 0x05, 1, 2, 3, 4 } },
    { "prefixes", { 0x48, 0x66, 0xb8, 1, 2 } }, /* a REX that counts for nothing */
    { "prefixes", { 0x48, 0x67, 0xb8, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "prefixes", { 0x66, 0xb8, 1, 2 } },
    { "prefixes", { 0x66, 0x8f, 0x00 } },
    { "prefixes", { 0x66, 0xf7, 0xc8, 1, 2 } },
    { "prefixes", { 0x66, 0x89, 0x04, 0x25, 1, 2, 3, 4 } },
    { "immediate", { 0x80, 0x04, 0x25, 1, 2, 3, 4, 5 } },
    { "two-byte", { 0x0f, 0xb6, 0x04, 0x25, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0x48, 0x81, 0xc0, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0x81, 0xc0, 1, 2 } },
    { "prefixes", { 0x66, 0x48, 0xa9, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0x48, 0xf7, 0xc0, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0xf7, 0xc0, 1, 2 } },
    { "prefixes", { 0x66, 0xf7, 0xd8 } },
    { "prefixes", { 0x66, 0x68, 1, 2 } },
    { "prefixes", { 0x66, 0xc7, 0xc0, 1, 2 } },
    { "prefixes", { 0x66, 0x69, 0xc0, 1, 2 } },
    { "prefixes", { 0x66, 0x05, 1, 2 } },
    { "prefixes", { 0x67, 0xa0, 1, 2, 3, 4 } },
    { "prefixes", { 0x67, 0xa3, 1, 2, 3, 4 } },
    { "prefixes", { 0x67, 0x48, 0xa1, 1, 2, 3, 4 } },
    { "prefixes", { 0x66, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8 } },
    { "prefixes", { 0x67, 0x89, 0x45, 1 } },
    { "prefixes", { 0x66, 0x83, 0xc0, 1 } },
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
    { "two-byte", { 0x0f, 0x05 } },
    { "two-byte", { 0x0f, 0x0b } },
    { "two-byte", { 0x0f, 0xa2 } },
    { "two-byte", { 0x0f, 0xc8 } },
    { "two-byte", { 0x0f, 0xcf } },
    { "two-byte", { 0x0f, 0x80, 1, 2, 3, 4 } },
    { "two-byte", { 0x0f, 0x8f, 1, 2, 3, 4 } },
    { "two-byte", { 0x48, 0x0f, 0x84, 1, 2, 3, 4 } },
    { "two-byte", { 0x0f, 0xa4, 0xc0, 1 } },
    { "two-byte", { 0x0f, 0xac, 0xc0, 1 } },
    { "two-byte", { 0x0f, 0xba, 0xe0, 1 } },
    { "two-byte", { 0x0f, 0xa5, 0xc0 } },
    { "two-byte", { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
    { "two-byte", { 0x0f, 0x06 } },
    { "two-byte", { 0x0f, 0x08 } },
    { "two-byte", { 0x0f, 0x09 } },
    { "two-byte", { 0x0f, 0x30 } },
    { "two-byte", { 0x0f, 0x31 } },
    { "two-byte", { 0x0f, 0x32 } },
    { "two-byte", { 0x0f, 0x33 } },
    { "two-byte", { 0x0f, 0x34 } },
    { "two-byte", { 0x0f, 0x35 } },
    { "two-byte", { 0x0f, 0xa0 } },
    { "two-byte", { 0x0f, 0xa1 } },
    { "two-byte", { 0x0f, 0xa8 } },
    { "two-byte", { 0x0f, 0xa9 } },
    { "two-byte", { 0x0f, 0x18, 0x00 } },
    { "two-byte", { 0x0f, 0x19, 0xc0 } },
    { "two-byte", { 0x0f, 0x1a, 0xc0 } },
    { "two-byte", { 0x0f, 0x1d, 0x45, 1 } },
    { "two-byte", { 0x0f, 0x1e, 0xc0 } },
    { "two-byte", { 0x0f, 0x0d, 0x00 } },
    { "two-byte", { 0x0f, 0x20, 0xc0 } },
    { "two-byte", { 0x0f, 0x21, 0xc0 } },
    { "two-byte", { 0x0f, 0x22, 0xc0 } },
    { "two-byte", { 0x0f, 0x23, 0xc0 } },
    { "two-byte", { 0x0f, 0x78, 0xc0 } },
    { "two-byte", { 0x0f, 0x79, 0xc0 } },
    { "two-byte", { 0x0f, 0xb9, 0x00 } },
    { "two-byte", { 0x0f, 0xff, 0x00 } },
    { "two-byte", { 0x0f, 0x00, 0xc0 } },
    { "two-byte", { 0x0f, 0x01, 0xf8 } },
    { "two-byte", { 0x0f, 0x40, 0xc0 } },
    { "two-byte", { 0x0f, 0x90, 0xc0 } },
    { "two-byte", { 0x0f, 0xaf, 0x45, 1 } },
    { "two-byte", { 0x0f, 0xb6, 0x04, 0x24 } },
    { "two-byte", { 0x0f, 0xc7, 0x08 } },
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

static void random_insns(const char *line)
{
    uint8_t code[INSN_MAX_LEN];
    struct insn insn;

    if (!lab_case)
        fixed_insns(line);
    for (unsigned found = 0; found < RANDOM_INSNS;) {
        random_bytes(line, code);
        if (insn_decode(&insn, code, sizeof(code), 0) || !is_integer(&insn) ||
            !is_of_line(line, &insn))
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
