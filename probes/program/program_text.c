/* program_text.c - programs in words. Pure; any context. */
#include "kernel/base/registers.h"
#include "probes/program/program_parts.h"

#include <stdio.h>
#include <string.h>

struct sentence {
    char *buf;
    size_t size, len;
};

static void add_text(struct sentence *t, const char *part)
{
    size_t len = strlen(part);

    for (size_t i = 0; i < len; i++, t->len++)
        if (t->len + 1 < t->size)
            t->buf[t->len] = part[i];
    if (t->size)
        t->buf[t->len < t->size ? t->len : t->size - 1] = '\0';
}

static void add_number(struct sentence *t, uint64_t number)
{
    char buf[24];

    snprintf(buf, sizeof(buf), "%llu", (unsigned long long)number);
    add_text(t, buf);
}

static void add_source(struct sentence *t, const struct kprobe_op *op)
{
#define NAME(name, field, number, gdb, dwarf) [number] = name,
    static const char *const names[REGISTERS_COUNT] = { REGISTERS(NAME) };

    if (op->source < REGISTERS_COUNT)
        add_text(t, names[op->source]);
    else if (program_source_of(op)->name)
        add_text(t, program_source_of(op)->name);
    else
        add_number(t, op->imm);
}

static void add_condition(struct sentence *t, const struct kprobe_op *op)
{
    static const char *const words[] = {
        [KPROBE_B] = " < ",
        [KPROBE_AE] = " >= ",
        [KPROBE_E] = " == ",
        [KPROBE_NE] = " != ",
        [KPROBE_BE] = " <= ",
        [KPROBE_A] = " > ",
        [KPROBE_L] = " < signed ",
        [KPROBE_GE] = " >= signed ",
        [KPROBE_LE] = " <= signed ",
        [KPROBE_G] = " > signed ",
        [KPROBE_ANY] = " has one of the bits ",
        [KPROBE_NONE] = " has none of the bits ",
    };

    add_text(t, words[op->sub]);
    add_number(t, op->imm);
}

/* add_sentence - write the row's sentence: $ stands for the operand, @ for the word, # for
 * the constant, ? for the comparison of the operand with it.
 */
static void add_sentence(struct sentence *t, const struct kprobe_op *op,
                         const char *sentence)
{
    for (; *sentence; sentence++) {
        char one[2] = { *sentence };

        if (*sentence == '$')
            add_source(t, op);
        else if (*sentence == '@')
            add_number(t, op->at);
        else if (*sentence == '#')
            add_number(t, op->imm);
        else if (*sentence == '?')
            add_condition(t, op);
        else
            add_text(t, one);
    }
}

size_t program_op_text(const struct kprobe_program *program, unsigned i, char *buf,
                       size_t size)
{
    const struct kprobe_op *op = &program->ops[i];
    const struct program_op *row = program_op_of(op->code);
    struct sentence t = { .buf = buf, .size = size };

    add_sentence(&t, op, row->sentence);
    if (op->skip && op->skip < program->count - i - 1) {
        add_text(&t, "; else skip ");
        add_number(&t, op->skip);
    }
    return t.len;
}
