/* program_source.c - where operands come from, beside registers. A further source is a row
 * here, and a number in enum kprobe_source. Pure; any context.
 */
#include "kernel/base/registers.h"
#include "probes/core/platform.h"
#include "probes/program/platform_program.h"
#include "probes/program/program_parts.h"

static uint64_t source_take_value(const struct program_state *s,
                                  const struct kprobe_op *op)
{
    (void)op;
    return s->value;
}

static uint64_t source_take_imm(const struct program_state *s, const struct kprobe_op *op)
{
    (void)s;
    return op->imm;
}

static void source_emit_imm(struct program_code *c, unsigned reg,
                            const struct kprobe_op *op)
{
    insn_build_imm(c->b, reg, op->imm);
}

static uint64_t source_take_address(const struct program_state *s,
                                    const struct kprobe_op *op)
{
    (void)op;
    return s->hit->ip;
}

static void source_emit_address(struct program_code *c, unsigned reg,
                                const struct kprobe_op *op)
{
    (void)op;
    insn_build_imm(c->b, reg, c->addr);
}

/* The facts stand in both enumerations in the same order. */
static enum plat_fact source_fact(const struct kprobe_op *op)
{
    return PLAT_FACT_CPU + (op->source - KPROBE_CPU);
}

static uint64_t source_take_fact(const struct program_state *s,
                                 const struct kprobe_op *op)
{
    (void)s;
    return plat_fact(source_fact(op));
}

static void source_emit_fact(struct program_code *c, unsigned reg,
                             const struct kprobe_op *op)
{
    insn_build_load(c->b, reg, insn_gs_place(plat_fact_disp(source_fact(op))), 4, false);
}

static uint64_t source_take_cycles(const struct program_state *s,
                                   const struct kprobe_op *op)
{
    (void)s;
    (void)op;
    return __builtin_ia32_rdtsc();
}

/* The accumulator, which comes to be the result, holds the key meanwhile. */
static void source_emit_cycles(struct program_code *c, unsigned reg,
                               const struct kprobe_op *op)
{
    static const uint8_t read_clock[] = { 0x0f, 0x31 };

    (void)op;
    if (c->reads_key)
        insn_build_get(c->b, reg, insn_reg_place(CODE_KEY));
    insn_build_bytes(c->b, read_clock, sizeof(read_clock));
    insn_build_shift(c->b, INSN_SHIFT_LEFT, INSN_DX, 32);
    insn_build_alu(c->b, INSN_ALU_OR, insn_reg_place(INSN_AX), INSN_DX);
    if (c->reads_key)
        insn_build_get(c->b, CODE_KEY, insn_reg_place(reg));
    insn_build_get(c->b, reg, insn_reg_place(INSN_AX));
}

static uint64_t source_take_ns(const struct program_state *s, const struct kprobe_op *op)
{
    (void)s;
    (void)op;
    return plat_clock_ns();
}

static uint64_t source_take_return(const struct program_state *s,
                                   const struct kprobe_op *op)
{
    (void)op;
    return s->hit->ret;
}

static uint64_t source_take_entry(const struct program_state *s,
                                  const struct kprobe_op *op)
{
    return s->hit->entry[op->at];
}

const struct program_source program_sources[KPROBE_SOURCES] = {
    [KPROBE_VALUE] = { .name = "the value", .take = source_take_value },
    [KPROBE_IMM] = { .take = source_take_imm, .emit = source_emit_imm },
    [KPROBE_ADDRESS] = { .name = "the address",
                         .take = source_take_address,
                         .emit = source_emit_address },
    [KPROBE_CPU] = { .name = "the CPU",
                     .take = source_take_fact,
                     .emit = source_emit_fact },
    [KPROBE_THREAD] = { .name = "the thread",
                        .take = source_take_fact,
                        .emit = source_emit_fact },
    [KPROBE_OWN] = { .name = "the mark of the tracer's work",
                     .take = source_take_fact,
                     .emit = source_emit_fact },
    [KPROBE_CYCLES] = { .name = "the clock of the CPU",
                        .clobbers = CLOBBERS_AX | CLOBBERS_KEY | CLOBBERS_FLAGS,
                        .take = source_take_cycles,
                        .emit = source_emit_cycles },
    [KPROBE_NS] = { .name = "the time", .in_c = true, .take = source_take_ns },
    [KPROBE_RETURN] = { .name = "the return address",
                        .in_c = true,
                        .take = source_take_return },
    [KPROBE_ENTRY] = { .name = "a word of the entry",
                       .in_c = true,
                       .take = source_take_entry },
};
