/* program_line.c - reads conditions of `probe add`. */
#include "probes/console/program_line.h"

#include "kernel/base/compiler.h"
#include "kernel/base/registers.h"
#include "kernel/debug/params.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Three operations that ask for hidden threads come in front of the conditions, `every` and
 * the count behind them.
 */
#define LINE_OPS_MAX (PROGRAM_LINE_OPS - 5)
#define OPERAND_OPS 3 /* of a condition, at most */

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

static bool line_is_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* line_word_len - how long is the word at @text: letters and digits, or other characters? */
static size_t line_word_len(const char *text)
{
    bool is_name = line_is_of_name(*text);
    size_t len = 0;

    while (text[len] && text[len] != ' ' && text[len] != '-' &&
           line_is_of_name(text[len]) == is_name)
        len++;
    return len;
}

static bool line_is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

static struct kprobe_op *line_add(struct program_line *line, struct kprobe_op op)
{
    line->ops[line->count] = op;
    return &line->ops[line->count++];
}

static bool line_is_register(const char *text, size_t len, uint8_t *out)
{
#define NAME(name, field, number, gdb, dwarf) [number] = name,
    static const char *const names[REGISTERS_COUNT] = { REGISTERS(NAME) };

    for (*out = 0; *out < REGISTERS_COUNT; ++*out)
        if (*out != KPROBE_REG_SP && line_is_word(text, len, names[*out]))
            return true;
    return false;
}

/* What a condition compares: a source, after operations that make it. */
struct line_operand {
    uint8_t source, unused; /* bits of the word that a parameter does not have */
    bool is_signed;
};

/* line_take_param - the lower bytes of a register, as the parameter's type says: u8 ... s64,
 * or a word for a pointer.
 */
static bool line_take_param(struct program_line *line, const char *name, size_t len,
                            struct line_operand *out)
{
    static const uint8_t in[] = { KPROBE_REG_DI, KPROBE_REG_SI, KPROBE_REG_DX,
                                  KPROBE_REG_CX, KPROBE_REG_R8, KPROBE_REG_R9 };
    struct param param;
    unsigned bits;

    for (unsigned i = 0; i < ARRAY_LEN(in) && line->function; i++) {
        if (!params_get(line->function, i, &param))
            break;
        if (param.name_len != len || memcmp(param.name, name, len) != 0)
            continue;
        bits = (unsigned)strtoul(param.type + 1, NULL, 10);
        out->source = in[i];
        out->is_signed = *param.type == 's' && bits;
        if (!bits || bits == 64)
            return true;
        line_add(line, (struct kprobe_op){ KPROBE_OP_GET, in[i], 0, 0, 0, 0 });
        line_add(line, (struct kprobe_op)KPROBE_EXTEND(
                           bits / 8, out->is_signed ? KPROBE_SIGNED : 0));
        out->source = KPROBE_VALUE;
        out->unused = (uint8_t)(64 - bits);
        return true;
    }
    return false;
}

/* line_take_word - a word in memory: [REGISTER[+N]]. */
static bool line_take_word(struct program_line *line, const char **text,
                           struct line_operand *out)
{
    const char *at = *text + 1;
    size_t len = line_word_len(at);
    uint8_t reg;
    uint64_t offset = 0;

    if (!line_is_register(at, len, &reg))
        return false;
    at += len;
    if (*at == '+') {
        len = line_word_len(++at);
        if (fetch_number(at, len, &offset))
            return false;
        at += len;
    }
    if (*at != ']' || offset > INT32_MAX)
        return false;
    line_add(line, (struct kprobe_op){ KPROBE_OP_GET, reg, 0, 0, 0, 0 });
    line_add(line, (struct kprobe_op)KPROBE_LOAD(8, offset));
    out->source = KPROBE_VALUE;
    *text = line_skip_blanks(at + 1);
    return true;
}

static bool line_take_operand(struct program_line *line, const char **text,
                              struct line_operand *out)
{
    size_t len = line_word_len(*text);

    *out = (struct line_operand){ .source = 0 };
    if (**text == '[')
        return line_take_word(line, text, out);
    if (!line_is_register(*text, len, &out->source) &&
        !line_take_param(line, *text, len, out)) {
        if (!line_is_word(*text, len, "cpu") && !line_is_word(*text, len, "thread"))
            return false;
        line_add(line, (struct kprobe_op){ KPROBE_OP_GET,
                                           **text == 'c' ? KPROBE_CPU : KPROBE_THREAD, 0,
                                           0, 0, 0 });
        out->source = KPROBE_VALUE;
    }
    *text = line_skip_blanks(*text + len);
    return true;
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

static bool line_take_number(const char **text, uint64_t *out, bool is_signed)
{
    const char *number = *text;
    bool negative = *number == '-';
    size_t len = negative + line_word_len(number + negative);

    *text = line_skip_blanks(number + len);
    return !(negative || is_signed ? fetch_signed(number, len, (int64_t *)out)
                                   : fetch_number(number, len, out));
}

static const char *line_take_condition(struct program_line *line, const char **text)
{
    struct line_operand operand;
    struct kprobe_op op = { .code = KPROBE_OP_IF };
    size_t comparison;

    if (line->count + OPERAND_OPS > LINE_OPS_MAX)
        return "there are too many conditions";
    if (!line_take_operand(line, text, &operand))
        return line->function
                   ? "it begins with a register (rax ... r15), a parameter, "
                     "cpu, thread, or a word in memory ([rdi+8])"
                   : "it begins with a register (rax ... r15), cpu, thread, or "
                     "a word in memory ([rdi+8]); parameters are known at the "
                     "entry of a function with debug data";
    if (!line_take_comparison(text, &comparison))
        return "behind the operand comes one of < <= > >= == != has lacks";
    op.source = operand.source;
    op.sub = (**text == '-' || operand.is_signed) && comparisons[comparison].with_sign
                 ? comparisons[comparison].with_sign
                 : comparisons[comparison].plain;
    if (!line_take_number(text, &op.imm, op.sub != comparisons[comparison].plain))
        return "behind the comparison comes a number of 64 bits";
    if (op.sub == KPROBE_E || op.sub == KPROBE_NE) { /* as a filter of the tracer */
        op.imm <<= operand.unused;
        op.imm = operand.is_signed ? (uint64_t)((int64_t)op.imm >> operand.unused)
                                   : op.imm >> operand.unused;
    }
    line_add(line, op);
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
    return !isdigit((unsigned char)*text) || *end || !line->every ||
                   line->every > INT32_MAX
               ? "it is a number from 1 to 2147483647"
               : NULL;
}

static bool line_may_skip(const struct kprobe_op *op)
{
    return op->code == KPROBE_OP_IF || op->code == KPROBE_OP_EVERY;
}

void program_line_make(const struct program_line *line, bool hides,
                       struct kprobe_program *out, struct kprobe_op *ops)
{
    static const struct kprobe_op others[] = {
        KPROBE_GET(KPROBE_OWN),
        KPROBE_IF(KPROBE_VALUE, KPROBE_NONE, KPROBE_OWN_BITS, 0),
        KPROBE_COUNT(LINE_OTHERS),
    };
    unsigned count = 0;

    for (unsigned i = 0; hides && i < ARRAY_LEN(others); i++)
        ops[count++] = others[i];
    for (unsigned i = 0; i < line->count; i++)
        ops[count++] = line->ops[i];
    if (line->every)
        ops[count++] = (struct kprobe_op)KPROBE_EVERY(LINE_EVERY, line->every, 0);
    if (!program_line_is_empty(line))
        ops[count++] = (struct kprobe_op)KPROBE_COUNT(LINE_TAKEN);
    for (unsigned i = 0; i < count; i++)
        if (line_may_skip(&ops[i]))
            ops[i].skip = (uint8_t)(count - i - 1);
    *out = (struct kprobe_program){
        .ops = ops,
        .count = (uint16_t)count,
        .words = program_line_is_empty(line) ? LINE_TAKEN : LINE_WORDS,
    };
}
