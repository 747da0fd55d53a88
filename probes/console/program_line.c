/* program_line.c - reads conditions of `probe add`. */
#include "probes/console/program_line.h"

#include "kernel/base/compiler.h"
#include "kernel/base/registers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CONDITIONS_MAX (PROGRAM_LINE_OPS - 2) /* `every` and the count come behind them */

static const struct {
    const char *word;
    uint8_t plain, with_sign; /* enum kprobe_condition; 0: it has no sign */
} comparisons[] = {
    { "<", KPROBE_B, KPROBE_L },  { "<=", KPROBE_BE, KPROBE_LE },
    { ">", KPROBE_A, KPROBE_G },  { ">=", KPROBE_AE, KPROBE_GE },
    { "==", KPROBE_E, KPROBE_E }, { "!=", KPROBE_NE, KPROBE_NE },
    { "has", KPROBE_ANY, 0 },     { "lacks", KPROBE_NONE, 0 },
};

static const char *line_skip_blanks(const char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

/* line_word_len - how long is the word at @text: letters and digits, or other characters? */
static size_t line_word_len(const char *text)
{
    bool alnum = isalnum((unsigned char)*text);
    size_t len = 0;

    while (text[len] && text[len] != ' ' && text[len] != '-' &&
           (isalnum((unsigned char)text[len]) != 0) == alnum)
        len++;
    return len;
}

static bool line_is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

static bool line_take_register(const char **text, uint8_t *out)
{
#define NAME(name, field, number, gdb, dwarf) [number] = name,
    static const char *const names[REGISTERS_COUNT] = { REGISTERS(NAME) };
    size_t len = line_word_len(*text);

    for (uint8_t i = 0; i < REGISTERS_COUNT; i++)
        if (i != KPROBE_REG_SP && line_is_word(*text, len, names[i])) {
            *out = i;
            *text = line_skip_blanks(*text + len);
            return true;
        }
    return false;
}

static bool line_take_comparison(const char **text, size_t *out)
{
    size_t len = line_word_len(*text);

    for (*out = 0; *out < ARRAY_LEN(comparisons); ++*out)
        if (line_is_word(*text, len, comparisons[*out].word)) {
            *text = line_skip_blanks(*text + len);
            return true;
        }
    return false;
}

static bool line_take_number(const char **text, uint64_t *out, bool *negative)
{
    char *end;

    *negative = **text == '-';
    if (!isdigit((unsigned char)(*text)[*negative]))
        return false;
    *out = strtoul(*text + *negative, &end, 0);
    if (*negative)
        *out = -*out;
    *text = line_skip_blanks(end);
    return true;
}

static const char *line_take_condition(struct program_line *line, const char **text)
{
    struct kprobe_op op = { .code = KPROBE_OP_IF };
    size_t comparison;
    bool negative;

    if (line->count == CONDITIONS_MAX)
        return "there are too many conditions";
    if (!line_take_register(text, &op.source))
        return "it begins with a register: rax ... r15";
    if (!line_take_comparison(text, &comparison))
        return "behind the register comes one of < <= > >= == != has lacks";
    if (!line_take_number(text, &op.imm, &negative))
        return "behind the comparison comes a number";
    op.sub = negative && comparisons[comparison].with_sign
                 ? comparisons[comparison].with_sign
                 : comparisons[comparison].plain;
    line->ops[line->count++] = op;
    return NULL;
}

const char *program_line_if(struct program_line *line, const char *text)
{
    const char *why;

    text = line_skip_blanks(text);
    while (!(why = line_take_condition(line, &text)) &&
           line_is_word(text, line_word_len(text), "and"))
        text = line_skip_blanks(text + 3);
    return why || !*text ? why : "behind the number comes nothing, or `and`";
}

const char *program_line_every(struct program_line *line, const char *text)
{
    char *end;

    line->every = strtoul(text, &end, 10);
    return *end || end == text || !line->every || line->every > INT32_MAX
               ? "it is a number from 1 to 2147483647"
               : NULL;
}

void program_line_make(const struct program_line *line, struct kprobe_program *out,
                       struct kprobe_op *ops)
{
    unsigned count = 0;

    for (; count < line->count; count++)
        ops[count] = line->ops[count];
    if (line->every)
        ops[count++] = (struct kprobe_op)KPROBE_EVERY(1, line->every, 0);
    ops[count++] = (struct kprobe_op)KPROBE_COUNT(0);
    for (unsigned i = 0; i + 1 < count; i++)
        ops[i].skip = (uint8_t)(count - i - 1);
    *out = (struct kprobe_program){ .ops = ops, .count = (uint16_t)count, .words = 2 };
}
