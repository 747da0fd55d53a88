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
    static const uint8_t others[] = { 0x05, 0x0b, 0x1f, 0xa2, 0xa3, 0xa4, 0xa5,
                                      0xab, 0xac, 0xad, 0xaf, 0xb0, 0xb1, 0xb3,
                                      0xb6, 0xb7, 0xb8, 0xba, 0xbb, 0xbc, 0xbd,
                                      0xbe, 0xbf, 0xc0, 0xc1, 0xc3, 0xc7 };

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

static void random_insns(const char *line)
{
    uint8_t code[INSN_MAX_LEN];
    struct insn insn;

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
