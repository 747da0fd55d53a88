/* pun_parts.h - what the files of the planner share; private to pun*.c.
 *
 *   pun.c        the batch, from its last instruction to its first
 *   pun_text.c   the bytes around, as they will be, and the pads given away so far
 *   pun_trial.c   one jump that the planner tries
 *   pun_place.c  one instruction, what lies behind it being settled
 *   pun_joint.c  one instruction together with those behind it
 */
#pragma once

#include "probes/insn/encode.h"
#include "probes/jump/pun.h"

#define PUN_WINDOW 128u   /* bytes of text that are looked at together; a power of two */
#define PUN_NO_BYTE 256u  /* in the window: nothing is known */
#define PUN_SUCCESSORS 5u /* that a joint search plans again */

struct planner {
    struct pun_batch *batch;
    const struct pun_env *env;

    /* Final bytes of [low, low + PUN_WINDOW), each at its address modulo the window. */
    uint16_t text[PUN_WINDOW];
    uintptr_t low;
    bool is_open; /* the window shows something */

    struct pun **chain; /* whom we have been at, evicted ones too; lowest address last */
    size_t chained;

    struct pun **pads; /* hash table of new pads, by address / 8 */
    size_t pads_mask;

    /* Bytes that, on top of a displacement, lead to where pads can be, from anywhere in the
     * batch: in the order of preference.
     */
    bool is_good[256];
    uint8_t good[256];
    unsigned good_count;

    uint32_t random;
    uint8_t why; /* enum pun_why: the best that has been met for the one at hand */
};

/* Wishes of the jumps before for the first four bytes of a jump: bit i, a good byte at i.
 * Without those in @must, one of them has no plan at all.
 */
struct pun_wish {
    uint8_t should, must;
};

/* ---- pun_text.c ---- */

/* pun_text_open - move the window down, so that it begins with @p, not yet a jump. */
void pun_text_open(struct planner *pl, const struct pun *p);
/* pun_text_show - put the bytes in that @p has now: as a jump or not. */
void pun_text_show(struct planner *pl, const struct pun *p);
/* pun_room - bytes from @p on that its jump may write; what is not its own shows again as
 * it was.
 */
size_t pun_room(struct planner *pl, const struct pun *p);

static inline unsigned pun_text_get(const struct planner *pl, uintptr_t addr)
{
    return pl->text[addr % PUN_WINDOW];
}

/* pun_pad_is_free - of this batch and of all others. @pad: anywhere. */
bool pun_pad_is_free(struct planner *pl, uintptr_t pad);
/* pun_pad_in_range - may there be pads at all? */
bool pun_pad_in_range(const struct pun_env *env, uintptr_t pad);
void pun_pad_take(struct planner *pl, struct pun *p);
void pun_pad_drop(struct planner *pl, struct pun *p);

/* ---- pun_trial.c ---- */

/* A jump that the planner tries. */
struct pun_trial {
    struct pun *p;
    size_t room; /* bytes it may write */
    unsigned prefixes;
    unsigned free;    /* bytes of the displacement that it may choose */
    unsigned variant; /* of the prefixes */
    uint32_t disp;
    uint8_t wish; /* bits: bytes that have to be good */
};

static inline uintptr_t pun_trial_next(const struct pun_trial *s)
{
    return s->p->addr + s->prefixes + INSN_JMP32_LEN;
}

/* pun_trial_accept - the one place where a plan is accepted: its displacement is set, its pad
 * is free, and its bytes are as wished. @is_direct: it goes to the detour and has no pad.
 * pun_trial_read - the upper bytes of its displacement, as they are. Return: false, unknown.
 * pun_trial_aim - choose the bytes that are free so that it is accepted.
 */
bool pun_trial_accept(struct planner *pl, const struct pun_trial *s, bool is_direct);
bool pun_trial_read(struct planner *pl, struct pun_trial *s);
bool pun_trial_aim(struct planner *pl, struct pun_trial *s);

/* ---- pun_place.c ---- */

/* pun_place - the best jump for @p, with the bytes behind it as the window shows them.
 * pun_place_random - any. pun_place_again - the same bytes as @was, wherever it leads now.
 * Return: false, and @p is unchanged.
 */
bool pun_place(struct planner *pl, struct pun *p, struct pun_wish wish);
bool pun_place_random(struct planner *pl, struct pun *p, struct pun_wish wish);
bool pun_place_again(struct planner *pl, struct pun *p, const struct pun *was);
/* pun_still_holds - is the plan that @p was asked with still right? */
bool pun_still_holds(const struct planner *pl, const struct pun *p);
/* pun_wish_add - what @before, an instruction before the one at @addr, would like. */
void pun_wish_add(struct pun_wish *wish, const struct pun *before, uintptr_t addr);
/* pun_random - the next of a stream that begins anew with each batch. */
uint32_t pun_random(struct planner *pl);

/* ---- pun_joint.c ---- */

/* pun_joint - a plan for the last one of the chain, by other plans for those behind it.
 * Return: false, and all plans are as before.
 */
bool pun_joint(struct planner *pl);
