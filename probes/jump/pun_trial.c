/* pun_trial.c - tries one jump of a given form, and looks for a place for its pad.
 *
 * The displacement of a jump with k prefixes begins at byte k + 1. Its low bytes lie in
 * the instruction, or in dead padding behind it: the planner can choose them, they are
 * free. Its upper bytes are those of the instructions that follow:
 *
 *     E9 d0 d1 | n0 n1 n2 ...        3 bytes, k = 0: displacement n1 n0 d1 d0
 *     40 E9 d0 | n0 n1 n2 ...        3 bytes, k = 1: displacement n2 n1 n0 d0
 *
 * So the pad can lie anywhere in a window of 1, 256, 64 Ki or 16 Mi bytes. In the larger
 * windows pads are put side by side, near a round address that neighbouring instructions
 * share.
 */
#include "kernel/base/bits.h"
#include "probes/insn/encode.h"
#include "probes/jump/pun_parts.h"

#define PAGE_LEN 4096u
#define PAGE_PADS (PAGE_LEN / PUN_PAD_LEN)
#define TRIES 4u            /* pads tried in each page */
#define NEAR_PAGES 8u       /* pages tried in a window of 64 Ki: half of it */
#define FAR_PAGES 256u      /* pages tried in larger windows, in groups of NEAR_PAGES */
#define SPREAD 4096u        /* a batch of n jumps begins with 1 + n / SPREAD pages */
#define SPREAD_NEAR 131072u /* the same in windows of 64 Ki, of which there are more */

static uintptr_t target_of(const struct pun_trial *s)
{
    return pun_trial_next(s) + (uintptr_t)(int64_t)(int32_t)s->disp;
}

static size_t trial_bytes(const struct pun_trial *s, uint8_t out[PUN_JUMP_MAX])
{
    size_t head;

    if (s->p->is_call) {
        for (head = 0; head + 4 < s->p->len; head++)
            out[head] = s->p->bytes[head];
    } else {
        head = insn_encode_jmp32_head(out, s->prefixes, s->variant);
    }
    return head + insn_encode_disp32(out + head, s->disp);
}

static bool wish_holds(const struct planner *pl, const uint8_t *bytes, size_t len,
                       uint8_t wish)
{
    for (size_t i = 0; wish >> i; i++) {
        if (wish >> i & 1 && i < len && !pl->is_good[bytes[i]])
            return false;
    }
    return true;
}

static uint8_t rung_of(const struct pun_trial *s, uintptr_t pad)
{
    if (s->p->is_call)
        return PUN_CALL;
    if (!pad)
        return PUN_DIRECT;
    if (s->free == 4)
        return PUN_FAR;
    return s->prefixes ? PUN_PADDED : PUN_PLAIN;
}

static void plan_keep(struct planner *pl, const struct pun_trial *s,
                      const uint8_t bytes[PUN_JUMP_MAX], size_t span, uintptr_t pad)
{
    struct pun *p = s->p;

    p->rung = rung_of(s, pad);
    p->prefixes = (uint8_t)s->prefixes;
    p->span = (uint8_t)span;
    p->jump_len = (uint8_t)(span < s->room ? span : s->room);
    for (size_t i = 0; i < p->jump_len; i++)
        p->jump[i] = bytes[i];
    p->pad = pad;
    p->is_kept = false;
    p->why = PUN_OK;
    if (pad)
        pun_pad_take(pl, p);
    pun_text_show(pl, p);
}

bool pun_trial_accept(struct planner *pl, const struct pun_trial *s, bool is_direct)
{
    uint8_t bytes[INSN_MAX_LEN];
    uintptr_t target = target_of(s);
    size_t span;

    if (!is_direct && !pun_pad_in_range(pl->env, target))
        return false;
    span = trial_bytes(s, bytes);
    if (!wish_holds(pl, bytes, span < s->room ? span : s->room, s->wish))
        return false;
    if (!is_direct && !pun_pad_is_free(pl, target)) {
        pl->why = PUN_TAKEN;
        return false;
    }
    plan_keep(pl, s, bytes, span, is_direct ? 0 : target);
    return true;
}

/* ---- the bytes that are free ---- */

bool pun_trial_read(struct planner *pl, struct pun_trial *s)
{
    s->disp = 0;
    for (unsigned i = s->free; i < 4; i++) {
        unsigned byte = pun_text_get(pl, s->p->addr + s->prefixes + 1 + i);

        if (byte == PUN_NO_BYTE) {
            pl->why = pl->why == PUN_OUTSIDE ? PUN_UNKNOWN : pl->why;
            return false;
        }
        s->disp |= (uint32_t)byte << 8 * i;
    }
    return true;
}

static uint32_t addr_hash(uintptr_t addr)
{
    return (uint32_t)((uint32_t)addr * 2654435761u >> 16);
}

static bool page_try(struct planner *pl, struct pun_trial *s, uintptr_t page,
                     uint32_t hash)
{
    for (unsigned i = 0; i < TRIES; i++) {
        uintptr_t pad = page + (hash + i) % PAGE_PADS * PUN_PAD_LEN;

        s->disp = (uint32_t)(pad - pun_trial_next(s));
        if (pun_trial_accept(pl, s, false))
            return true;
    }
    return false;
}

/* page_off - the offset of page @i from the round address. The groups are 64 KiB apart,
 * so each group gives another third byte to the displacements.
 */
static uint64_t page_off(unsigned i)
{
    return (uint64_t)(i / NEAR_PAGES) * 64 * KiB + i % NEAR_PAGES * PAGE_LEN;
}

/* dense_try - choose two or three free bytes: near the round address in the window, which
 * neighbours share. The direction is that in which at least half of the window lies. The
 * more jumps the batch has, the more pages they are spread over from the start.
 */
static bool dense_try(struct planner *pl, struct pun_trial *s)
{
    uint64_t unit = UINT64_C(1) << 8 * s->free;
    uintptr_t base = target_of(s), anchor = align_up(base, unit);
    bool is_up = anchor - base <= unit / 2;
    uint32_t hash = addr_hash(s->p->addr);
    unsigned pages = s->free == 2 ? NEAR_PAGES : FAR_PAGES;
    unsigned spread =
        (unsigned)(pl->batch->count / (s->free == 2 ? SPREAD_NEAR : SPREAD));
    unsigned first = hash / PAGE_PADS % (1 + spread);

    for (unsigned i = 0; i < pages; i++) {
        uint64_t off = page_off((first + i) % pages);
        uintptr_t page = is_up ? anchor + off : anchor - off - PAGE_LEN;

        if (page_try(pl, s, page, hash))
            return true;
    }
    return false;
}

/* byte_try - choose one free byte. In a row of one-byte instructions all bytes of a
 * displacement are opcodes of jumps, so such a jump has no choice. This function leaves
 * the place where it lands free: it first tries low bytes above the opcode. With these,
 * the pad lies above the pads of all rows that are still to be planned.
 */
static bool byte_try(struct planner *pl, struct pun_trial *s)
{
    uint32_t above = s->disp, first;
    uint8_t opcode;

    insn_encode_jmp32_head(&opcode, 0, 0);
    first = opcode + PUN_PAD_LEN + addr_hash(s->p->addr) % 8;
    for (unsigned i = 0; i < 256; i++) {
        s->disp = above | ((first + i) & 255);
        if (pun_trial_accept(pl, s, false))
            return true;
    }
    return false;
}

static bool far_try(struct planner *pl, struct pun_trial *s)
{
    for (unsigned i = 0; i < pl->good_count; i++) {
        s->disp = (uint32_t)pl->good[i] << 24;
        s->free = 3;
        if (dense_try(pl, s)) {
            s->p->rung = s->p->is_call ? PUN_CALL : PUN_FAR;
            return true;
        }
    }
    return false;
}

/* Can pads be at one of the two ends of the window? */
static bool window_in_range(const struct planner *pl, const struct pun_trial *s)
{
    uintptr_t first = target_of(s);
    uintptr_t last = first + ((UINT64_C(1) << 8 * s->free) - 1);

    return pun_pad_in_range(pl->env, first) || pun_pad_in_range(pl->env, last);
}

bool pun_trial_aim(struct planner *pl, struct pun_trial *s)
{
    if (s->free == 4)
        return far_try(pl, s);
    if (!pun_trial_read(pl, s) || !window_in_range(pl, s))
        return false;
    if (s->free >= 2)
        return dense_try(pl, s);
    return s->free ? byte_try(pl, s) : pun_trial_accept(pl, s, false);
}
