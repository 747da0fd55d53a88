/* program_parts.h - what an operation is made of: the files of this room share it. */
#pragma once

#include "kernel/base/regs.h"
#include "probes/insn/builder.h"
#include "probes/program/program.h"

/* ---- in C ---- */

/* A program that runs. */
struct program_state {
    const struct program_hit *hit;
    uint64_t *words;         /* of the executing CPU */
    struct kprobe_room room; /* the record, from reserve to commit */
    uint64_t value;          /* the accumulator */
    uint64_t key;
    unsigned next;    /* the operation that runs next */
    uint64_t *faults; /* the word that counts loads that have failed */
};

/* program_operand - the operand of @op, as its source says. */
uint64_t program_operand(const struct program_state *s, const struct kprobe_op *op);
/* program_word - the word that @op is about. */
uint64_t *program_word(const struct program_state *s, const struct kprobe_op *op);

/* ---- as code ---- */

/* The registers of the code. It saves those that its operations change. */
#define CODE_FLAGS INSN_AX /* the status flags, where they are live; else and if an    */
#define CODE_AX INSN_AX    /* operation changes it, free                               */
#define CODE_VALUE INSN_CX
#define CODE_KEY INSN_DX
#define CODE_RECORD INSN_R8 /* from reserve to commit */
#define CODE_TOKEN INSN_R9
#define CODE_SPARE INSN_R10 /* free in the frame of a light handler */

enum program_clobber {
    CLOBBERS_VALUE = 1,
    CLOBBERS_KEY = 2,
    CLOBBERS_AX = 4,
    CLOBBERS_FLAGS = 8,
    CLOBBERS_CALL = 31, /* what a C function may change */
    CLOBBERS_BY_C = 16,
};

/* What a program's code is made for. */
struct program_code {
    struct insn_builder *b;
    const struct kprobe_program *program;
    int32_t words;     /* displacement from GS to word 0 */
    uintptr_t addr;    /* of the probed instruction */
    int32_t frame;     /* bytes that the code has pushed below the program's stack */
    int32_t saved[16]; /* where the registers are saved, from rsp; -1: they are not */
    int32_t returned;  /* bytes above the frame that a probed call has pushed */
    bool has_probe;    /* rdi is the probe, as for a call */
    bool reads_value, reads_key; /* operations behind this one may read it, unless they
                                  * set it themselves */
    struct {
        size_t jump;     /* in the code */
        unsigned target; /* the operation it leads to */
    } jumps[KPROBE_OPS_MAX];
    unsigned jump_count;
    struct {
        size_t mark;    /* behind the load */
        unsigned index; /* of the operation */
    } loads[KPROBE_OPS_MAX];
    unsigned load_count;
};

/* code_source - where the operand of @op is: a register, or the word on the stack where
 * the code has saved the register. What is in neither is first loaded to CODE_AX.
 * code_get - load the operand to @reg.
 * code_register - the register with the operand; it is loaded to CODE_AX if it is in none.
 */
struct insn_place code_source(struct program_code *c, const struct kprobe_op *op);
void code_get(struct program_code *c, unsigned reg, const struct kprobe_op *op);
unsigned code_register(struct program_code *c, const struct kprobe_op *op);
/* code_is_short - can an instruction hold the constant of @op? */
static inline bool code_is_short(const struct kprobe_op *op)
{
    return op->imm == (uint64_t)(int64_t)(int32_t)op->imm;
}
/* code_word - the operand for the word that @op is about. */
struct insn_place code_word(const struct program_code *c, const struct kprobe_op *op);
/* code_skip - a jump over the operations that @op skips if @cond holds. @i: its number */
void code_skip(struct program_code *c, const struct kprobe_op *op, unsigned i,
               enum insn_cc cond);
/* code_may_fail - mark the load or call in front of it: if the load fails, or the function
 * is given up, the CPU goes on where the mark leads. Return: the mark, as a jump.
 */
size_t code_may_fail(struct program_code *c);
/* code_jump_to - let @jump lead to operation @target; the number of operations: the end. */
void code_jump_to(struct program_code *c, size_t jump, unsigned target);

/* ---- a source that is no register ---- */

struct program_source {
    const char *name; /* NULL: the constant itself */
    bool in_c;        /* only in a program that always runs in C */
    uint8_t clobbers; /* enum program_clobber, beside the destination */
    uint64_t (*take)(const struct program_state *s, const struct kprobe_op *op);
    /* Load it to @reg. */
    void (*emit)(struct program_code *c, unsigned reg, const struct kprobe_op *op);
};

extern const struct program_source program_sources[KPROBE_SOURCES];
/* program_source_of - the row of the source of @op, which is no register. */
static inline const struct program_source *program_source_of(const struct kprobe_op *op)
{
    return &program_sources[op->source];
}

/* ---- an operation ---- */

/* What the verifier knows in front of an operation, or at it. */
struct program_facts {
    const struct kprobe_program *program;
    unsigned at;      /* number of the operation */
    uint64_t key_max; /* the key is this at most */
    uint64_t targets; /* bit i: an operation skips to operation i */
    uint64_t entered; /* the same, of operations in front of the latest reserve */
    unsigned reserve_at;
    bool reserved; /* a record is reserved, and not committed yet */
    bool ends;     /* an operation may end the program */
};

struct program_op {
    const char *name;
    unsigned sources; /* bit i: enum kprobe_source i is a possible source */
    /* Return: NULL; or why @op is refused. */
    const char *(*check)(struct program_facts *f, const struct kprobe_op *op);
    void (*run)(struct program_state *s, const struct kprobe_op *op);
    void (*emit)(struct program_code *c, const struct kprobe_op *op, unsigned i);
    uint8_t clobbers; /* enum program_clobber of its code */
    uint8_t sets;     /* those of VALUE and KEY that it sets, and does not read */
    bool wants_reg;   /* its code needs its operand in a register */
    bool compares;    /* it compares its operand with the constant */
    bool counts_word; /* @at is a word of the program's memory */
    bool loads;       /* it may fail */
    uint64_t (*begins)(const struct kprobe_op *op); /* the first number of its words */
    /* $: the operand; @: the word; #: the constant; ?: the comparison */
    const char *sentence;
};

#define ANY_SOURCE                                                                       \
    ((1u << KPROBE_IMM | 1u << KPROBE_VALUE | 0xffffu) & ~(1u << KPROBE_REG_SP))
#define NO_SOURCE 0u

#define PROGRAM_OP_ROW(NAME, name) extern const struct program_op program_op_##name;
KPROBE_OPS(PROGRAM_OP_ROW)

extern const struct program_op *const program_rows[KPROBE_OPCODES];
/* program_op_of - the row of @code; NULL: there is none. */
const struct program_op *program_op_of(unsigned code);
