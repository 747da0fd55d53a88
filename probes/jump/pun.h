/* pun.h - plans jumps in place of instructions, also of instructions that are shorter
 * than a jump. Pure.
 *
 * A jump replaces exactly one instruction. If the instruction is shorter than the jump,
 * the bytes behind it serve as the rest of the jump's displacement. These bytes do not
 * change: they are still instructions of their own. The jump then lands at the address
 * that they happen to give. The engine puts a pad there, a second jump, which leads to
 * the detour. docs/optimize.md has drawings. The planner knows these kinds of plans,
 * called rungs:
 *
 *   direct   5 bytes or more: the jump itself leads to the detour. So does a jump at a
 *            shorter instruction with dead padding behind it, which the jump may
 *            overwrite
 *   call     a direct call keeps its opcode and gets another displacement
 *   plain    the bytes behind the instruction are the upper bytes of the displacement
 *   padded   the same with prefixes in front of the opcode, so that other bytes behind
 *            the instruction are the upper bytes
 *   far      there is room for a whole jump, but it leads to a pad: a byte of its
 *            displacement must also suit a jump in front of it, which reads that byte
 *
 * A jump at addr with k prefixes is 5 + k bytes long. It writes the first jump_len of
 * these bytes. It pins the other ones, up to its span: if a pinned byte changes later,
 * this jump leads somewhere else.
 *
 * The planner plans a batch as a whole, from high addresses to low ones, because the
 * bytes of an instruction may be a part of the jump in front of it. If it finds no plan
 * for an instruction, it plans up to five instructions behind it once more, together with
 * it. It may also evict instructions without a probe that stand in the way: these become
 * jumps as well, if the caller agrees.
 */
#pragma once

#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUN_JUMP_LEN 5 /* bytes of a jump without prefixes */
#define PUN_JUMP_MAX 9 /* bytes that a jump writes: at most 4 prefixes */
#define PUN_AHEAD 64   /* bytes behind an instruction that its plan may look at */
#define PUN_NEAR 16    /* bytes behind it in which its plan may change other plans */
#define PUN_PAD_LEN 5  /* a pad is one jmp rel32 */

enum pun_rung {
    PUN_NONE, /* no jump: @why is the reason, and the instruction stays an int3 */
    PUN_DIRECT,
    PUN_CALL,
    PUN_PLAIN,
    PUN_PADDED,
    PUN_FAR,
    PUN_RUNGS,
};

enum pun_why {
    PUN_OK,
    PUN_OUTSIDE, /* every jump that it could become would land where no pad can be */
    PUN_TAKEN,   /* its jump would land on other pads */
    PUN_UNKNOWN, /* bytes behind it, which the jump would need, cannot be read */
    PUN_WHYS,
};

/* One instruction, and the plan of its jump. */
struct pun {
    /* The question. */
    uintptr_t addr;
    uintptr_t detour; /* where the jump is to lead; 0: not known yet, so it needs a pad */
    uint8_t bytes[INSN_MAX_LEN]; /* the original instruction */
    uint8_t len;                 /* length of the instruction, 1..15 */
    bool is_call;                /* CALL_REL: its last four bytes are the displacement */

    /* The answer. If the instruction is a jump already, the caller fills in these fields
     * as well, with the present plan, and the planner keeps that plan if it can. For an
     * instruction that is not a jump yet, the caller sets rung to PUN_NONE.
     */
    uint8_t rung;     /* enum pun_rung */
    uint8_t prefixes; /* number of prefixes, k */
    uint8_t jump_len; /* bytes to write, from addr on; more than len: also over padding */
    uint8_t span;     /* bytes of the whole jump: 5 + k; of a call: len */
    uint8_t jump[PUN_JUMP_MAX]; /* the bytes to write; not changed if rung is PUN_NONE */
    uintptr_t pad;              /* where the jump lands; 0: on the detour itself */
    bool is_kept;               /* jump and pad are those of the present plan */
    bool is_evicted; /* has no probe: offered by the neighbour callback, now or earlier */
    uint8_t why;     /* enum pun_why: the reason for PUN_NONE */

    struct pun *next; /* for the planner */
};

/* Questions that the planner asks its caller. All callbacks are pure. They describe the
 * text as it will be after the batch was written; the planner itself knows what the batch
 * writes.
 */
struct pun_env {
    /* Pads lie in [pads_start, pads_end), but not in [hole_start, hole_end). A jump there
     * reaches every detour.
     */
    uintptr_t pads_start, pads_end, hole_start, hole_end;
    void *arg;

    /* pad_is_free - can the five bytes from @pad on become a pad? The planner asks only
     * for addresses inside the range, and takes care of the new pads of its own batch.
     */
    bool (*pad_is_free)(void *arg, uintptr_t pad);

    /* byte_at - the byte at @addr, which is in no member of the batch. If the jump of a
     * member covers the byte (it is padding), then the byte from before that jump.
     * Return: false: the byte is not known, and the planner lets no jump depend on it.
     */
    bool (*byte_at)(void *arg, uintptr_t addr, uint8_t *byte);

    /* is_padding - may a jump write over the byte at @addr? Only if no CPU ever executes
     * the byte, and no jump outside of the batch pins it. NULL: never.
     */
    bool (*is_padding)(void *arg, uintptr_t addr);

    /* neighbour - may the instruction at @addr, which is not in the batch, become a jump
     * for the sake of a member? Fills in addr, bytes, len, is_call of @out; the rest is
     * zero. The answer must be no if the instruction has a probe, or if a jump outside of
     * the batch pins a byte of it. NULL: never.
     */
    bool (*neighbour)(void *arg, uintptr_t addr, struct pun *out);
};

struct pun_batch {
    const struct pun_env *env;
    struct pun *puns; /* at ascending addresses, not overlapping each other */
    size_t count;     /* 1 and up */

    struct pun *evicted; /* receives the evicted instructions, ascending; or NULL */
    size_t evicted_max;
    size_t evicted_count; /* instructions that this call has evicted */

    void *work; /* pun_work_len() bytes, 8-byte aligned, any content */
};

/* pun_work_len - the bytes of memory that the planning of @count instructions needs.
 * Context: any.
 */
size_t pun_work_len(size_t count, size_t evicted_max);

/* pun_plan - find a plan for each member of @batch.
 *
 * The caller makes these instructions members:
 *   - each instruction that is to become a jump
 *   - each jump that pins a byte of a member, or of an instruction that the neighbour
 *     callback may offer, with its present plan. is_kept shows that it keeps this plan
 *   - better also each instruction with a probe in the PUN_NEAR bytes behind a new
 *     member, with its present plan or without one. This gives the search more choice,
 *     and in most cases the plan of such a member does not change
 * An instruction that an earlier call has evicted comes back as a member with is_evicted.
 *
 * If a member does not keep its plan, the caller frees the old pad when no thread can be
 * on it any more. This call uses no old pad for another jump.
 *
 * The plans depend on each other: the caller has to write all of them, those of evicted
 * instructions included. The bytes of an instruction must be in place before the first
 * byte of a jump in front that reads them. A member with PUN_NONE must then have int3 as
 * its first byte; if it is evicted, its own first byte. Its other bytes must be as in
 * @bytes.
 *
 * Context: any.
 * Return:  how many members ended as PUN_NONE.
 * Source:  instruction punning: Chamith, Svensson, Dalessandro, Newton, "Instruction
 *          Punning: Lightweight Instrumentation for x86-64", PLDI 2017; padding and eviction:
 *          Duck, Gao, Roychoudhury, "Binary Rewriting without Control Flow Recovery", 2020.
 * Cost:    about a microsecond for each member.
 */
size_t pun_plan(struct pun_batch *batch);

/* pun_rung_name - the name of @rung: "direct", "call", "plain" ...; "none".
 * pun_why_name - a sentence for @why. Context: any.
 */
const char *pun_rung_name(unsigned rung);
const char *pun_why_name(unsigned why);

/* pun_pinned - how many bytes the jump of @p reads but does not write. Context: any. */
static inline size_t pun_pinned(const struct pun *p)
{
    return p->rung != PUN_NONE ? (size_t)p->span - p->jump_len : 0;
}
