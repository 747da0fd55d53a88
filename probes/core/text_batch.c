/* text_batch.c - decides which bytes a batch of pokes writes, and when.
 *
 * A change of one byte needs no guard: a CPU sees the old byte or the new one. If
 * instructions extend over each other, a step must write their bytes one after the other.
 * So a step has levels: it writes the pokes of level 0 first, then those of level 1, and
 * so on. The room that makes such instructions chooses the levels: ext_poke_levels().
 *
 * This file allocates nothing, so a batch cannot fail, and can have any number of pokes.
 */
#include "probes/core/text_batch.h"

#include "probes/core/extend.h"
#include "probes/core/platform.h"
#include "probes/insn/encode.h"

#define PAGE_LEN 4096
#define GAP_MAX 256 /* bytes between two pokes; with more, two writes cost less */

/* ---- levels ---------------------------------------------------------------------------- */

static void poke_check(const struct text_poke *p, const struct text_poke *next)
{
    if (!p->len || p->len > INSN_MAX_LEN || p->old_span > INSN_MAX_LEN ||
        p->new_span > INSN_MAX_LEN)
        plat_bug("a poke of impossible length", p->addr);
    if (next && next->addr < p->addr + p->len)
        plat_bug("pokes overlap or are out of order", p->addr);
}

/* level_of - in which level of @step is @p written? TEXT_POKE_UNGUARDED: in none. */
static unsigned level_of(const struct text_poke *p, enum text_poke_step step)
{
    if (step == TEXT_POKE_GUARD)
        return p->guard_level;
    if (step == TEXT_POKE_FIRST)
        return p->first_level;
    return step == TEXT_POKE_TAIL && p->len > 1 ? 0 : TEXT_POKE_UNGUARDED;
}

static void count_levels(struct text_batch *b, const struct text_poke *p)
{
    for (unsigned step = 0; step < TEXT_POKE_STEPS; step++) {
        unsigned level = level_of(p, step);

        if (level != TEXT_POKE_UNGUARDED && level >= b->levels[step])
            b->levels[step] = level + 1;
    }
}

/* ---- writing --------------------------------------------------------------------------- */

static uintptr_t step_end(const struct text_poke *p, enum text_poke_step step)
{
    return p->addr + (step == TEXT_POKE_TAIL ? p->len : 1);
}

static bool byte_set(uint8_t *byte, uint8_t value)
{
    bool differs = *byte != value;

    *byte = value;
    return differs;
}

/* poke_put - put the bytes that @step writes for @p into @text, a copy of the text at @p.
 * Return: did any byte change?
 */
static bool poke_put(uint8_t *text, const struct text_poke *p, enum text_poke_step step)
{
    bool changed = false;

    if (step == TEXT_POKE_GUARD)
        return byte_set(text, INSN_INT3);
    if (step == TEXT_POKE_FIRST)
        return byte_set(text, p->bytes[0]);
    for (unsigned i = 1; i < p->len; i++)
        changed |= byte_set(text + i, p->bytes[i]);
    return changed;
}

/* first_of_window - the index of the first poke that one write can change together with
 * pokes[last]. Such a group is a window: the pokes of @level in at most a page of text,
 * with at most GAP_MAX bytes between two of them.
 */
static size_t first_of_window(const struct text_batch *b, size_t last,
                              enum text_poke_step step, unsigned level)
{
    uintptr_t end = step_end(&b->pokes[last], step);
    size_t first = last;

    for (size_t i = last; i-- > b->first;) {
        const struct text_poke *p = &b->pokes[i];

        if (end - p->addr > PAGE_LEN)
            break;
        if (level_of(p, step) != level)
            continue;
        if (b->pokes[first].addr > step_end(p, step) + GAP_MAX)
            break;
        first = i;
    }
    return first;
}

/* write_window - write in one piece the text from pokes[first] to pokes[last]. The pokes
 * of @level change the bytes that @step writes; all other bytes keep their values.
 * Return: did any byte change?
 */
static bool write_window(const struct text_batch *b, size_t first, size_t last,
                         enum text_poke_step step, unsigned level)
{
    static uint8_t bytes[PAGE_LEN]; /* under PLAT_TEXT */
    uintptr_t start = b->pokes[first].addr;
    size_t len = step_end(&b->pokes[last], step) - start;
    bool changed = false;

    if (plat_text_read(bytes, start, len))
        plat_bug("text that is to be patched is not readable", start);
    for (size_t i = first; i <= last; i++)
        if (level_of(&b->pokes[i], step) == level)
            changed |= poke_put(&bytes[b->pokes[i].addr - start], &b->pokes[i], step);
    if (changed && plat_text_write(start, bytes, len))
        plat_bug("text that is to be patched is not writable", start);
    return changed;
}

/* narrow - let [b->first, b->end) be the range of the pokes with a level above @level. */
static void narrow(struct text_batch *b, enum text_poke_step step, unsigned level)
{
    size_t first = b->end, end = b->first;

    for (size_t i = b->first; i < b->end; i++) {
        unsigned its_level = level_of(&b->pokes[i], step);

        if (its_level == TEXT_POKE_UNGUARDED || its_level <= level)
            continue;
        first = first < i ? first : i;
        end = i + 1;
    }
    b->first = first;
    b->end = end;
}

/* ---- the interface --------------------------------------------------------------------- */

void text_batch_begin(struct text_batch *b, struct text_poke *pokes, size_t count)
{
    *b = (struct text_batch){ .pokes = pokes, .count = count };
    for (size_t i = 0; i < count; i++) {
        poke_check(&pokes[i], i + 1 < count ? &pokes[i + 1] : NULL);
        pokes[i].guard_level = pokes[i].len > 1 ? 0 : TEXT_POKE_UNGUARDED;
        pokes[i].first_level = 0;
        pokes[i].whole = false;
    }
    ext_poke_levels(pokes, count);
    for (size_t i = 0; i < count; i++)
        count_levels(b, &pokes[i]);
}

bool text_batch_write(struct text_batch *b, enum text_poke_step step, unsigned level)
{
    bool changed = false;

    if (!level) {
        b->first = 0;
        b->end = b->count;
    }
    for (size_t i = b->end; i-- > b->first;) {
        size_t last = i;

        if (level_of(&b->pokes[i], step) != level)
            continue;
        i = first_of_window(b, last, step, level);
        changed |= write_window(b, i, last, step, level);
    }
    if (level + 1 < b->levels[step])
        narrow(b, step, level);
    return changed;
}
