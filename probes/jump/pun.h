/* pun.h - plans that make any instruction a jump, though it may be shorter than one. Pure.
 *
 * Exactly one instruction is replaced. Where it is shorter than the jump, the bytes behind
 * it serve as the jump's displacement, and stay what they are: instructions of their own.
 * The jump then lands where they happen to point, and a pad is put there, a second jump to
 * where the first was meant to go. docs/optimize.md draws it.
 *
 *   direct   5 bytes or more: the jump reaches the detour by itself; so does an instruction
 *            with dead padding behind it, which the jump may overwrite
 *   call     a direct call keeps its opcode and gets another displacement
 *   plain    the bytes behind the instruction are the upper bytes of the displacement
 *   padded   prefixes before the opcode, so that other bytes are
 *   far      there is room for a whole jump, but it goes to a pad: its displacement has to
 *            suit the instruction before it
 *
 * Words: the jump at addr, with k prefixes, is 5 + k bytes long. It writes the first
 * jump_len of them and pins the rest, up to its span: a later change of a pinned byte
 * changes where this jump goes.
 *
 * A batch is planned as a whole, from high addresses to low ones, since what an instruction
 * becomes is what the one before it has to live with. Where a plan fails, the plans of up to
 * five instructions behind are made again together with it, and instructions without a probe
 * that stand in the way become jumps as well, in agreement with the caller: they are evicted.
 */
#pragma once

#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUN_JUMP_LEN 5 /* bytes of a jump without prefixes */
#define PUN_JUMP_MAX 9 /* bytes that a jump writes: at most 4 prefixes */
#define PUN_AHEAD 64   /* bytes behind an instruction that its plan may look at */
#define PUN_NEAR 16    /* bytes behind, in which it may have to change other plans */
#define PUN_PAD_LEN 5  /* a pad is one jmp rel32 */

enum pun_rung {
    PUN_NONE, /* no jump: @why says so, and the int3 tier keeps the instruction */
    PUN_DIRECT,
    PUN_CALL,
    PUN_PLAIN,
    PUN_PADDED,
    PUN_FAR,
    PUN_RUNGS,
};

enum pun_why {
    PUN_OK,
    PUN_OUTSIDE, /* whatever it could become lands where no pad can be */
    PUN_TAKEN,   /* it lands on other pads */
    PUN_UNKNOWN, /* bytes behind it cannot be read */
    PUN_WHYS,
};

/* One instruction. */
struct pun {
    /* The question. */
    uintptr_t addr;
    uintptr_t detour; /* what the jump shall reach; 0: not known yet, so through a pad */
    uint8_t bytes[INSN_MAX_LEN]; /* the original instruction */
    uint8_t len;                 /* of it, 1..15 */
    bool is_call;                /* CALL_REL: its last four bytes are the displacement */

    /* The answer. The caller also fills these fields in when the instruction is a jump
     * already: they are then its present plan, which the planner keeps if it can. For an
     * instruction that is not a jump yet, rung is PUN_NONE.
     */
    uint8_t rung;               /* enum pun_rung */
    uint8_t prefixes;           /* k */
    uint8_t jump_len;           /* bytes written from addr on; more than len: padding */
    uint8_t span;               /* bytes the jump extends over: 5 + k; call: len */
    uint8_t jump[PUN_JUMP_MAX]; /* the bytes to write; not changed where rung is NONE */
    uintptr_t pad;              /* where it lands; 0: on the detour itself */
    bool is_kept;               /* jump and pad are those of the question */
    bool is_evicted; /* has no probe: from the neighbour callback, now or before */
    uint8_t why;     /* enum pun_why; behind PUN_NONE */

    struct pun *next; /* the planner's */
};

/* Questions that the planner cannot answer itself. All callbacks are pure; they speak of
 * the text as it will be when the batch is in, as far as the batch itself does not decide
 * it.
 */
struct pun_env {
    /* Pads lie in [pads_start, pads_end), but not in [hole_start, hole_end). Every detour
     * is in reach of a jump from there.
     */
    uintptr_t pads_start, pads_end, hole_start, hole_end;
    void *arg;

    /* pad_is_free - can the five bytes from @pad on become a pad? Asked only inside the
     * range. A batch's own new pads are the planner's business.
     */
    bool (*pad_is_free)(void *arg, uintptr_t pad);

    /* byte_at - the byte at @addr, which belongs to no member of the batch. If a member's
     * jump had written over it (padding), then the byte that was there before the jump.
     * Return: false: the byte is not known, and the planner lets no jump depend on it.
     */
    bool (*byte_at)(void *arg, uintptr_t addr, uint8_t *byte);

    /* is_padding - is the byte at @addr never executed and pinned by no jump outside of the
     * batch, and may be changed? NULL: never.
     */
    bool (*is_padding)(void *arg, uintptr_t addr);

    /* neighbour - the instruction at @addr, which is no member: may it become a jump, so
     * that a member can? Fills in addr, bytes, len, is_call of @out; the rest is zero.
     * The answer is no where a probe is that is no member, or where a byte of it is pinned
     * by a jump that is no member. NULL: never.
     */
    bool (*neighbour)(void *arg, uintptr_t addr, struct pun *out);
};

struct pun_batch {
    const struct pun_env *env;
    struct pun *puns; /* ascending addresses, instructions that do not overlap */
    size_t count;     /* 1 and up */

    struct pun *evicted; /* receives them, ascending; NULL with evicted_max 0 */
    size_t evicted_max;
    size_t evicted_count; /* of this call */

    void *work; /* pun_work_len() bytes, 8-byte aligned, any content */
};

/* pun_work_len - bytes of memory that planning @count instructions takes. Context: any. */
size_t pun_work_len(size_t count, size_t evicted_max);

/* pun_plan - answer all questions of @batch.
 *
 * Members of a batch: each instruction that shall become a jump, and each jump of whose
 * pinned bytes one may change (because it lies in a member, or in an instruction that the
 * neighbour callback offers), with its plan of now. A member that keeps its plan is marked.
 * An instruction with a probe in the PUN_NEAR bytes behind a new member should be one too,
 * with the plan of now or without one: that gives the search room, and in most cases
 * changes nothing. Evicted ones of before come back as members with is_evicted.
 *
 * The pad of a plan that was not kept is the caller's to free, once no thread can be on it;
 * it is not used for another jump by this call.
 *
 * The plans hold together: all of them have to be written, evicted ones included, with the
 * bytes of a successor in place before its predecessor's first byte. A member that ends as
 * PUN_NONE has int3 as its first byte then, an evicted one its own, and its other bytes as
 * in @bytes.
 *
 * Context: any.
 * Return:  how many members ended as PUN_NONE.
 * Source:  instruction punning: Chamith, Svensson, Dalessandro, Newton, "Instruction
 *          Punning: Lightweight Instrumentation for x86-64", PLDI 2017; padding and eviction:
 *          Duck, Gao, Roychoudhury, "Binary Rewriting without Control Flow Recovery", 2020.
 * Cost:    about a microsecond for each.
 */
size_t pun_plan(struct pun_batch *batch);

/* pun_rung_name - direct, call, plain ...; "none". pun_why_name - a sentence.
 * Context: any.
 */
const char *pun_rung_name(unsigned rung);
const char *pun_why_name(unsigned why);

/* pun_pinned - bytes behind the instruction that the jump depends on. Context: any. */
static inline size_t pun_pinned(const struct pun *p)
{
    return p->rung != PUN_NONE ? (size_t)p->span - p->jump_len : 0;
}
