/* program_code.c - machine code of programs. Pure; any context. */
#include "probes/program/program_code.h"

#include "kernel/base/compiler.h"
#include "probes/insn/effects.h"
#include "probes/insn/encode.h"
#include "probes/program/program_parts.h"

uintptr_t program_load_end(const uint8_t *code, uintptr_t ip)
{
    struct insn insn;
    uint32_t disp = 0;

    if (insn_decode(&insn, code, INSN_MAX_LEN, ip))
        return 0;
    code += insn.len;
    for (size_t i = 0; i < LOAD_MARK_LEN; i++)
        if (code[i] != load_mark[i])
            return 0;
    for (size_t i = 0; i < LOAD_DISP_LEN; i++)
        disp |= (uint32_t)code[LOAD_MARK_LEN + i] << (8 * i);
    return ip + insn.len + LOAD_MARK_LEN + LOAD_DISP_LEN + disp;
}

/* ---- one program ---- */

/* program_end - let all jumps lead where they shall. Loads that fail lead to code that counts
 * this, beside the way of the others.
 */
static void program_end(struct program_code *c, const size_t *starts)
{
    size_t end;

    if (c->load_count) {
        size_t over = insn_build_jmp(c->b);

        for (unsigned i = 0; i < c->load_count; i++)
            insn_build_land(c->b, c->loads[i]);
        insn_build_inc(c->b, insn_gs_place(c->words + 8 * (int32_t)c->program->words));
        insn_build_land(c->b, over);
    }
    end = c->b->len;
    for (unsigned i = 0; i < c->jump_count; i++) {
        unsigned target = c->jumps[i].target;

        insn_build_land_at(c->b, c->jumps[i].jump,
                           target < c->program->count ? starts[target] : end);
    }
}

static uint8_t clobbers_of_op(const struct kprobe_op *op)
{
    const struct program_op *row = program_op_of(op->code);
    uint8_t clobbers = row->clobbers;
    bool has_imm = row->sources >> KPROBE_IMM & 1 && op->source == KPROBE_IMM;

    if ((has_imm || op->code == KPROBE_OP_IF) && op->code != KPROBE_OP_GET &&
        !code_is_short(op))
        clobbers |= CLOBBERS_AX;
    if (row->wants_reg && op->source <= KPROBE_REG_DX)
        clobbers |= CLOBBERS_AX;
    if (row->sources && op->source == KPROBE_VALUE)
        clobbers |= CLOBBERS_VALUE;
    if (row->counts_word && op->sub & KPROBE_KEYED)
        clobbers |= CLOBBERS_KEY;
    return clobbers;
}

static uint8_t clobbers_of_program(const struct kprobe_program *program)
{
    uint8_t clobbers = 0;

    for (unsigned i = 0; i < program->count; i++)
        clobbers |= clobbers_of_op(&program->ops[i]);
    return clobbers;
}

/* reads_unset - may the program read its accumulator or key (@what) before an operation has
 * set it? Both are 0 at its start. Most programs set them first.
 */
static bool reads_unset(const struct kprobe_program *program, uint8_t what)
{
    const struct kprobe_op *op = program->ops;

    if (!(clobbers_of_program(program) & what))
        return false;
    for (; op < program->ops + program->count; op++) {
        bool uses = clobbers_of_op(op) & what;
        bool sets = what == CLOBBERS_KEY ? program_op_of(op->code)->clobbers & what
                                         : op->code == KPROBE_OP_GET;

        if (uses && !sets)
            return true;
        if (sets)
            return false;
        if (op->skip)
            return true; /* the operation that sets it may be skipped */
    }
    return false;
}

static void program_build(struct insn_builder *b, const struct programs *p, unsigned n,
                          const struct program_code *frame)
{
    const struct kprobe_program *program = p->of[n].program;
    struct program_code c = *frame;
    size_t starts[KPROBE_OPS_MAX];

    c.program = program;
    c.words = p->of[n].words;
    if (reads_unset(program, CLOBBERS_VALUE))
        insn_build_imm(b, CODE_VALUE, 0);
    if (reads_unset(program, CLOBBERS_KEY))
        insn_build_imm(b, CODE_KEY, 0);
    for (unsigned i = 0; i < program->count; i++) {
        starts[i] = b->len;
        program_op_of(program->ops[i].code)->emit(&c, &program->ops[i], i);
    }
    program_end(&c, starts);
}

/* ---- all of a place ---- */

static uint8_t clobbers_of(const struct programs *p)
{
    uint8_t clobbers = CLOBBERS_FLAGS; /* inc */

    for (unsigned i = 0; i < p->count; i++) {
        if (p->of[i].program)
            clobbers |= clobbers_of_program(p->of[i].program);
    }
    return clobbers;
}

uint32_t programs_flags(const struct programs *p)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->of[i].program)
            return INSN_FLAGS_STATUS;
    return INSN_FLAGS_STATUS & ~(uint32_t)FLAGS_CF; /* inc alone leaves CF as it is */
}

/* The registers that the code pushes, in this order. */
struct pushed {
    bool ax, flags, value, key; /* flags: a second word, with the status flags */
};

static struct pushed pushed_of(const struct programs *p)
{
    uint8_t clobbers = clobbers_of(p);

    return (struct pushed){
        .ax = p->flags_live || clobbers & CLOBBERS_AX,
        .flags = p->flags_live && clobbers & CLOBBERS_AX,
        .value = clobbers & CLOBBERS_VALUE,
        .key = clobbers & CLOBBERS_KEY,
    };
}

static void code_enter(struct insn_builder *b, const struct programs *p,
                       struct pushed pushed)
{
    uint8_t bytes[INSN_FLAGS_SAVE_LEN];

    if (pushed.ax)
        insn_build_push(b, CODE_AX);
    if (p->flags_live)
        insn_build_bytes(b, bytes, insn_encode_flags_save(bytes));
    if (pushed.flags)
        insn_build_push(b, CODE_AX);
    if (pushed.value)
        insn_build_push(b, CODE_VALUE);
    if (pushed.key)
        insn_build_push(b, CODE_KEY);
}

static void code_leave(struct insn_builder *b, const struct programs *p,
                       struct pushed pushed)
{
    uint8_t bytes[INSN_FLAGS_RESTORE_LEN];

    if (pushed.key)
        insn_build_pop(b, CODE_KEY);
    if (pushed.value)
        insn_build_pop(b, CODE_VALUE);
    if (pushed.flags)
        insn_build_pop(b, CODE_AX);
    if (p->flags_live)
        insn_build_bytes(b, bytes, insn_encode_flags_restore(bytes));
    if (pushed.ax)
        insn_build_pop(b, CODE_AX);
}

/* frame_of - where the code finds what it has pushed. */
static void frame_of(struct program_code *c, struct pushed pushed)
{
    int32_t at = 0;

    for (unsigned i = 0; i < ARRAY_LEN(c->saved); i++)
        c->saved[i] = -1;
    if (pushed.key) {
        c->saved[CODE_KEY] = at;
        at += 8;
    }
    if (pushed.value) {
        c->saved[CODE_VALUE] = at;
        at += 8;
    }
    at += pushed.flags ? 8 : 0;
    if (pushed.ax) {
        c->saved[CODE_AX] = at;
        at += 8;
    }
    c->frame = at;
}

void programs_build(struct insn_builder *b, const struct programs *p)
{
    struct program_code frame = { .b = b, .addr = p->addr, .returned = p->returned };
    struct pushed pushed = pushed_of(p);

    frame_of(&frame, pushed);
    code_enter(b, p, pushed);
    for (unsigned i = 0; i < p->count; i++) {
        insn_build_inc(b, insn_gs_place(p->of[i].hits));
        if (p->of[i].program)
            program_build(b, p, i, &frame);
    }
    code_leave(b, p, pushed);
}
