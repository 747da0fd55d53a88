/* pun_parts.h - what the files of the planner share; private to pun*.c.
 *
 *   pun.c        plans the batch, from its last instruction to its first
 *   pun_text.c   knows the bytes around as they will be, and the pads of the batch so far
 *   pun_trial.c  tries one jump
 *   pun_place.c  plans one instruction, when the bytes behind it are settled
 *   pun_joint.c  plans one instruction together with those behind it
 */
#pragma once

#include "probes/insn/encode.h"
#include "probes/jump/pun.h"

#define PUN_WINDOW 128u   /* bytes that the planner knows at a time; a power of two */
#define PUN_NO_BYTE 256u  /* in the window: the byte is not known */
#define PUN_SUCCESSORS 5u /* that a joint search plans again */

struct planner {
    struct pun_batch *batch;
    const struct pun_env *env;

    /* The window: final bytes of [low, low + PUN_WINDOW), the byte at addr in
     * text[addr % PUN_WINDOW].
     */
    uint16_t text[PUN_WINDOW];
    uintptr_t low;
    bool is_open; /* the window has been loaded */

    struct pun **chain; /* instructions so far, evicted ones too; lowest last */
    size_t chained;

    struct pun **pads; /* hash table of new pads, by address / 8 */
    size_t pads_mask;

    /* Good bytes. If a good byte is the most significant byte of a displacement, the jump
     * leads to where pads can be, from anywhere in the batch. good[] has them in order of
     * preference.
     */
    bool is_good[256];
    uint8_t good[256];
    unsigned good_count;

    uint32_t random;
    uint8_t why; /* enum pun_why: the best result so far for this instruction */
};

/* Wishes of the jumps in front for the first four bytes of a jump. Bit i: byte i should
 * be a good byte, because it will be the most significant byte of the displacement of a
 * jump in front. If the bit is also in @must, that jump has one byte, and has no plan
 * without a good byte there.
 */
struct pun_wish {
    uint8_t should, must;
};

/* ---- pun_text.c ---- */

/* pun_text_open - move the window down, so that it begins with @p, and show @p in it. */
void pun_text_open(struct planner *pl, const struct pun *p);
/* pun_text_show - write the bytes of @p into the window: those of its jump if it has one,
 * else those that it has without a jump.
 */
void pun_text_show(struct planner *pl, const struct pun *p);
/* pun_room - how many bytes from @p->addr on its jump may write: its own, and padding
 * behind. In the window, the padding gets its original bytes again.
 */
size_t pun_room(struct planner *pl, const struct pun *p);

static inline unsigned pun_text_get(const struct planner *pl, uintptr_t addr)
{
    return pl->text[addr % PUN_WINDOW];
}

/* pun_pad_is_free - does a pad at @pad overlap no pad of this batch, and no earlier one?
 * @pad: in the range of pads
 */
bool pun_pad_is_free(struct planner *pl, uintptr_t pad);
/* pun_pad_in_range - does @pad lie where pads can be?
 * pun_pad_take - enter the pad of @p among those of this batch. pun_pad_drop - remove it.
 */
bool pun_pad_in_range(const struct pun_env *env, uintptr_t pad);
void pun_pad_take(struct planner *pl, struct pun *p);
void pun_pad_drop(struct planner *pl, struct pun *p);

/* ---- pun_trial.c ---- */

/* A jump that the planner tries. */
struct pun_trial {
    struct pun *p;
    size_t room; /* bytes that the jump may write */
    unsigned prefixes;
    unsigned free;    /* low bytes of the displacement that the planner may choose */
    unsigned variant; /* which prefixes: see insn_encode_jmp32_head() */
    uint32_t disp;
    uint8_t wish; /* bit i: byte i has to be a good byte */
};

static inline uintptr_t pun_trial_next(const struct pun_trial *s)
{
    return s->p->addr + s->prefixes + INSN_JMP32_LEN;
}

/* pun_trial_accept - make @s the plan of its instruction, if its pad is free and its
 * bytes are as wished. Its displacement is set. No other function accepts a plan.
 * @is_direct: the jump leads to the detour, and has no pad
 * pun_trial_read - read the upper bytes of its displacement, which are not free.
 * Return: false: a byte is not known.
 * pun_trial_aim - choose the free bytes so that the plan is accepted. Return: was it?
 */
bool pun_trial_accept(struct planner *pl, const struct pun_trial *s, bool is_direct);
bool pun_trial_read(struct planner *pl, struct pun_trial *s);
bool pun_trial_aim(struct planner *pl, struct pun_trial *s);

/* ---- pun_place.c ---- */

/* pun_place - find the best jump for @p, with the bytes behind it as the window shows
 * them.
 * pun_place_random - find any jump.
 * pun_place_again - find a jump with the same bytes as @was, wherever it leads now.
 * Return: false, and @p is unchanged.
 */
bool pun_place(struct planner *pl, struct pun *p, struct pun_wish wish);
bool pun_place_random(struct planner *pl, struct pun *p, struct pun_wish wish);
bool pun_place_again(struct planner *pl, struct pun *p, const struct pun *was);
/* pun_still_holds - does the present jump of @p still lead to its pad or detour? */
bool pun_still_holds(const struct planner *pl, const struct pun *p);
/* pun_wish_add - add the wish of @before, an instruction in front of the one at @addr. */
void pun_wish_add(struct pun_wish *wish, const struct pun *before, uintptr_t addr);

/* ---- pun_joint.c ---- */

/* pun_joint - find a plan for the last instruction of the chain, by other plans for the
 * instructions behind it. Return: false, and all plans are as before.
 */
bool pun_joint(struct planner *pl);
