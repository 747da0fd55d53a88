/* pun_place.c - plans one instruction when the bytes behind it are settled: which jump
 * can it be? It tries the rungs in their order. For the joint search it makes random
 * jumps. And it looks whether a present plan still holds.
 */
#include "kernel/base/bits.h"
#include "probes/insn/encode.h"
#include "probes/jump/pun_parts.h"

#define HEAD_MAX (PUN_JUMP_MAX - 4) /* prefixes and opcode */

/* pun_random - the next number of a pseudo-random stream, the same one for each batch. */
static uint32_t pun_random(struct planner *pl)
{
    uint32_t x = pl->random;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return pl->random = x;
}

/* The jump of @before has the byte at `top` as the most significant byte of its
 * displacement, if it has no prefixes.
 */
void pun_wish_add(struct pun_wish *wish, const struct pun *before, uintptr_t addr)
{
    uintptr_t top = before->addr + INSN_JMP32_LEN - 1;

    if (before->len >= INSN_JMP32_LEN || top < addr)
        return;
    wish->should |= (uint8_t)BIT(top - addr);
    if (before->len == 1)
        wish->must |= (uint8_t)BIT(top - addr);
}

/* ---- straight to the detour ---- */

static bool direct_fire(struct planner *pl, struct pun_trial *s)
{
    int64_t disp = (intptr_t)(s->p->detour - pun_trial_next(s));

    s->disp = (uint32_t)disp;
    s->free = 4;
    return disp == (int32_t)disp && pun_trial_accept(pl, s, true);
}

/* Prefixes are tried only because of the wishes of the jumps in front. */
static bool direct(struct planner *pl, struct pun_trial *s)
{
    size_t room = s->room < PUN_JUMP_MAX ? s->room : PUN_JUMP_MAX;

    if (!s->p->detour)
        return false;
    for (s->prefixes = 0; s->prefixes + INSN_JMP32_LEN <= room; s->prefixes++) {
        if (direct_fire(pl, s))
            return true;
    }
    return false;
}

/* ---- to a pad ---- */

static unsigned prefixes_max(const struct pun_trial *s)
{
    size_t heads = s->room < HEAD_MAX ? s->room : HEAD_MAX;

    return s->p->is_call ? 0 : (unsigned)heads - 1;
}

static unsigned free_bytes(const struct pun_trial *s)
{
    size_t left = s->room - 1 - s->prefixes;

    return left < 4 ? (unsigned)left : 4;
}

static bool place_padded(struct planner *pl, struct pun_trial *s)
{
    for (s->prefixes = 0; s->prefixes <= prefixes_max(s); s->prefixes++) {
        s->free = free_bytes(s);
        if (pun_trial_aim(pl, s))
            return true;
    }
    return false;
}

/* ---- calls: the opcode stays ---- */

static struct pun_trial trial_new(struct pun *p, size_t room, uint8_t wish)
{
    struct pun_trial s = { .p = p, .room = room, .wish = wish };

    if (p->is_call) {
        s.room = p->len;
        s.prefixes = p->len - (unsigned)INSN_JMP32_LEN;
    }
    return s;
}

static bool place_call(struct planner *pl, struct pun *p, struct pun_wish wish)
{
    struct pun_trial s = trial_new(p, p->len, wish.must);

    if (p->len > PUN_JUMP_MAX)
        return false;
    if (p->detour && direct_fire(pl, &s))
        return true;
    s.wish = wish.should;
    s.free = 4;
    return pun_trial_aim(pl, &s);
}

/* ---- the ladder ---- */

static bool place_jump(struct planner *pl, struct pun *p, size_t room,
                       struct pun_wish wish)
{
    struct pun_trial s = trial_new(p, room, wish.must);

    if (direct(pl, &s))
        return true;
    s.wish = wish.should;
    s.room = p->len;
    if (place_padded(pl, &s))
        return true;
    s.room = room;
    return room > p->len && place_padded(pl, &s);
}

bool pun_place(struct planner *pl, struct pun *p, struct pun_wish wish)
{
    static const struct pun_wish none;
    size_t room = pun_room(pl, p);

    if (p->is_call)
        return place_call(pl, p, wish) || place_call(pl, p, none);
    return place_jump(pl, p, room, wish) || place_jump(pl, p, room, none);
}

bool pun_place_random(struct planner *pl, struct pun *p, struct pun_wish wish)
{
    struct pun_trial s = trial_new(p, pun_room(pl, p), wish.should);

    if (p->len > PUN_JUMP_MAX && p->is_call)
        return false;
    if (!p->is_call)
        s.prefixes = pun_random(pl) % (prefixes_max(&s) + 1);
    s.variant = pun_random(pl) % INSN_JMP_VARIANTS;
    s.free = p->is_call ? 4 : free_bytes(&s);
    if (s.free == 4 && p->detour && pun_random(pl) % 4 == 0 && direct_fire(pl, &s))
        return true;
    if (!pun_trial_read(pl, &s))
        return false;
    for (unsigned i = 0; i < s.free; i++)
        s.disp |= (uint32_t)pl->good[pun_random(pl) % pl->good_count] << 8 * i;
    return pun_trial_accept(pl, &s, false);
}

/* ---- plans that exist already ---- */

/* disp_of - the displacement of the jump of @p, with the bytes behind it as the window
 * shows them. Return: false: a byte is not known.
 */
static bool disp_of(const struct planner *pl, const struct pun *p, uint32_t *disp)
{
    *disp = 0;
    for (unsigned i = 0; i < 4; i++) {
        size_t at = p->span - 4u + i;
        unsigned byte = at < p->jump_len ? p->jump[at] : pun_text_get(pl, p->addr + at);

        if (byte == PUN_NO_BYTE)
            return false;
        *disp |= (uint32_t)byte << 8 * i;
    }
    return true;
}

bool pun_still_holds(const struct planner *pl, const struct pun *p)
{
    uintptr_t target, wanted = p->pad ? p->pad : p->detour;
    uint32_t disp;

    if (p->rung == PUN_NONE || !disp_of(pl, p, &disp))
        return false;
    target = p->addr + p->span + (uintptr_t)(int64_t)(int32_t)disp;
    return target == wanted;
}

bool pun_place_again(struct planner *pl, struct pun *p, const struct pun *was)
{
    uintptr_t target;
    uint32_t disp;

    pun_room(pl, p);
    if (was->rung == PUN_NONE || pun_still_holds(pl, was)) {
        *p = *was;
        pun_text_show(pl, p);
        if (was->rung != PUN_NONE && was->pad && !was->is_kept)
            pun_pad_take(pl, p);
        return true;
    }
    if (!disp_of(pl, was, &disp))
        return false;
    target = was->addr + was->span + (uintptr_t)(int64_t)(int32_t)disp;
    if (!pun_pad_in_range(pl->env, target) || !pun_pad_is_free(pl, target))
        return false;
    *p = *was;
    p->pad = target;
    p->is_kept = false;
    pun_pad_take(pl, p);
    pun_text_show(pl, p);
    return true;
}
