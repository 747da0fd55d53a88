/* compile.c - filters, histograms and records as programs. The conditions, keys and
 * values are those of filter.c, hist.c and fetch.c.
 */
#include "probes/trace/language/compile.h"

#include "kernel/base/compiler.h"
#include "kernel/base/registers.h"
#include "probes/trace/language/event.h"
#include "probes/trace/language/filter_parts.h"
#include "probes/trace/language/hist_parts.h"

#include <string.h>

#define HEAD_LEN 8 /* bytes of a record before the address of the probe */

static NOINLINE struct kprobe_op *compile_op(struct compile *c, struct kprobe_op op)
{
    if (c->count == KPROBE_OPS_MAX) {
        c->unable = true;
        c->count--;
    }
    c->ops[c->count] = op;
    return &c->ops[c->count++];
}

#define ADD(c, op) compile_op(c, (struct kprobe_op)op)

/* ---- arguments ---- */

/* What an operation takes: a source, and a constant if that is KPROBE_IMM. */
struct taken_from {
    uint8_t source;
    uint64_t imm;
};

static const struct taken_from in_value = { KPROBE_VALUE, 0 };

static bool register_of(int64_t offset, uint8_t *number)
{
#define FIELD(name, field, number, gdb, dwarf) [number] = offsetof(struct pt_regs, field),
    static const uint16_t offsets[REGISTERS_COUNT] = { REGISTERS(FIELD) };

    for (*number = 0; *number < REGISTERS_COUNT; ++*number)
        if (offsets[*number] == offset)
            return true;
    return false;
}

static struct taken_from compile_register(struct compile *c, int64_t offset)
{
    struct taken_from out = { .source = 0 };

    if (offset == (int64_t)offsetof(struct pt_regs, ip)) {
        ADD(c, KPROBE_GET(c->def->is_return ? KPROBE_RETURN : KPROBE_ADDRESS));
        if (!c->def->is_return && !c->def->is_watch)
            ADD(c, KPROBE_ADD(KPROBE_IMM, 1)); /* regs->ip is behind an int3 */
        return in_value;
    }
    if (!register_of(offset, &out.source))
        c->unable = true;
    return out;
}

static struct taken_from compile_load(struct compile *c, const struct fetch_insn *insn)
{
    static const uint8_t in_registers[FETCH_REG_ARGS] = { KPROBE_REG_DI, KPROBE_REG_SI,
                                                          KPROBE_REG_DX, KPROBE_REG_CX,
                                                          KPROBE_REG_R8, KPROBE_REG_R9 };

    switch (insn->op) {
    case FETCH_LOAD_REG:
        return compile_register(c, insn->value);
    case FETCH_LOAD_ARG:
        if (insn->value < FETCH_REG_ARGS)
            return (struct taken_from){ .source = in_registers[insn->value] };
        break;
    case FETCH_LOAD_SP:
        return (struct taken_from){ .source = KPROBE_REG_SP };
    case FETCH_LOAD_VALUE:
        return (struct taken_from){ KPROBE_IMM, (uint64_t)insn->value };
    case FETCH_LOAD_ENTRY:
        ADD(c, KPROBE_GET_ENTRY((uint32_t)insn->value));
        return in_value;
    case FETCH_LOAD_ADDR:
        ADD(c, KPROBE_GET_ENTRY(0));
        return in_value;
    case FETCH_LOAD_NS:
        ADD(c, KPROBE_GET(KPROBE_NS));
        ADD(c, KPROBE_SUB_ENTRY((uint32_t)insn->value));
        return in_value;
    default:
        break;
    }
    c->unable = true;
    return in_value;
}

static NOINLINE void to_value(struct compile *c, struct taken_from from)
{
    if (from.source == KPROBE_VALUE)
        return;
    compile_op(c, (struct kprobe_op){ KPROBE_OP_GET, from.source, 0, 0, 0, from.imm });
}

static bool insn_derefs(const struct fetch_insn *insn)
{
    return insn->op == FETCH_DEREF || insn->op == FETCH_DEREF_USER;
}

static bool is_store_of_memory(const struct fetch_insn *insn)
{
    return insn->op == FETCH_STORE_MEM || insn->op == FETCH_STORE_MEM_USER;
}

/* compile_read - replace the value by @size bytes at it + @offset. @left: loads behind
 * it, which a load that fails skips.
 */
static void compile_read(struct compile *c, int64_t offset, unsigned size, unsigned left)
{
    bool is_size = size == 1 || size == 2 || size == 4 || size == 8;

    if (offset != (int32_t)offset || !is_size)
        c->unable = true;
    ADD(c, KPROBE_LOAD_OR_ZERO(size, offset, (uint8_t)left));
}

/* note_read - argument @i comes from memory. */
static void note_read(struct compile *c, unsigned i)
{
    uint64_t bit = UINT64_C(1) << i % 64;

    c->unable |= (c->read[i / 64] & bit) != 0;
    c->read[i / 64] |= bit;
}

/* compile_argument - make the value of argument @i, as it is stored, in its lower bytes. */
static struct taken_from compile_argument(struct compile *c, unsigned i)
{
    const struct fetch_arg *arg = &c->def->args[i];
    const struct fetch_insn *insn = arg->code;
    struct taken_from value = compile_load(c, insn++);
    unsigned loads = 0;

    while (insn_derefs(&insn[loads]))
        loads++;
    if (arg->count || arg->type->kind == FETCH_STRING ||
        (insn[loads].op != FETCH_STORE && !is_store_of_memory(&insn[loads])) ||
        insn[loads + 1].op != FETCH_END) {
        c->unable = true;
        return in_value;
    }
    if (!loads && insn->op == FETCH_STORE)
        return value;
    note_read(c, i);
    to_value(c, value);
    for (unsigned left = loads + (insn[loads].op != FETCH_STORE); left--; insn++)
        compile_read(c, insn->value, insn_derefs(insn) ? 8 : insn->size, left);
    return in_value;
}

static unsigned stored_size(const struct fetch_arg *arg)
{
    return (unsigned)fetch_fixed_size(arg);
}

/* compile_extended - the value, of whose lower @size bytes a record has room. */
static struct taken_from compile_extended(struct compile *c, struct taken_from value,
                                          unsigned size, bool is_signed)
{
    if (size == 8)
        return value;
    to_value(c, value);
    ADD(c, KPROBE_EXTEND(size, is_signed ? KPROBE_SIGNED : 0));
    return in_value;
}

/* fact_of_field - the source of a field that is no argument; 0: it is one. */
static uint8_t fact_of_field(const struct compile *c, const struct filter_field *field)
{
    if (field->kind == FILTER_CPU)
        return KPROBE_CPU;
    if (field->kind != FILTER_NUMBER)
        return 0;
    if (field->offset == offsetof(struct record_head, pid))
        return KPROBE_THREAD;
    if (field->offset == HEAD_LEN)
        return KPROBE_ADDRESS;
    return c->def->is_return && field->offset == HEAD_LEN + sizeof(uint64_t)
               ? KPROBE_RETURN
               : 0;
}

/* field_value - make the value of a field of the record, as filter_field_number() does.
 */
static struct taken_from field_value(struct compile *c, const struct filter_field *field)
{
    size_t head = HEAD_LEN + sizeof(uint64_t) * (c->def->is_return ? 2 : 1);
    uint8_t fact = fact_of_field(c, field);

    if (fact) {
        ADD(c, KPROBE_GET(fact));
        return in_value;
    }
    if (field->kind == FILTER_ONE)
        return (struct taken_from){ KPROBE_IMM, 1 };
    for (unsigned i = 0; field->kind == FILTER_NUMBER && i < c->def->arg_count; i++)
        if (head + c->def->args[i].offset == field->offset)
            return compile_extended(c, compile_argument(c, i), field->size,
                                    field->is_signed);
    c->unable = true;
    return in_value;
}

/* ---- filters ---- */

/* condition_of - the condition for which comparison @op is true; of a step that holds if
 * it is not, the opposite one. The number of the opposite condition differs in the lowest
 * bit.
 */
static uint8_t condition_of(const struct filter_step *step, bool holds)
{
    bool is_signed = step->field.is_signed;
    uint8_t condition;

    switch (step->op) {
    case FILTER_EQ:
    case FILTER_NE:
        condition = KPROBE_E;
        break;
    case FILTER_LT:
        condition = is_signed ? KPROBE_L : KPROBE_B;
        break;
    case FILTER_LE:
        condition = is_signed ? KPROBE_LE : KPROBE_BE;
        break;
    case FILTER_GT:
        condition = is_signed ? KPROBE_G : KPROBE_A;
        break;
    case FILTER_GE:
        condition = is_signed ? KPROBE_GE : KPROBE_AE;
        break;
    case FILTER_WITHIN:
        condition = KPROBE_B;
        break;
    default:
        condition = KPROBE_ANY;
        break;
    }
    return step->negate == holds ? condition ^ 1 : condition;
}

/* step_to_op - one comparison. Return: the operation, which skips if the step leads to
 * @step->next[@leads].
 */
static struct kprobe_op *step_to_op(struct compile *c, const struct filter_step *step,
                                    bool leads)
{
    bool within = step->op == FILTER_WITHIN;
    struct taken_from value = field_value(c, &step->field);

    if (step->op == FILTER_GLOB || step->op == FILTER_CPUS)
        c->unable = true;
    if (value.source == KPROBE_IMM || value.source == KPROBE_REG_SP || within) {
        to_value(c, value);
        value = in_value;
    }
    if (within)
        ADD(c, KPROBE_SUB(KPROBE_IMM, step->value));
    return compile_op(
        c, (struct kprobe_op){ KPROBE_OP_IF, value.source, condition_of(step, !leads), 0,
                               0, within ? step->end - step->value : step->value });
}

void compile_begin_part(struct compile *c)
{
    c->ends = 0;
}

void compile_end_part(struct compile *c)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->ends >> i & 1)
            c->ops[i].skip = (uint8_t)(c->count - i - 1);
}

void compile_own(struct compile *c)
{
    ADD(c, KPROBE_GET(KPROBE_OWN));
    ADD(c, KPROBE_IF(KPROBE_VALUE, KPROBE_ANY, KPROBE_OWN_BITS, 2));
    ADD(c, KPROBE_COUNT(c->words++));
    ADD(c, KPROBE_END);
}

void compile_unless_paused(struct compile *c, const struct hist *hist)
{
    c->ends |= UINT64_C(1) << c->count;
    ADD(c, KPROBE_UNLESS(hist->paused, 0));
}

/* Of the two steps that a step leads to, one is the step behind it, or the end behind the
 * last one. Its operation goes on there, and skips to the other one.
 */
void compile_filter(struct compile *c, const struct filter *filter)
{
    uint16_t leads[KPROBE_OPS_MAX]; /* for each operation: the step that it skips to */
    uint16_t starts[KPROBE_OPS_MAX];
    unsigned first = c->count;

    if (filter->count > KPROBE_OPS_MAX) {
        c->unable = true;
        return;
    }
    memset(leads, 0, sizeof(leads));
    for (unsigned i = 0; i < filter->count; i++) {
        const struct filter_step *step = &filter->step[i];
        unsigned behind = i + 1 < filter->count ? i + 1 : FILTER_YES;
        bool skips = step->next[1] != behind;

        c->unable |= step->next[!skips] != behind;
        starts[i] = (uint16_t)c->count;
        leads[step_to_op(c, step, skips) - c->ops] = step->next[skips];
    }
    for (unsigned i = first; i < c->count; i++) {
        if (c->ops[i].code != KPROBE_OP_IF)
            continue;
        if (leads[i] == FILTER_NO)
            c->ends |= UINT64_C(1) << i;
        else
            c->ops[i].skip =
                (uint8_t)((leads[i] == FILTER_YES ? c->count : starts[leads[i]]) - i - 1);
    }
}

/* ---- histograms ---- */

enum key_kind { KEY_CPU, KEY_IP, KEY_TYPE, KEY_ROW };

static enum key_kind kind_of_key(const struct compile *c, const struct hist_part *key)
{
    if (key->show == HIST_LOG2 || key->show == HIST_BUCKETS)
        return KEY_ROW; /* the key is made of the fact */
    if (key->field.kind == FILTER_CPU)
        return KEY_CPU;
    if (key->field.kind != FILTER_NUMBER)
        return KEY_ROW;
    if (key->field.offset == HEAD_LEN && c->one_address)
        return KEY_IP;
    return key->field.offset ? KEY_ROW : KEY_TYPE;
}

#define LOG2_ROWS 65
#define BYTE_ROWS 256
#define KEY_BITS_MIN 5
#define KEY_BITS_MAX 13

/* compile_any_key - set the key to the row of the value, which may be any number. A bucket
 * whose width is a power of two needs only the bits above. Return: how many rows there are.
 */
static unsigned compile_any_key(struct compile *c, const struct hist *hist,
                                const struct hist_part *key, struct compile_table *table)
{
    unsigned bits = KEY_BITS_MIN;

    if (key->show == HIST_BUCKETS) {
        c->unable |= (key->bucket & (key->bucket - 1)) != 0;
        ADD(c, KPROBE_AND(KPROBE_IMM, ~(key->bucket - 1)));
    }
    c->unable |= hist->table->size > 1u << KEY_BITS_MAX;
    while (bits < KEY_BITS_MAX && UINT64_C(1) << bits < 2 * hist->table->size)
        bits++;
    table->keys = c->unable || !c->new_keys ? NULL : c->new_keys(bits);
    table->key_bits = (uint8_t)bits;
    c->unable |= !table->keys;
    ADD(c, KPROBE_BY(table->keys, bits));
    return KPROBE_BY_FULL(bits) + 1;
}

/* compile_key - set the key to the row of @key. Return: how many rows there are. */
static unsigned compile_key(struct compile *c, const struct hist *hist,
                            const struct hist_part *key, struct compile_table *table)
{
    bool is_plain = key->show <= HIST_SYM_OFFSET;
    bool is_byte = is_plain && key->field.size == 1 && !key->field.is_signed;
    struct taken_from value = field_value(c, &key->field);

    c->unable |= !is_plain && key->show != HIST_LOG2 && key->show != HIST_BUCKETS;
    if (key->show != HIST_LOG2 || value.source == KPROBE_IMM ||
        value.source == KPROBE_REG_SP) {
        to_value(c, value);
        value = in_value;
    }
    if (key->show == HIST_LOG2) {
        ADD(c, KPROBE_KEY_LOG2_UP(value.source));
        return LOG2_ROWS;
    }
    if (!is_byte)
        return compile_any_key(c, hist, key, table);
    ADD(c, KPROBE_KEY_SMALL(KPROBE_VALUE, BYTE_ROWS - 1));
    return BYTE_ROWS;
}

static void compile_val(struct compile *c, const struct hist_part *val, uint16_t word,
                        uint8_t how)
{
    struct taken_from value = field_value(c, &val->field);
    uint8_t code = val->show == HIST_MIN   ? KPROBE_OP_MIN
                   : val->show == HIST_MAX ? KPROBE_OP_MAX
                                           : KPROBE_OP_SUM;

    if (code != KPROBE_OP_SUM)
        how |= val->field.is_signed ? KPROBE_SIGNED : 0;
    if (hist_part_is_text(val) || val->field.kind == FILTER_TIME)
        c->unable = true;
    if (value.source <= KPROBE_REG_DX || value.source == KPROBE_REG_SP ||
        value.source == KPROBE_IMM) {
        to_value(c, value);
        value = in_value;
    }
    compile_op(c, (struct kprobe_op){ code, value.source, how, 0, word, 0 });
}

void compile_hist(struct compile *c, const struct hist *hist, struct compile_table *table)
{
    uint8_t how = 0;

    *table = (struct compile_table){ .first = (uint16_t)c->words, .rows = 1 };
    c->unable |= hist->has_comm || hist->clock;
    for (unsigned i = 0; i < hist->key_count; i++) {
        const struct hist_part *key = &hist->key[i];

        if (!hist_key_is_number(key) || hist_part_is_text(key) ||
            key->show == HIST_STACK || key->field.kind == FILTER_TIME) {
            c->unable = true;
        } else if (kind_of_key(c, key) == KEY_ROW) {
            c->unable |= how; /* one is all that a program has */
            table->rows = (uint16_t)compile_key(c, hist, key, table);
            how = KPROBE_KEYED;
        }
    }
    c->words += table->rows * (1 + hist->val_count);
    c->unable |= c->words > KPROBE_PROGRAM_WORDS;
    compile_op(c, (struct kprobe_op){ KPROBE_OP_COUNT, 0, how, 0, table->first, 0 });
    for (unsigned i = 0; i < hist->val_count; i++)
        compile_val(c, &hist->val[i], (uint16_t)(table->first + table->rows * (1 + i)),
                    how);
}

static uint64_t value_of_row(const struct compile_table *table, unsigned row)
{
    if (!table->key_bits)
        return row;
    return row == KPROBE_BY_ZERO(table->key_bits) ? 0 : table->keys[row];
}

static void key_of_row(const struct hist *of, const struct compile *c, uintptr_t ip,
                       unsigned cpu, uint64_t value, uint8_t *key)
{
    for (unsigned i = 0; i < of->key_count; i++) {
        const uint64_t numbers[] = {
            [KEY_CPU] = cpu, [KEY_IP] = ip, [KEY_TYPE] = c->type, [KEY_ROW] = value
        };
        const uint64_t *number = &numbers[kind_of_key(c, &of->key[i])];

        memcpy(key + of->key[i].at, number, sizeof(*number));
    }
}

void compile_fold(struct hist *hist, const struct hist *of,
                  const struct compile_table *table, const struct compile *c,
                  uintptr_t ip, unsigned cpu,
                  uint64_t (*word)(const struct kprobe_program *program, unsigned cpu,
                                   size_t i),
                  const struct kprobe_program *program)
{
    for (unsigned row = 0; row < table->rows; row++) {
        uint8_t key[HIST_KEYS_MAX * sizeof(uint64_t)] = { 0 };
        uint64_t sums[1 + HIST_VALS_MAX];

        for (unsigned i = 0; i <= hist->val_count; i++)
            sums[i] = word(program, cpu, table->first + table->rows * i + row);
        if (!sums[0])
            continue;
        if (table->key_bits && row == KPROBE_BY_FULL(table->key_bits)) {
            hist_merge_dropped(hist, sums[0]);
            continue;
        }
        key_of_row(of, c, ip, cpu, value_of_row(table, row), key);
        hist_merge(hist, key, sums);
    }
}

size_t compile_words(const struct hist *hist, const struct compile_table *table)
{
    return table->rows * (1 + hist->val_count);
}

void compile_end(struct compile *c)
{
    if (!c->count)
        ADD(c, KPROBE_END);
}

/* ---- records ---- */

void compile_record(struct compile *c, size_t head, kprobe_reserve_t reserve,
                    void (*commit)(void *token))
{
    c->ends |= UINT64_C(1) << c->count; /* without a record */
    ADD(c, KPROBE_RESERVE(reserve, 0));
    if (c->def->is_return) {
        ADD(c, KPROBE_GET(KPROBE_RETURN));
        ADD(c, KPROBE_STORE(8, HEAD_LEN + sizeof(uint64_t), KPROBE_VALUE, 0));
    }
    for (unsigned i = 0; i < c->def->arg_count; i++) {
        const struct fetch_arg *arg = &c->def->args[i];
        struct taken_from value = compile_argument(c, i);

        compile_op(c, (struct kprobe_op){ KPROBE_OP_STORE, value.source,
                                          (uint8_t)(stored_size(arg) << 4), 0,
                                          (uint32_t)(head + arg->offset), value.imm });
    }
    ADD(c, KPROBE_COMMIT(commit));
}
