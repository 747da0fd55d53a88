/* op_call.c - operations that call a function: call; and those that make a record: reserve,
 * store, commit.
 */
#include "probes/core/kprobe.h"
#include "probes/program/program_parts.h"

#include <string.h>

/* code_call - the call of a function with the probe and its address. What it returns is in
 * rax.
 */
static void code_call(struct program_code *c, uintptr_t target)
{
    if (!c->has_probe)
        insn_build_get(c->b, INSN_DI, insn_sp_place(0));
    insn_build_imm(c->b, INSN_SI, c->addr);
    insn_build_call(c->b, target);
    c->has_probe = false;
}

/* code_zero - the key, and the value if @value, are 0 behind a call. */
static void code_zero(struct program_code *c, bool value)
{
    if (value && c->reads_value)
        insn_build_imm(c->b, CODE_VALUE, 0);
    if (c->reads_key)
        insn_build_imm(c->b, CODE_KEY, 0);
}

/* ---- call ---- */

static const char *call_check(struct program_facts *f, const struct kprobe_op *op)
{
    if (f->reserved)
        return "a function cannot be called before the record is committed";
    return op->imm ? NULL : "there is no function";
}

static void call_run(struct program_state *s, const struct kprobe_op *op)
{
    s->value = ((kprobe_call_t)(uintptr_t)op->imm)(s->hit->p, s->hit->ip);
    s->key = 0;
}

static void call_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    code_call(c, (uintptr_t)op->imm);
    if (c->program->count > 1) /* else the program ends here */
        code_jump_to(c, code_may_fail(c), c->program->count);
    if (c->reads_value)
        insn_build_get(c->b, CODE_VALUE, insn_reg_place(INSN_AX));
    code_zero(c, false);
}

const struct program_op program_op_call = {
    .name = "call",
    .check = call_check,
    .run = call_run,
    .emit = call_emit,
    .clobbers = CLOBBERS_CALL,
    .sets = CLOBBERS_VALUE | CLOBBERS_KEY,
    .sentence = "the value is what function # returns",
};

/* ---- reserve, store, commit ---- */

/* A record that is reserved is committed on each way, and stored to on no other. So no
 * operation in front may skip to one between the two, none between may skip past the commit,
 * and the reserve itself skips past it.
 */
static const char *reserve_check(struct program_facts *f, const struct kprobe_op *op)
{
    if (f->reserved)
        return "a record is reserved already";
    if (!op->imm)
        return "there is no function";
    f->reserved = true;
    f->reserve_at = f->at;
    f->entered |= f->targets;
    f->targets = 0;
    f->ends = false;
    return NULL;
}

static void reserve_run(struct program_state *s, const struct kprobe_op *op)
{
    kprobe_reserve_t reserve = (kprobe_reserve_t)(uintptr_t)op->imm;

    s->room = reserve(s->hit->p, s->hit->ip, s->hit->regs);
    s->value = s->key = 0;
    if (!s->room.at)
        s->next += op->skip;
}

static void reserve_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    insn_build_imm(c->b, INSN_DX, 0); /* no image */
    code_call(c, (uintptr_t)op->imm);
    insn_build_get(c->b, CODE_RECORD, insn_reg_place(INSN_AX));
    insn_build_get(c->b, CODE_TOKEN, insn_reg_place(INSN_DX));
    insn_build_test(c->b, insn_reg_place(INSN_AX), INSN_AX);
    code_zero(c, true); /* it leaves the flags as they are */
    code_skip(c, op, i, INSN_CC_E);
}

const struct program_op program_op_reserve = {
    .name = "reserve",
    .check = reserve_check,
    .run = reserve_run,
    .emit = reserve_emit,
    .clobbers = CLOBBERS_CALL,
    .sets = CLOBBERS_VALUE | CLOBBERS_KEY,
    .sentence = "reserve a record",
};

static const char *inside_check(const struct program_facts *f)
{
    uint64_t inside = (UINT64_C(2) << f->at) - (UINT64_C(2) << f->reserve_at);

    if (!f->reserved)
        return "there is no record";
    return f->entered & inside ? "it may be reached without a record" : NULL;
}

static unsigned store_size(const struct kprobe_op *op)
{
    return op->sub >> 4;
}

static const char *store_check(struct program_facts *f, const struct kprobe_op *op)
{
    unsigned size = store_size(op);

    if ((size != 1 && size != 2 && size != 4 && size != 8) || op->sub & 0xf)
        return "it stores 1, 2, 4 or 8 bytes";
    if (op->at > KPROBE_RECORD_MAX - size)
        return "it stores behind the end of a record";
    return inside_check(f);
}

static void store_run(struct program_state *s, const struct kprobe_op *op)
{
    uint64_t value = program_operand(s, op);

    memcpy((uint8_t *)s->room.at + op->at, &value, store_size(op));
}

static void store_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    struct insn_place to = insn_at_place(CODE_RECORD, (int32_t)op->at);
    unsigned size = store_size(op);

    (void)i;
    if (op->source == KPROBE_IMM && (size < 8 || code_is_short(op)))
        insn_build_put_imm(c->b, to, (int32_t)op->imm, size);
    else if (op->source == KPROBE_ADDRESS && c->addr == (uintptr_t)(int32_t)c->addr)
        insn_build_put_imm(c->b, to, (int32_t)c->addr, size);
    else
        insn_build_put(c->b, to, code_register(c, op), size);
}

const struct program_op program_op_store = {
    .name = "store",
    .sources = ANY_SOURCE | 1u << KPROBE_REG_SP | 1u << KPROBE_ADDRESS,
    .check = store_check,
    .run = store_run,
    .emit = store_emit,
    .clobbers = CLOBBERS_AX,
    .sentence = "store $ into the record",
};

static const char *commit_check(struct program_facts *f, const struct kprobe_op *op)
{
    const struct kprobe_op *reserve = &f->program->ops[f->reserve_at];
    const char *why = inside_check(f);

    if (why)
        return why;
    if (!op->imm)
        return "there is no function";
    if (f->targets >> f->at >> 1 || f->ends)
        return "an operation leads past it";
    if (f->reserve_at + reserve->skip < f->at)
        return "without a record it would be reached all the same";
    f->reserved = false;
    return NULL;
}

static void commit_run(struct program_state *s, const struct kprobe_op *op)
{
    ((void (*)(void *))(uintptr_t)op->imm)(s->room.token);
    s->value = s->key = 0;
}

static void commit_emit(struct program_code *c, const struct kprobe_op *op, unsigned i)
{
    (void)i;
    insn_build_get(c->b, INSN_DI, insn_reg_place(CODE_TOKEN));
    insn_build_call(c->b, (uintptr_t)op->imm);
    c->has_probe = false;
    code_zero(c, true);
}

const struct program_op program_op_commit = {
    .name = "commit",
    .check = commit_check,
    .run = commit_run,
    .emit = commit_emit,
    .clobbers = CLOBBERS_CALL,
    .sets = CLOBBERS_VALUE | CLOBBERS_KEY,
    .sentence = "commit the record",
};
