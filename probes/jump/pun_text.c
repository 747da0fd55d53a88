/* pun_text.c - knows the bytes around the instruction that is being planned, as they will
 * be after the whole batch was written; and the pads that the batch has taken already.
 */
#include "probes/insn/encode.h"
#include "probes/jump/pun_parts.h"

/* ---- the window ---- */

static void window_put(struct planner *pl, uintptr_t addr, unsigned byte)
{
    pl->text[addr % PUN_WINDOW] = (uint16_t)byte;
}

/* text_load - put into the window the byte that is at @addr if no member changes it. */
static void text_load(struct planner *pl, uintptr_t addr)
{
    uint8_t byte;
    bool is_known = pl->env->byte_at(pl->env->arg, addr, &byte);

    window_put(pl, addr, is_known ? byte : PUN_NO_BYTE);
}

/* gap_load - load the text from @start to where the window has begun so far. If that is
 * too far away, load a new window.
 */
static void gap_load(struct planner *pl, uintptr_t start, uintptr_t base)
{
    bool is_near = pl->is_open && pl->low - base < PUN_WINDOW;
    uintptr_t end = is_near ? pl->low : base + PUN_AHEAD;

    for (uintptr_t addr = start; addr < end; addr++)
        text_load(pl, addr);
    for (uintptr_t addr = end; !is_near && addr < base + PUN_WINDOW; addr++)
        window_put(pl, addr, PUN_NO_BYTE);
}

void pun_text_open(struct planner *pl, const struct pun *p)
{
    gap_load(pl, p->addr + p->len, p->addr);
    pl->low = p->addr;
    pl->is_open = true;
    pun_text_show(pl, p);
}

void pun_text_show(struct planner *pl, const struct pun *p)
{
    size_t jump_len = p->rung == PUN_NONE ? 0 : p->jump_len;

    for (size_t i = 0; i < jump_len; i++)
        window_put(pl, p->addr + i, p->jump[i]);
    for (size_t i = jump_len; i < p->len; i++)
        window_put(pl, p->addr + i, p->bytes[i]);
    if (!jump_len && !p->is_evicted)
        window_put(pl, p->addr, INSN_INT3);
}

static bool is_members(const struct planner *pl, const struct pun *p, uintptr_t addr)
{
    for (size_t i = pl->chained; i-- > 0 && pl->chain[i]->addr <= addr;) {
        if (pl->chain[i] != p && addr >= pl->chain[i]->addr &&
            addr - pl->chain[i]->addr < pl->chain[i]->len)
            return true;
    }
    return false;
}

size_t pun_room(struct planner *pl, const struct pun *p)
{
    const struct pun_env *env = pl->env;
    size_t room = p->len;

    while (env->is_padding && room < PUN_JUMP_MAX) {
        uintptr_t addr = p->addr + room;

        if (is_members(pl, p, addr) || !env->is_padding(env->arg, addr))
            break;
        text_load(pl, addr);
        room++;
    }
    return room;
}

/* ---- pads ---- */

static struct pun **pad_bucket(struct planner *pl, uintptr_t pad)
{
    return &pl->pads[(pad / 8 ^ pad >> 20) & pl->pads_mask];
}

static bool bucket_overlaps(struct planner *pl, uintptr_t key, uintptr_t pad)
{
    for (const struct pun *p = *pad_bucket(pl, key); p; p = p->next) {
        if (p->pad - pad + PUN_PAD_LEN - 1 < 2 * PUN_PAD_LEN - 1)
            return true;
    }
    return false;
}

bool pun_pad_in_range(const struct pun_env *env, uintptr_t pad)
{
    uintptr_t end = pad + PUN_PAD_LEN;

    return pad >= env->pads_start && end <= env->pads_end && end >= pad &&
           (end <= env->hole_start || pad >= env->hole_end);
}

bool pun_pad_is_free(struct planner *pl, uintptr_t pad)
{
    uintptr_t below = pad - (PUN_PAD_LEN - 1), above = pad + (PUN_PAD_LEN - 1);

    if (bucket_overlaps(pl, below, pad))
        return false;
    if (above / 8 != below / 8 && bucket_overlaps(pl, above, pad))
        return false;
    return pl->env->pad_is_free(pl->env->arg, pad);
}

void pun_pad_take(struct planner *pl, struct pun *p)
{
    struct pun **bucket = pad_bucket(pl, p->pad);

    p->next = *bucket;
    *bucket = p;
}

void pun_pad_drop(struct planner *pl, struct pun *p)
{
    struct pun **link = pad_bucket(pl, p->pad);

    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    p->next = NULL;
}
