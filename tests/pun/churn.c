/* churn.c - sets and removes probes in random order, and plans each change by itself.
 *
 * These are the members of a batch: the probes that are set or removed, every jump that
 * pins bytes of a member, and the probes a few bytes behind, so that the search has more
 * freedom. After each batch, the jumps near it are decoded from the text.
 */
#include "tests/pun/churn.h"

#include "tests/pun/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD PUN_NEAR /* probes fewer than AHEAD bytes behind are members, too */
#define MEMBERS 4096   /* of one batch, at most */
#define EVICTED 64
#define PAGES ((size_t)1 << 20)
#define REACH_START UINT64_C(0xffffffff00000000)

struct pad {
    struct pad *next;
    uintptr_t addr;
};

struct churn {
    struct world w;
    struct pun *plans;  /* by offset; len 0: no plan */
    uint8_t *is_going;  /* by offset: this probe, or evicted jump, is being removed */
    uint8_t *is_member; /* by offset: a member of the batch that is being made */
    struct pad **pads;  /* by page */
    struct pun members[MEMBERS], evicted[EVICTED];
    struct pun_batch batch;
    struct churn_result result;
    uint64_t random;
};

static uint64_t random_next(struct churn *c)
{
    uint64_t x = c->random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* ---- pads in use ---- */

static struct pad **page_of(struct churn *c, uintptr_t addr)
{
    return &c->pads[(addr - REACH_START) / 4096 % PAGES];
}

static bool page_has(struct churn *c, uintptr_t page_addr, uintptr_t pad)
{
    for (const struct pad *p = *page_of(c, page_addr); p; p = p->next) {
        if (p->addr - pad + PUN_PAD_LEN - 1 < 2 * PUN_PAD_LEN - 1)
            return true;
    }
    return false;
}

static bool pad_is_free(void *arg, uintptr_t pad)
{
    struct churn *c = arg;

    return !page_has(c, pad, pad) && !page_has(c, pad - 4, pad) &&
           !page_has(c, pad + 4, pad);
}

static void pad_take(struct churn *c, uintptr_t addr)
{
    struct pad **list = page_of(c, addr), *p = malloc(sizeof(*p));

    if (!p)
        abort();
    *p = (struct pad){ *list, addr };
    *list = p;
}

static void pad_drop(struct churn *c, uintptr_t addr)
{
    struct pad **link = page_of(c, addr), *p;

    while (*link && (*link)->addr != addr)
        link = &(*link)->next;
    p = *link;
    if (!p) {
        c->result.problems++;
        return;
    }
    *link = p->next;
    free(p);
}

/* ---- functions that the planner calls ---- */

static size_t off_of(const struct churn *c, uintptr_t addr)
{
    return addr - c->w.image->base;
}

/* byte_at - return the byte at @addr as it is in the text. The planner asks for no byte
 * of a member, and the jumps that are removed are not in the text any more.
 */
static bool byte_at(void *arg, uintptr_t addr, uint8_t *byte)
{
    const struct churn *c = arg;
    size_t off = off_of(c, addr);

    if (off >= c->w.image->len + 64)
        return false;
    *byte = c->w.text[off];
    return true;
}

static bool is_jump(const struct churn *c, size_t off)
{
    return c->plans[off].len && c->plans[off].rung != PUN_NONE;
}

/* is_pinned - does a jump that is no member read one of these bytes? */
static bool is_pinned(const struct churn *c, size_t off, size_t len)
{
    for (size_t at = off > INSN_MAX_LEN ? off - INSN_MAX_LEN : 0; at < off + len; at++) {
        if (is_jump(c, at) && !c->is_member[at] && at + c->plans[at].span > off)
            return true;
    }
    return false;
}

static bool is_padding(void *arg, uintptr_t addr)
{
    const struct churn *c = arg;
    size_t off = off_of(c, addr);

    return off < c->w.image->len && c->w.image->flags[off] & IMAGE_PADDING &&
           !is_pinned(c, off, 1);
}

static bool neighbour(void *arg, uintptr_t addr, struct pun *out)
{
    const struct churn *c = arg;
    size_t off = off_of(c, addr);

    if (off >= c->w.image->len || !(c->w.image->flags[off] & IMAGE_PROBED) ||
        c->is_member[off] || c->plans[off].len ||
        is_pinned(c, off, c->w.image->lens[off]))
        return false;
    *out = world_pun(&c->w, off);
    out->detour = 0;
    return true;
}

/* ---- the members of a batch ---- */

static void member_mark(struct churn *c, size_t off)
{
    c->is_member[off] = 1;
}

/* pinning_mark - make these jumps members: each jump that reads the byte at @off, the
 * jumps that read its first byte, and so on.
 */
static void pinning_mark(struct churn *c, size_t off)
{
    for (size_t back = 1; back < INSN_MAX_LEN && back <= off; back++) {
        size_t at = off - back;

        if (!is_jump(c, at) || at + c->plans[at].span <= off || c->is_member[at])
            continue;
        member_mark(c, at);
        pinning_mark(c, at);
    }
}

static void near_mark(struct churn *c, size_t off)
{
    pinning_mark(c, off);
    for (size_t at = off + 1; at < off + AHEAD && at < c->w.image->len; at++) {
        if (c->plans[at].len)
            member_mark(c, at);
    }
}

/* batch_gather - collect the members, by ascending address, from a little in front of
 * @first to a little behind @last.
 */
static void batch_gather(struct churn *c, size_t first, size_t last)
{
    size_t off = first > 4096 ? first - 4096 : 0;

    c->batch = (struct pun_batch){ .env = &c->w.env,
                                   .puns = c->members,
                                   .evicted = c->evicted,
                                   .evicted_max = EVICTED };
    for (; off < last + AHEAD + 1 && off < c->w.image->len; off++) {
        if (c->is_member[off] && !c->is_going[off])
            c->members[c->batch.count++] = c->plans[off];
        if (c->batch.count == MEMBERS)
            abort();
    }
}

/* ---- the text while a batch is planned, and after that ---- */

/* padding_restore - put back the padding that the jump of the member @p has overwritten,
 * so that the planner finds the original bytes.
 */
static void padding_restore(struct churn *c, const struct pun *p)
{
    size_t off = off_of(c, p->addr);

    for (size_t i = p->len; i < p->jump_len; i++)
        c->w.text[off + i] = c->w.image->bytes[off + i];
}

static void plan_check(struct churn *c, const struct pun *p)
{
    const uint8_t *at = c->w.text + off_of(c, p->addr);
    struct insn insn;

    if (insn_decode(&insn, at, INSN_MAX_LEN, p->addr) || insn.len != p->span ||
        insn.target != (p->pad ? p->pad : p->detour)) {
        if (c->result.problems++ < 10)
            printf("# %#lx, %u bytes: is no such jump\n", p->addr, p->len);
    }
}

static void near_check(struct churn *c, size_t first, size_t last)
{
    size_t off = first > 256 ? first - 256 : 0;

    for (; off < last + 256 && off < c->w.image->len; off++) {
        if (is_jump(c, off))
            plan_check(c, &c->plans[off]);
    }
}

/* plan_accept - replace the previous plan, and its pad, by the plan @p. */
static void plan_accept(struct churn *c, struct pun *p)
{
    size_t off = off_of(c, p->addr);
    struct pun *old = &c->plans[off];
    bool was_jump = old->len && old->rung != PUN_NONE;

    if (p->is_kept)
        return;
    if (was_jump && old->pad)
        pad_drop(c, old->pad);
    c->result.lost += was_jump && p->rung == PUN_NONE;
    if (p->rung != PUN_NONE && p->pad)
        pad_take(c, p->pad);
    p->next = NULL;
    *old = *p;
}

static void batch_write(struct churn *c)
{
    struct pun_batch *b = &c->batch;

    for (size_t i = 0; i < b->count; i++)
        plan_accept(c, &b->puns[i]);
    for (size_t i = 0; i < b->evicted_count; i++)
        plan_accept(c, &b->evicted[i]);
    for (size_t i = 0; i < b->count; i++) {
        memcpy(c->w.text + off_of(c, b->puns[i].addr), b->puns[i].bytes, b->puns[i].len);
        world_write(&c->w, &b->puns[i]);
    }
    for (size_t i = 0; i < b->evicted_count; i++)
        world_write(&c->w, &b->evicted[i]);
}

static void batch_plan(struct churn *c, size_t first, size_t last)
{
    struct pun_batch *b = &c->batch;

    batch_gather(c, first, last);
    if (b->count == 0)
        return;
    b->work = malloc(pun_work_len(b->count, b->evicted_max));
    for (size_t i = 0; i < b->count; i++) {
        if (c->plans[off_of(c, b->puns[i].addr)].rung != PUN_NONE)
            padding_restore(c, &b->puns[i]);
    }
    pun_plan(b);
    free(b->work);
    batch_write(c);
    c->result.changes++;
    c->result.members += b->count;
    if (b->count > c->result.most)
        c->result.most = b->count;
}

static void marks_clear(struct churn *c, size_t first, size_t last)
{
    size_t off = first > 4096 ? first - 4096 : 0;

    memset(c->is_member + off, 0, last + AHEAD + 1 - off);
}

/* ---- probes are set and removed ---- */

static void arm(struct churn *c, const size_t *offs, size_t count)
{
    size_t first = offs[0], last = offs[0];

    for (size_t i = 0; i < count; i++) {
        if (!c->plans[offs[i]].len)
            c->plans[offs[i]] = world_pun(&c->w, offs[i]);
        c->plans[offs[i]].is_evicted = false;
        member_mark(c, offs[i]);
        first = offs[i] < first ? offs[i] : first;
        last = offs[i] > last ? offs[i] : last;
    }
    for (size_t i = 0; i < count; i++)
        near_mark(c, offs[i]);
    batch_plan(c, first, last);
    marks_clear(c, first, last);
    near_check(c, first, last);
}

static void go(struct churn *c, size_t off)
{
    struct pun *p = &c->plans[off];

    if (p->rung != PUN_NONE && p->pad)
        pad_drop(c, p->pad);
    memcpy(c->w.text + off, c->w.image->bytes + off,
           p->rung != PUN_NONE && p->jump_len > p->len ? p->jump_len : p->len);
    *p = (struct pun){ 0 };
    c->is_going[off] = 0;
}

/* evicted_find - let these jumps be removed, too: jumps near @off at instructions without
 * a probe that no other jump needs any more.
 */
static void evicted_find(struct churn *c, size_t off)
{
    for (size_t at = off; at < off + AHEAD && at < c->w.image->len; at++) {
        bool is_needed = false;

        if (!c->plans[at].len || !c->plans[at].is_evicted || c->is_going[at])
            continue;
        for (size_t back = 1; back < INSN_MAX_LEN && back <= at; back++)
            is_needed |= is_jump(c, at - back) && !c->is_going[at - back] &&
                         at - back + c->plans[at - back].span > at;
        c->is_going[at] = !is_needed;
    }
}

static void disarm(struct churn *c, size_t off)
{
    if (!c->plans[off].len)
        return;
    c->is_going[off] = 1;
    evicted_find(c, off);
    for (size_t at = off; at < off + AHEAD && at < c->w.image->len; at++) {
        if (c->is_going[at])
            pinning_mark(c, at);
    }
    near_mark(c, off);
    for (size_t at = off; at < off + AHEAD && at < c->w.image->len; at++) {
        if (c->is_going[at])
            go(c, at);
        if (!c->plans[at].len)
            c->is_member[at] = 0;
    }
    batch_plan(c, off, off);
    marks_clear(c, off, off);
    near_check(c, off, off);
}

static size_t *order_new(struct churn *c, size_t step, size_t *count)
{
    const struct image *image = c->w.image;
    size_t *offs = malloc((image->probed / step + 1) * sizeof(offs[0]));
    size_t nth = 0;

    *count = 0;
    for (size_t off = 0; off < image->len; off++) {
        if (image->flags[off] & IMAGE_PROBED && nth++ % step == 0)
            offs[(*count)++] = off;
    }
    return offs;
}

/* shuffle - put groups of @at_once neighbours into a random order. */
static void shuffle(struct churn *c, size_t *offs, size_t count, size_t at_once)
{
    for (size_t i = count / at_once; i > 1; i--) {
        size_t *one = offs + (i - 1) * at_once,
               *other = offs + random_next(c) % i * at_once;

        for (size_t k = 0; k < at_once; k++) {
            size_t off = one[k];

            one[k] = other[k];
            other[k] = off;
        }
    }
}

static void jumps_count(struct churn *c)
{
    for (size_t off = 0; off < c->w.image->len; off++) {
        const struct pun *p = &c->plans[off];

        if (!p->len)
            continue;
        c->result.evicted += p->is_evicted;
        c->result.armed += !p->is_evicted;
        c->result.jumps += !p->is_evicted && p->rung != PUN_NONE;
    }
}

/* rest_go - remove the jumps that are left when all probes are removed: those at evicted
 * instructions that were near no removed probe.
 */
static void rest_go(struct churn *c)
{
    for (size_t off = 0; off < c->w.image->len; off++)
        disarm(c, off);
}

static struct churn *churn_new(const struct image *image)
{
    struct churn *c = calloc(1, sizeof(*c));

    if (!c)
        abort();
    world_init(&c->w, image);
    c->w.env.arg = c;
    c->w.env.pad_is_free = pad_is_free;
    c->w.env.byte_at = byte_at;
    c->w.env.is_padding = is_padding;
    c->w.env.neighbour = neighbour;
    c->plans = calloc(image->len + 64, sizeof(c->plans[0]));
    c->is_going = calloc(image->len + 64, 1);
    c->is_member = calloc(image->len + 64, 1);
    c->pads = calloc(PAGES, sizeof(c->pads[0]));
    return c;
}

static void churn_free(struct churn *c)
{
    for (size_t i = 0; i < PAGES; i++)
        c->result.problems += c->pads[i] != NULL;
    c->result.problems += memcmp(c->w.text, c->w.image->bytes, c->w.image->len) != 0;
    world_free(&c->w);
    free(c->plans);
    free(c->is_going);
    free(c->is_member);
    free(c->pads);
}

struct churn_result churn_run(const struct image *image, size_t step, size_t at_once)
{
    struct churn *c = churn_new(image);
    struct churn_result result;
    size_t count, *offs = order_new(c, step, &count);

    shuffle(c, offs, count, at_once);
    for (size_t i = 0; i < count; i += at_once)
        arm(c, offs + i, at_once < count - i ? at_once : count - i);
    jumps_count(c);
    shuffle(c, offs, count, 1);
    for (size_t i = 0; i < count; i++)
        disarm(c, offs[i]);
    rest_go(c);
    churn_free(c);
    result = c->result;
    free(offs);
    free(c);
    return result;
}
