/* pun.c - plans a batch of jumps, from its last instruction to its first.
 *
 * The first bytes of an instruction may be a part of the displacement of a jump in front
 * of it. So the planner goes from high addresses to low ones: when it plans an
 * instruction, the bytes behind the instruction are settled. It also considers the
 * instructions in front. A byte that it chooses now may become the most significant byte
 * of the displacement of a jump in front, and only good bytes there lead to where pads
 * can be. If an instruction gets no plan in this way, the joint search follows:
 * pun_joint.c.
 */
#include "kernel/base/bits.h"
#include "probes/insn/encode.h"
#include "probes/jump/pun_parts.h"

#define SEED 0x9e3779b9u

/* ---- memory ---- */

static size_t pads_len(size_t count)
{
    size_t len = 16;

    while (len < count)
        len *= 2;
    return len;
}

size_t pun_work_len(size_t count, size_t evicted_max)
{
    size_t most = count + evicted_max;

    return sizeof(struct planner) + (most + pads_len(most)) * sizeof(struct pun *);
}

static struct planner *planner_new(struct pun_batch *batch)
{
    struct planner *pl = batch->work;
    size_t most = batch->count + batch->evicted_max;

    *pl = (struct planner){ .batch = batch, .env = batch->env, .random = SEED };
    pl->chain = (struct pun **)(pl + 1);
    pl->pads = pl->chain + most;
    pl->pads_mask = pads_len(most) - 1;
    for (size_t i = 0; i <= pl->pads_mask; i++)
        pl->pads[i] = NULL;
    return pl;
}

/* ---- good bytes ---- */

/* byte_is_good - take a jump in [@first, @last] with @byte as the most significant byte
 * of its displacement: can pads be everywhere that it may land?
 */
static bool byte_is_good(const struct pun_env *env, uintptr_t first, uintptr_t last,
                         unsigned byte)
{
    int64_t above = (int32_t)((uint32_t)byte << 24);
    uintptr_t start = first + (uintptr_t)above;
    uintptr_t end = last + (uintptr_t)above + INSN_MAX_LEN + 0xffffff;

    return start <= end && pun_pad_in_range(env, start) && pun_pad_in_range(env, end) &&
           (end < env->hole_start || start >= env->hole_end);
}

/* good_init - find the good bytes. good[] begins with the opcode of a jump, if that is
 * good. Many displacements have this byte as their most significant one, because a jump
 * follows. So a pad whose place can be chosen comes to lie near the pads of such jumps.
 */
static void good_init(struct planner *pl)
{
    const struct pun_batch *batch = pl->batch;
    uintptr_t first = batch->puns[0].addr;
    uintptr_t last = batch->puns[batch->count - 1].addr;
    uint8_t byte;

    insn_encode_jmp32_head(&byte, 0, 0);
    for (unsigned i = 0; i < 256; i++, byte--) {
        pl->is_good[byte] = byte_is_good(pl->env, first, last, byte);
        if (pl->is_good[byte])
            pl->good[pl->good_count++] = byte;
    }
}

/* ---- one instruction after the other ---- */

static struct pun_wish wish_of(const struct pun_batch *batch, size_t i)
{
    struct pun_wish wish = { 0, 0 };

    for (size_t before = i; before-- > 0;) {
        if (batch->puns[before].addr + INSN_JMP32_LEN <= batch->puns[i].addr)
            break;
        pun_wish_add(&wish, &batch->puns[before], batch->puns[i].addr);
    }
    return wish;
}

static void plan_forget(struct pun *p)
{
    p->rung = PUN_NONE;
    p->pad = 0;
    p->prefixes = p->jump_len = p->span = 0;
}

static bool one_plan(struct planner *pl, struct pun *p, struct pun_wish wish)
{
    pun_text_open(pl, p);
    p->is_kept = pun_still_holds(pl, p);
    if (p->is_kept)
        return true;
    plan_forget(p);
    pl->why = PUN_OUTSIDE;
    if (pun_place(pl, p, wish))
        return true;
    p->why = pl->why;
    return pl->good_count && pun_joint(pl);
}

/* A simple sort will do: in most batches nothing is evicted. */
static void evicted_sort(struct pun_batch *batch)
{
    for (size_t i = 1; i < batch->evicted_count; i++) {
        struct pun p = batch->evicted[i];
        size_t to = i;

        for (; to > 0 && batch->evicted[to - 1].addr > p.addr; to--)
            batch->evicted[to] = batch->evicted[to - 1];
        batch->evicted[to] = p;
    }
}

size_t pun_plan(struct pun_batch *batch)
{
    struct planner *pl = planner_new(batch);
    size_t failed = 0;

    batch->evicted_count = 0;
    good_init(pl);
    for (size_t i = batch->count; i-- > 0;) {
        struct pun *p = &batch->puns[i];

        pl->chain[pl->chained++] = p;
        if (!one_plan(pl, p, wish_of(batch, i)))
            pun_text_show(pl, p);
    }
    for (size_t i = 0; i < batch->count; i++)
        failed += batch->puns[i].rung == PUN_NONE;
    evicted_sort(batch);
    return failed;
}

/* ---- words ---- */

const char *pun_rung_name(unsigned rung)
{
    static const char *const names[PUN_RUNGS] = { "none",  "direct", "call",
                                                  "plain", "padded", "far" };

    return rung < PUN_RUNGS ? names[rung] : "?";
}

const char *pun_why_name(unsigned why)
{
    static const char *const names[PUN_WHYS] = {
        [PUN_OK] = "it can be a jump",
        [PUN_OUTSIDE] = "whatever it becomes would land where no pad can be",
        [PUN_TAKEN] = "it would land on other pads",
        [PUN_UNKNOWN] = "the bytes behind it are not known",
    };

    return why < PUN_WHYS ? names[why] : "?";
}
