/* pun_joint.c - plans an instruction that has found no plan together with its successors,
 * the instructions behind it.
 *
 * The bytes that do not suit as a displacement belong to a successor. If the successor
 * becomes another jump, with other prefixes or another pad, it has other bytes. This may
 * need another plan of its own successor, and so on. Four successors cover all bytes that
 * a jump can read. The fifth matters in a row of one-byte instructions: it decides where
 * the jump of the first successor lands. Successors in the batch get another plan. A
 * successor that is not in the batch stays as it is, or is evicted.
 *
 * The search is a walk of limited depth and width. It begins with the farthest successor
 * and goes towards the instruction in question. For each successor it tries a few random
 * plans that suit the bytes behind. First one successor takes part, then two, and so on.
 */
#include "probes/jump/pun_parts.h"

#define ACTORS (PUN_SUCCESSORS + 1)

struct actor {
    struct pun *pun;
    struct pun was;
    bool is_new; /* a neighbour that the caller has just offered */
};

struct joint {
    struct actor actors[ACTORS]; /* [0] the instruction; behind it its successors */
    size_t count;
    struct pun spare[ACTORS]; /* for the neighbours */
};

/* widths[n][i] - how many plans are tried for actor i when n successors take part. */
static const uint8_t widths[PUN_SUCCESSORS + 1][ACTORS] = {
    [1] = { 0, 250 },         [2] = { 0, 16, 60 },         [3] = { 0, 8, 10, 30 },
    [4] = { 0, 6, 6, 8, 20 }, [5] = { 0, 3, 3, 4, 5, 20 },
};

/* ---- the instructions that take part ---- */

static bool neighbour_ask(struct planner *pl, struct pun *spare, uintptr_t addr)
{
    const struct pun_env *env = pl->env;

    *spare = (struct pun){ 0 };
    if (!env->neighbour || !env->neighbour(env->arg, addr, spare))
        return false;
    spare->is_evicted = true;
    return true;
}

/* The address of the next instruction; padding in between is left out. */
static uintptr_t next_addr(struct planner *pl, const struct pun *p)
{
    const struct pun_env *env = pl->env;
    uintptr_t addr = p->addr + p->len;

    while (env->is_padding && addr < p->addr + PUN_JUMP_MAX &&
           env->is_padding(env->arg, addr))
        addr++;
    return addr;
}

static void joint_gather(struct planner *pl, struct joint *c)
{
    size_t in_chain = pl->chained - 1;
    struct pun *p = pl->chain[in_chain];

    c->actors[0].pun = p;
    for (c->count = 1; c->count < ACTORS; c->count++) {
        struct actor *actor = &c->actors[c->count];
        uintptr_t addr = next_addr(pl, p);

        actor->is_new = in_chain == 0 || pl->chain[in_chain - 1]->addr != addr;
        if (!actor->is_new)
            actor->pun = pl->chain[--in_chain];
        else if (neighbour_ask(pl, &c->spare[c->count], addr))
            actor->pun = &c->spare[c->count];
        else
            return;
        p = actor->pun;
    }
}

/* ---- taking plans back ---- */

static bool holds_new_pad(const struct pun *p)
{
    return p->rung != PUN_NONE && p->pad && !p->is_kept;
}

static void plan_drop(struct planner *pl, struct pun *p)
{
    if (holds_new_pad(p))
        pun_pad_drop(pl, p);
    p->rung = PUN_NONE;
}

static void plans_set_aside(struct planner *pl, struct joint *c, size_t depth)
{
    for (size_t i = 1; i <= depth; i++) {
        c->actors[i].was = *c->actors[i].pun;
        plan_drop(pl, c->actors[i].pun);
    }
}

static void plans_restore(struct planner *pl, struct joint *c, size_t depth)
{
    for (size_t i = depth; i >= 1; i--) {
        struct pun *p = c->actors[i].pun;

        pun_room(pl, p);
        *p = c->actors[i].was;
        if (holds_new_pad(p))
            pun_pad_take(pl, p);
        pun_text_show(pl, p);
    }
}

/* ---- the walk ---- */

static struct pun_wish actor_wish(const struct joint *c, size_t i)
{
    struct pun_wish wish = { 0, 0 };

    for (size_t before = 0; before < i; before++)
        pun_wish_add(&wish, c->actors[before].pun, c->actors[i].pun->addr);
    return wish;
}

/* The first try leaves the actor the bytes that it had. For the farthest actor that would
 * change nothing, so it is left out.
 */
static bool actor_place(struct planner *pl, struct joint *c, size_t i, size_t depth,
                        unsigned try)
{
    struct actor *actor = &c->actors[i];

    if (try == 0)
        return i < depth && pun_place_again(pl, actor->pun, &actor->was);
    return pun_place_random(pl, actor->pun, actor_wish(c, i));
}

/* If no padding follows, a jump of one byte leaves no choice: one try is enough. */
static unsigned joint_width(const struct joint *c, size_t i, size_t depth)
{
    const struct pun *p = c->actors[i].pun;
    bool is_followed = i + 1 < c->count && c->actors[i + 1].pun->addr == p->addr + p->len;

    return p->len == 1 && is_followed ? 1 : widths[depth][i];
}

static bool joint_walk(struct planner *pl, struct joint *c, size_t i, size_t depth)
{
    static const struct pun_wish none;

    if (i == 0)
        return pun_place(pl, c->actors[0].pun, none);
    for (unsigned try = 0; try < joint_width(c, i, depth); try++) {
        if (!actor_place(pl, c, i, depth, try))
            continue;
        if (joint_walk(pl, c, i - 1, depth))
            return true;
        plan_drop(pl, c->actors[i].pun);
    }
    return false;
}

/* ---- the evicted ---- */

/* evict_neighbour - make @spare a member. The chain stays in order of addresses. */
static void evict_neighbour(struct planner *pl, struct pun *spare)
{
    struct pun_batch *batch = pl->batch;
    struct pun *p = &batch->evicted[batch->evicted_count++];
    size_t i = pl->chained++;

    pun_pad_drop(pl, spare);
    *p = *spare;
    pun_pad_take(pl, p);
    for (; i > 0 && pl->chain[i - 1]->addr < p->addr; i--)
        pl->chain[i] = pl->chain[i - 1];
    pl->chain[i] = p;
}

static bool evicted_fit(const struct planner *pl, const struct joint *c, size_t depth)
{
    size_t room = pl->batch->evicted_max - pl->batch->evicted_count;

    for (size_t i = 1; i <= depth; i++) {
        if (c->actors[i].is_new && room-- == 0)
            return false;
    }
    return true;
}

bool pun_joint(struct planner *pl)
{
    struct joint c;

    joint_gather(pl, &c);
    for (size_t depth = 1; depth < c.count && evicted_fit(pl, &c, depth); depth++) {
        plans_set_aside(pl, &c, depth);
        if (!joint_walk(pl, &c, depth, depth)) {
            plans_restore(pl, &c, depth);
            continue;
        }
        for (size_t i = 1; i <= depth; i++) {
            if (c.actors[i].is_new && c.actors[i].pun->rung != PUN_NONE)
                evict_neighbour(pl, c.actors[i].pun);
        }
        return true;
    }
    return false;
}
