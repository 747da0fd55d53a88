/* program_verify.c - checks a program once, before it is used. Pure; any context. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/program/program_parts.h"

#define ROW(NAME, name) [KPROBE_OP_##NAME] = &program_op_##name,

const struct program_op *const program_rows[KPROBE_OPCODES] = { KPROBE_OPS(ROW) };

const struct program_op *program_op_of(unsigned code)
{
    return code < KPROBE_OPCODES ? program_rows[code] : NULL;
}

static const char *check_word(const struct program_facts *f, const struct kprobe_op *op)
{
    uint64_t last = op->at + (op->sub & KPROBE_KEYED ? f->key_max : 0);

    return last < f->program->words ? NULL : "its word is not in the program's memory";
}

/* check_source - is the operand known where the program runs? */
static const char *check_source(const struct program_facts *f, const struct kprobe_op *op)
{
    if (op->source < KPROBE_VALUE)
        return NULL;
    if (program_source_of(op)->in_c && !f->program->in_c)
        return "its operand is known only at a return, at a watch or at a marker";
    if (op->source == KPROBE_ENTRY && op->at >= f->program->entry_words)
        return "its operand is a word that is not saved at the entry";
    return NULL;
}

static const char *check_op(struct program_facts *f, unsigned i)
{
    const struct kprobe_op *op = &f->program->ops[i];
    const struct program_op *row = program_op_of(op->code);
    const char *why;

    if (!row)
        return "there is no such operation";
    if (row->sources &&
        (op->source >= KPROBE_SOURCES || !(row->sources >> op->source & 1)))
        return "its operand cannot be this";
    if (op->skip > f->program->count - i - 1)
        return "it skips more operations than follow";
    why = row->sources ? check_source(f, op) : NULL;
    if (why)
        return why;
    f->at = i;
    if (op->skip)
        f->targets |= UINT64_C(1) << (i + 1 + op->skip);
    why = row->counts_word ? check_word(f, op) : NULL;
    return why || !row->check ? why : row->check(f, op);
}

static int refuse_op(struct kprobe_program_problem *problem, unsigned at, const char *why)
{
    if (problem)
        *problem = (struct kprobe_program_problem){ .why = why, .at = at };
    return -EINVAL;
}

/* A skip may jump over the operation that sets the key. So the greatest key is that of all
 * operations so far.
 */
int program_verify(const struct kprobe_program *program,
                   struct kprobe_program_problem *problem)
{
    struct program_facts facts = { .program = program };

    if (!program->count || program->count > KPROBE_OPS_MAX)
        return refuse_op(problem, program->count, "it has no operations, or too many");
    if (program->words > KPROBE_PROGRAM_WORDS)
        return refuse_op(problem, program->count, "it has too many words");
    for (unsigned i = 0; i < program->count; i++) {
        const char *why = check_op(&facts, i);

        if (why)
            return refuse_op(problem, i, why);
    }
    if (facts.reserved)
        return refuse_op(problem, facts.reserve_at, "its record is never committed");
    return 0;
}

static bool loads(const struct kprobe_program *program)
{
    for (unsigned i = 0; i < program->count; i++)
        if (program_rows[program->ops[i].code]->loads)
            return true;
    return false;
}

size_t program_words(const struct kprobe_program *program)
{
    return program->words + loads(program);
}

/* A word is in the table that begins last in front of it, if that is long enough: a table has
 * a word for each key, and a greater key may be of another table.
 */
uint64_t program_word_begins(const struct kprobe_program *program, size_t i)
{
    struct program_facts facts = { .program = program };
    const struct kprobe_op *of = NULL;
    uint64_t last = 0;

    for (unsigned k = 0; k < program->count; k++) {
        const struct kprobe_op *op = &program->ops[k];
        const struct program_op *row = program_rows[op->code];

        if (row->check)
            row->check(&facts, op);
        if (row->counts_word && op->at <= i && (!of || op->at > of->at)) {
            of = op;
            last = op->at + (op->sub & KPROBE_KEYED ? facts.key_max : 0);
        }
    }
    return of && i <= last && program_rows[of->code]->begins
               ? program_rows[of->code]->begins(of)
               : 0;
}
