/* program.h - the program of a probe: a short list of operations that says what a hit does.
 *
 *     static const struct kprobe_op ops[] = {
 *         KPROBE_IF(KPROBE_REG_DI, KPROBE_A, 100, 1),      only if rdi is above 100
 *         KPROBE_COUNT(0),                                  word 0 counts
 *     };
 *     static struct kprobe_program program = { .ops = ops, .count = 2, .words = 1 };
 *     static struct kprobe p = { .symbol_name = "vfs_read", .program = &program };
 *
 * A program has words of memory, the same number on each CPU, and works on those of the CPU
 * that executes it. It has an accumulator and a key, which are 0 at its start. Operations
 * run in their order; some skip a number of operations behind them, so each operation runs
 * at most once. A program is verified once, when its probe is registered.
 *
 * There are two ways to run it, and both mean the same: in C (program_run.c), where a hit
 * comes by a trap, at a return or at a watchpoint; and as machine code in the detour
 * (program_code.c), where a hit comes by a jump. Each operation is one row of
 * program_ops.h: its check, its C function, its code, its sentence.
 *
 * Why no lock is needed. Each change of a word is one instruction on the memory of the CPU,
 * or a loop around one compare-and-exchange. So an interrupt or NMI between two operations
 * finds whole words, and a thread that changes its CPU between two operations changes
 * words of another CPU from then on: the sum over all CPUs is the same.
 */
#pragma once

#include "probes/program/program_ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kprobe;
struct pt_regs;

#define KPROBE_OPS_MAX 32          /* operations of a program */
#define KPROBE_PROGRAM_WORDS 32768 /* words of a program on each CPU, at most */

/* Where an operand comes from: 0 to 15 are registers, as instructions number them. */
enum kprobe_source {
    KPROBE_REG_AX,
    KPROBE_REG_CX,
    KPROBE_REG_DX,
    KPROBE_REG_BX,
    KPROBE_REG_SP, /* only for KPROBE_GET: as it is before the instruction */
    KPROBE_REG_BP,
    KPROBE_REG_SI,
    KPROBE_REG_DI,
    KPROBE_REG_R8,
    KPROBE_REG_R9,
    KPROBE_REG_R10,
    KPROBE_REG_R11,
    KPROBE_REG_R12,
    KPROBE_REG_R13,
    KPROBE_REG_R14,
    KPROBE_REG_R15,
    KPROBE_VALUE, /* the accumulator */
    KPROBE_IMM,   /* the operation's constant */
    /* Only for KPROBE_GET: */
    KPROBE_ADDRESS, /* the address of the probed instruction */
    KPROBE_CPU,     /* the number of the executing CPU */
    KPROBE_THREAD,  /* the number of its thread */
    KPROBE_OWN,     /* any of KPROBE_OWN_BITS: this is the tracer's own work */
    KPROBE_CYCLES,  /* its clock: rdtsc */
    /* Only in a program that always runs in C, such as that of a return probe: */
    KPROBE_NS,     /* the time of the system's clock */
    KPROBE_RETURN, /* the address to which the function returns */
    KPROBE_ENTRY,  /* word @at of those that were saved at the function's entry */
    KPROBE_SOURCES,
};

#define KPROBE_OWN_BITS 3

/* Conditions of KPROBE_IF. The first ones have the numbers of the processor's. */
enum kprobe_condition {
    KPROBE_B = 2,  /* unsigned: below */
    KPROBE_AE = 3, /* above or equal */
    KPROBE_E = 4,
    KPROBE_NE = 5,
    KPROBE_BE = 6,
    KPROBE_A = 7,
    KPROBE_L = 12, /* signed: less */
    KPROBE_GE = 13,
    KPROBE_LE = 14,
    KPROBE_G = 15,
    KPROBE_ANY = 16,  /* any of the bits is set */
    KPROBE_NONE = 17, /* none of the bits is set */
};

struct kprobe_op {
    uint8_t code;   /* enum kprobe_opcode */
    uint8_t source; /* enum kprobe_source */
    uint8_t sub;    /* what the operation says: a condition, a size, a flag */
    uint8_t skip;   /* how many operations are skipped if a condition does not hold */
    uint32_t at;    /* a word of the program's memory, or a distance in bytes */
    uint64_t imm;
};

struct kprobe_program {
    const struct kprobe_op
        *ops; /* the caller's, unchanged while the probe is registered */
    uint16_t count;
    uint16_t words;      /* of memory, on each CPU */
    bool in_c;           /* it runs by kprobe_program_run() only */
    uint8_t entry_words; /* that are saved at the entry; @in_c */
    uint32_t first; /* the engine's: number of the counter that is word 0; 0: none yet */
};

#define KPROBE_KEYED 1u        /* in @sub: the word is @at plus the key */
#define KPROBE_SIGNED 2u       /* in @sub: numbers are signed; a load extends the sign */
#define KPROBE_UP 8u           /* in @sub, of log2: see KPROBE_KEY_LOG2_UP() */
#define KPROBE_OR_ZERO 4u      /* in @sub: a load that fails does not end the program */
#define KPROBE_RECORD_MAX 4096 /* bytes */

/* A function that KPROBE_CALL calls, as a light handler: with interrupts as they are, and
 * without an image.
 */
typedef uint64_t (*kprobe_call_t)(struct kprobe *p, uintptr_t ip);
/* A function that KPROBE_RESERVE calls; KPROBE_COMMIT calls another with the token. They are
 * not handlers: they must not fault, and must not change more than the calling
 * convention allows.
 * @regs: the image; NULL: the hit has come by a jump, and none was made
 */
struct kprobe_room {
    void *at;    /* the record; NULL: there is none */
    void *token; /* for the commit */
};
typedef struct kprobe_room (*kprobe_reserve_t)(struct kprobe *p, uintptr_t ip,
                                               const struct pt_regs *regs);

/* The accumulator. */
#define KPROBE_GET(source)                                                               \
    {                                                                                    \
        KPROBE_OP_GET, source, 0, 0, 0, 0                                                \
    }
#define KPROBE_GET_ENTRY(word)                                                           \
    {                                                                                    \
        KPROBE_OP_GET, KPROBE_ENTRY, 0, 0, word, 0                                       \
    }
#define KPROBE_CONST(value)                                                              \
    {                                                                                    \
        KPROBE_OP_GET, KPROBE_IMM, 0, 0, 0, value                                        \
    }
/* Replace it by the memory at it + @offset: @size bytes. If the memory cannot be read, the
 * program ends, and the last of its words counts that.
 */
#define KPROBE_LOAD(size, offset)                                                        \
    {                                                                                    \
        KPROBE_OP_LOAD, 0, (size) << 4, 0, (uint32_t)(offset), 0                         \
    }
#define KPROBE_LOAD_SIGNED(size, offset)                                                 \
    {                                                                                    \
        KPROBE_OP_LOAD, 0, (size) << 4 | KPROBE_SIGNED, 0, (uint32_t)(offset), 0         \
    }
/* The same, but if the memory cannot be read, the accumulator is 0 and @skip operations are
 * skipped.
 */
#define KPROBE_LOAD_OR_ZERO(size, offset, skip)                                          \
    {                                                                                    \
        KPROBE_OP_LOAD, 0, (uint8_t)((size) << 4 | KPROBE_OR_ZERO), skip,                \
            (uint32_t)(offset), 0                                                        \
    }
/* Keep its low @size bytes: 1, 2 or 4. @how: 0, or KPROBE_SIGNED. */
#define KPROBE_EXTEND(size, how)                                                         \
    {                                                                                    \
        KPROBE_OP_EXTEND, 0, (uint8_t)((size) << 4 | (how)), 0, 0, 0                     \
    }
#define KPROBE_ADD(source, imm)                                                          \
    {                                                                                    \
        KPROBE_OP_ADD, source, 0, 0, 0, imm                                              \
    }
#define KPROBE_SUB(source, imm)                                                          \
    {                                                                                    \
        KPROBE_OP_SUB, source, 0, 0, 0, imm                                              \
    }
#define KPROBE_SUB_ENTRY(word)                                                           \
    {                                                                                    \
        KPROBE_OP_SUB, KPROBE_ENTRY, 0, 0, word, 0                                       \
    }
#define KPROBE_AND(source, imm)                                                          \
    {                                                                                    \
        KPROBE_OP_AND, source, 0, 0, 0, imm                                              \
    }
#define KPROBE_OR(source, imm)                                                           \
    {                                                                                    \
        KPROBE_OP_OR, source, 0, 0, 0, imm                                               \
    }
#define KPROBE_XOR(source, imm)                                                          \
    {                                                                                    \
        KPROBE_OP_XOR, source, 0, 0, 0, imm                                              \
    }
#define KPROBE_SHL(bits)                                                                 \
    {                                                                                    \
        KPROBE_OP_SHL, 0, 0, 0, 0, bits                                                  \
    }
#define KPROBE_SHR(bits)                                                                 \
    {                                                                                    \
        KPROBE_OP_SHR, 0, 0, 0, 0, bits                                                  \
    }
#define KPROBE_SAR(bits)                                                                 \
    {                                                                                    \
        KPROBE_OP_SAR, 0, 0, 0, 0, bits                                                  \
    }

/* Go on if the condition between @source and the constant holds, else skip @skip. */
#define KPROBE_IF(source, condition, imm, skip)                                          \
    {                                                                                    \
        KPROBE_OP_IF, source, condition, skip, 0, imm                                    \
    }
/* Go on at every @n-th hit of the CPU, else skip @skip. Word @at counts. */
#define KPROBE_EVERY(at, n, skip)                                                        \
    {                                                                                    \
        KPROBE_OP_EVERY, 0, 0, skip, at, n                                               \
    }
/* Go on if the byte at @address is 0, else skip @skip. It is a variable of the kernel, in the
 * 2 GiB that a displacement reaches.
 */
#define KPROBE_UNLESS(address, skip)                                                     \
    {                                                                                    \
        KPROBE_OP_UNLESS, 0, 0, skip, 0, (uintptr_t)(address)                            \
    }
#define KPROBE_END                                                                       \
    {                                                                                    \
        KPROBE_OP_END, 0, 0, 0, 0, 0                                                     \
    }

/* The key.
 *   _LOG2     0 for 0, else the number of the value's bits, up to 64
 *   _LOG2_UP  0 for 0 and 1, else that of the value - 1: a power of two ends its row
 *   _LINEAR   0 below @low, signed; else 1 + (value - low) / step, up to 1 + @count
 *   _SMALL    the value itself, up to @count, which stands for all greater ones
 *   KPROBE_BY the place of the accumulator in @table, which all CPUs share, and which learns
 *             its values from the hits; KPROBE_BY_ZERO() for 0, and KPROBE_BY_FULL() if
 *             there is no place for the value
 */
#define KPROBE_KEY_LOG2(source)                                                          \
    {                                                                                    \
        KPROBE_OP_LOG2, source, 0, 0, 0, 0                                               \
    }
#define KPROBE_KEY_LOG2_UP(source)                                                       \
    {                                                                                    \
        KPROBE_OP_LOG2, source, KPROBE_UP, 0, 0, 0                                       \
    }
#define KPROBE_KEY_LINEAR(source, low, step, count)                                      \
    {                                                                                    \
        KPROBE_OP_LINEAR, source, 0, 0, (uint32_t)(low),                                 \
            (uint64_t)(step) | (uint64_t)(count) << 32                                   \
    }
#define KPROBE_KEY_SMALL(source, count)                                                  \
    {                                                                                    \
        KPROBE_OP_SMALL, source, 0, 0, 0, count                                          \
    }

/* @table: 1 << @bits words, 0 at first, at a multiple of 128
 * @bits:  5 to 13
 */
#define KPROBE_BY(table, bits)                                                           \
    {                                                                                    \
        KPROBE_OP_BY, KPROBE_VALUE, 0, 0, bits, (uintptr_t)(table)                       \
    }
#define KPROBE_BY_ZERO(bits) (1u << (bits))
#define KPROBE_BY_FULL(bits) ((1u << (bits)) + 1)

/* The words. @keyed: 0, or KPROBE_KEYED. */
#define KPROBE_COUNT(at)                                                                 \
    {                                                                                    \
        KPROBE_OP_COUNT, 0, 0, 0, at, 0                                                  \
    }
#define KPROBE_COUNT_KEYED(at)                                                           \
    {                                                                                    \
        KPROBE_OP_COUNT, 0, KPROBE_KEYED, 0, at, 0                                       \
    }
#define KPROBE_SUM(at, source, keyed)                                                    \
    {                                                                                    \
        KPROBE_OP_SUM, source, keyed, 0, at, 0                                           \
    }
/* @how: KPROBE_KEYED and KPROBE_SIGNED, or neither. The words begin as the greatest or
 * smallest number there is.
 */
#define KPROBE_MIN(at, source, how)                                                      \
    {                                                                                    \
        KPROBE_OP_MIN, source, how, 0, at, 0                                             \
    }
#define KPROBE_MAX(at, source, how)                                                      \
    {                                                                                    \
        KPROBE_OP_MAX, source, how, 0, at, 0                                             \
    }

/* Functions. Behind a call, the accumulator is what the function has returned, or 0 behind a
 * reserve and a commit, and the key is 0. A record is reserved, stored to, and committed; if
 * none can be had, @skip operations are skipped, the commit among them.
 */
#define KPROBE_CALL(function)                                                            \
    {                                                                                    \
        KPROBE_OP_CALL, 0, 0, 0, 0, (uintptr_t)(function)                                \
    }
#define KPROBE_RESERVE(function, skip)                                                   \
    {                                                                                    \
        KPROBE_OP_RESERVE, 0, 0, skip, 0, (uintptr_t)(function)                          \
    }
#define KPROBE_STORE(size, offset, source, imm)                                          \
    {                                                                                    \
        KPROBE_OP_STORE, source, (size) << 4, 0, offset, imm                             \
    }
#define KPROBE_COMMIT(function)                                                          \
    {                                                                                    \
        KPROBE_OP_COMMIT, 0, 0, 0, 0, (uintptr_t)(function)                              \
    }

/* Why a program is refused. */
struct kprobe_program_problem {
    const char *why; /* a part of a sentence */
    unsigned at;     /* the operation; the number of operations: the program as a whole */
};

/* program_verify - check a program: each operation is known and its operands are, skips
 * lead forward and not past the end, words and keys stay in the program's memory.
 * Context: any.  Return: 0; -EINVAL, and @problem filled.
 */
int program_verify(const struct kprobe_program *program,
                   struct kprobe_program_problem *problem);

/* program_words - how many words of memory @program needs on each CPU: its own, and one
 * behind them that counts loads that have failed.
 * program_word_begins - the number with which word @i of @program begins.
 * Context: any.  @program: verified
 */
size_t program_words(const struct kprobe_program *program);
uint64_t program_word_begins(const struct kprobe_program *program, size_t i);

/* program_run - run @program in C, for @hit.
 * @words: those of the executing CPU
 * Context: any, preemption off.
 */
struct program_hit {
    struct kprobe *p; /* the probe whose hit it is; it need not be that of the program */
    uintptr_t ip;     /* for KPROBE_ADDRESS */
    const struct pt_regs *regs;
    uintptr_t ret;         /* for KPROBE_RETURN */
    const uint64_t *entry; /* for KPROBE_ENTRY */
};
void program_run(const struct kprobe_program *program, uint64_t *words,
                 const struct program_hit *hit);

/* program_word_of - word @i of @program on CPU @cpu. The probe is registered.
 * program_sum - the sum of word @i over all CPUs. Context: any.
 */
uint64_t program_word_of(const struct kprobe_program *program, unsigned cpu, size_t i);
uint64_t program_sum(const struct kprobe_program *program, size_t i);

/* program_begin_words - let @count words from @first on begin anew, on the executing CPU: the
 * other CPUs do it for themselves. Context: any, interrupts off.
 */
void program_begin_words(const struct kprobe_program *program, size_t first,
                         size_t count);

/* program_op_text - write operation @i as a sentence. Return: its whole length. */
size_t program_op_text(const struct kprobe_program *program, unsigned i, char *buf,
                       size_t size);

/* kprobe_exchange - let hits of @count probes run other programs, or call other handlers, all
 * of them or none. From the return on no hit runs what was there before; no hit is lost.
 * @p:       registered, and without other handlers than a pre-handler; once in @x
 * @program: its words begin anew; or NULL, and @handler is called
 * The words of a program from before stay as they are until kprobe_program_end().
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EINVAL, -ENOMEM, -EDEADLK called from a handler: nothing has changed. With one
 *          probe and a handler there is no -ENOMEM.
 */
struct kprobe_exchange {
    struct kprobe *p;
    struct kprobe_program *program;
    int (*handler)(struct kprobe *p, struct pt_regs *regs);
};
int kprobe_exchange(const struct kprobe_exchange *x, size_t count);
/* kprobe_program_begin - give a program its words that no probe has, but a handler runs:
 * that of a return probe, of a watch, of a marker. Return: 0; -EINVAL, -ENOMEM.
 * kprobe_program_end - give back the words of a program that no probe has any more, and no
 * handler runs. Context: thread.  Locks: takes PLAT_PROBES.
 * kprobe_program_run - run @program in C. Context: any, preemption off.
 */
int kprobe_program_begin(struct kprobe_program *program);
void kprobe_program_end(struct kprobe_program *program);
void kprobe_program_run(const struct kprobe_program *program,
                        const struct program_hit *hit);
