/* program_code.c - machine code of programs. Pure; any context. */
#include "probes/program/program_code.h"

#include "kernel/base/compiler.h"
#include "kernel/base/nokprobe.h"
#include "probes/core/kprobe.h"
#include "probes/core/platform.h"
#include "probes/insn/effects.h"
#include "probes/insn/encode.h"
#include "probes/program/program_parts.h"

/* load_len - the length of a load as load_emit() makes it: [REX] [0f] opcode ModRM, which
 * says how long the displacement is. @code: its first bytes
 */
NOKPROBE_INLINE unsigned load_len(uint64_t code)
{
    unsigned len = (code & 0xf0) == 0x40;

    len += (code >> 8 * len & 0xff) == 0x0f;
    len++;
    return len + 1 + (code >> 8 * len & 0x40 ? 1 : 4);
}

bool program_load_fails(struct pt_regs *regs)
{
    uint64_t code, behind;
    uintptr_t ip = regs->ip;

    if (plat_read(&code, ip))
        return false;
    ip += load_len(code);
    if (plat_read(&behind, ip) || !program_is_mark(behind))
        return false;
    regs->ip = program_mark_leads(ip, behind);
    return true;
}
NOKPROBE(program_load_fails);

/* ---- one program ---- */

/* loads_fail - emit the code to which loads lead that have failed: it counts that. The
 * loads that end the program share it, and come last; each other one goes on at its own
 * operation.
 */
static void loads_fail(struct program_code *c)
{
    struct insn_place faults = insn_gs_place(c->words + 8 * (int32_t)c->program->words);
    bool ends = false;

    for (unsigned i = 0; i < c->load_count; i++) {
        unsigned index = c->loads[i].index;
        const struct kprobe_op *op = &c->program->ops[index];

        if (!(op->sub & KPROBE_OR_ZERO))
            continue;
        insn_build_land(c->b, c->loads[i].mark);
        insn_build_inc(c->b, faults);
        insn_build_imm(c->b, CODE_VALUE, 0);
        code_jump_to(c, insn_build_jmp(c->b), index + 1 + op->skip);
    }
    for (unsigned i = 0; i < c->load_count; i++) {
        if (c->program->ops[c->loads[i].index].sub & KPROBE_OR_ZERO)
            continue;
        insn_build_land(c->b, c->loads[i].mark);
        ends = true;
    }
    if (ends)
        insn_build_inc(c->b, faults);
}

/* program_end - let all jumps lead where they shall. The code for loads that fail lies
 * beside the way of the others.
 */
static void program_end(struct program_code *c, const size_t *starts)
{
    size_t end;

    if (c->load_count) {
        size_t over = insn_build_jmp(c->b);

        loads_fail(c);
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

    if ((has_imm || row->compares) && !(row->sets & CLOBBERS_VALUE) && !code_is_short(op))
        clobbers |= CLOBBERS_AX;
    if (row->wants_reg && op->source <= KPROBE_REG_DX)
        clobbers |= CLOBBERS_AX;
    if (row->sources && op->source >= KPROBE_VALUE)
        clobbers |= program_source_of(op)->clobbers;
    if (row->sources && op->source == KPROBE_VALUE)
        clobbers |= CLOBBERS_VALUE;
    if (row->counts_word && op->sub & KPROBE_KEYED)
        clobbers |= CLOBBERS_KEY;
    return clobbers;
}

static uint8_t program_clobbers(const struct kprobe_program *program)
{
    uint8_t clobbers = 0;

    for (unsigned i = 0; i < program->count; i++)
        clobbers |= clobbers_of_op(&program->ops[i]);
    return clobbers;
}

/* op_reads - does @op read the accumulator, or the key? */
static bool op_reads(const struct kprobe_op *op, uint8_t what)
{
    const struct program_op *row = program_op_of(op->code);
    bool changes_value = row->clobbers & CLOBBERS_VALUE && !(row->sets & CLOBBERS_VALUE);

    if (what == CLOBBERS_KEY)
        return row->counts_word && op->sub & KPROBE_KEYED;
    return changes_value || (row->sources && op->source == KPROBE_VALUE);
}

/* reads_unset - may operation @from, or one behind it, read the accumulator or the key
 * (@what) before an operation from @from on has set it? Behind a skip, what sets it may
 * be skipped.
 */
static bool reads_unset(const struct kprobe_program *program, unsigned from, uint8_t what)
{
    bool may_be_set = true;

    for (unsigned i = from; i < program->count; i++) {
        const struct kprobe_op *op = &program->ops[i];

        if (op_reads(op, what))
            return true;
        if (may_be_set && program_op_of(op->code)->sets & what)
            return false;
        may_be_set &= !op->skip;
    }
    return false;
}

/* reads_behind - the same behind operation @i, on the way of its skip, too. */
static bool reads_behind(const struct kprobe_program *program, unsigned i, uint8_t what)
{
    unsigned skip = program->ops[i].skip;

    return reads_unset(program, i + 1, what) ||
           (skip && reads_unset(program, i + 1 + skip, what));
}

static void program_build(struct program_code *c, const struct kprobe_program *program,
                          int32_t words)
{
    size_t starts[KPROBE_OPS_MAX];

    c->program = program;
    c->words = words;
    c->jump_count = c->load_count = 0;
    if (reads_unset(program, 0, CLOBBERS_VALUE))
        insn_build_imm(c->b, CODE_VALUE, 0);
    if (reads_unset(program, 0, CLOBBERS_KEY))
        insn_build_imm(c->b, CODE_KEY, 0);
    for (unsigned i = 0; i < program->count; i++) {
        starts[i] = c->b->len;
        c->reads_value = reads_behind(program, i, CLOBBERS_VALUE);
        c->reads_key = reads_behind(program, i, CLOBBERS_KEY);
        program_op_of(program->ops[i].code)->emit(c, &program->ops[i], i);
    }
    program_end(c, starts);
}

/* ---- all of a place ---- */

static uint8_t clobbers_of(const struct programs *p)
{
    uint8_t clobbers = CLOBBERS_FLAGS; /* inc */

    for (unsigned i = 0; i < p->count; i++) {
        if (p->of[i].program)
            clobbers |= program_clobbers(p->of[i].program);
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

/* light_frame_of - the same, in the frame of a light handler. */
static void light_frame_of(struct program_code *c, const struct programs *p)
{
    static const uint8_t by_c[] = { INSN_R11, INSN_R10, INSN_R9, INSN_R8, INSN_AX,
                                    INSN_CX,  INSN_DX,  INSN_SI, INSN_DI };

    for (unsigned i = 0; i < ARRAY_LEN(c->saved); i++)
        c->saved[i] = -1;
    for (unsigned i = 0; i < ARRAY_LEN(by_c); i++)
        c->saved[by_c[i]] = p->below + 8 * (int32_t)i;
    c->frame = p->below + 8 * (int32_t)ARRAY_LEN(by_c);
}

bool programs_call(const struct programs *p)
{
    return programs_caller(p) != p->count;
}

unsigned programs_caller(const struct programs *p)
{
    unsigned i = 0;

    while (i < p->count &&
           !(p->of[i].program && program_clobbers(p->of[i].program) & CLOBBERS_BY_C))
        i++;
    return i;
}

/* caller_enter - the probe of program @i, which calls, is another than that of the frame:
 * from now on it is this one. Code must ask whether it is enabled.
 * Return: a jump for when it is not.
 */
static size_t caller_enter(struct program_code *c, struct kprobe *p)
{
    insn_build_imm(c->b, INSN_DI, (uintptr_t)p);
    insn_build_put(c->b, insn_sp_place(0), INSN_DI, 8);
    insn_build_test_imm(c->b, insn_at_place(INSN_DI, offsetof(struct kprobe, flags)),
                        KPROBE_FLAG_DISABLED);
    c->has_probe = true;
    return insn_build_jcc(c->b, INSN_CC_NE);
}

static void probe_build(struct program_code *c, const struct programs *p, unsigned i,
                        unsigned first)
{
    const struct kprobe_program *program = p->of[i].program;
    bool enters = i > first && program && program_clobbers(program) & CLOBBERS_BY_C;
    size_t over = 0;

    if (enters)
        over = caller_enter(c, p->of[i].probe);
    insn_build_inc(c->b, insn_gs_place(p->of[i].hits));
    if (program)
        program_build(c, program, p->of[i].words);
    if (enters)
        insn_build_land(c->b, over);
}

COLD void programs_build(struct insn_builder *b, const struct programs *p)
{
    struct program_code c = { .b = b, .addr = p->addr, .returned = p->returned };
    unsigned first = programs_caller(p);
    bool calls = first != p->count;
    struct pushed pushed = pushed_of(p);

    if (calls) {
        light_frame_of(&c, p);
        c.has_probe = true;
    } else {
        frame_of(&c, pushed);
        code_enter(b, p, pushed);
    }
    for (unsigned i = 0; i < p->count; i++)
        probe_build(&c, p, i, first);
    if (!calls)
        code_leave(b, p, pushed);
}
