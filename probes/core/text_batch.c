/* text_batch.c - which bytes a batch of pokes writes when.
 *
 * Why levels. An instruction may extend over first bytes of other pokes: then what it means
 * depends on them. It has to be guarded before they are, and may become visible only when
 * they have their final value:
 *
 *   guard   level of a poke = one above the highest of those that extend over it now
 *   first   level of a poke = one above the highest of those that it will extend over
 *
 * Pokes of a level do not depend on each other. Such chains are short: each instruction
 * without a poke ends them, and each that is as long as its jump. A poke that extends over
 * no other poke and changes one byte only needs no guard: a CPU sees one byte or the other.
 *
 * Owns no memory but a page's worth of bytes, so a batch can be as large as its caller's.
 */
#include "probes/core/text_batch.h"

#include "probes/core/platform.h"
#include "probes/insn/encode.h"

#define PAGE_LEN 4096
#define GAP_MAX 256 /* bytes between two pokes: more, and two mappings cost less */
#define UNGUARDED UINT16_MAX
#define LEVELS_MAX (UINT16_MAX - 1)

/* ---- levels ---------------------------------------------------------------------------- */

static uintptr_t old_end(const struct text_poke *p)
{
    return p->addr + (p->old_span > p->len ? p->old_span : p->len);
}

static uintptr_t new_end(const struct text_poke *p)
{
    return p->addr + (p->new_span > p->len ? p->new_span : p->len);
}

/* is_lone - may @p go from one byte to the other without a guard? */
static bool is_lone(const struct text_poke *p, const struct text_poke *next)
{
    return p->len == 1 &&
           (!next || (old_end(p) <= next->addr && new_end(p) <= next->addr));
}

static unsigned above(unsigned level, const struct text_poke *p)
{
    if (level >= LEVELS_MAX)
        plat_bug("too many instructions extend over each other", p->addr);
    return level + 1;
}

/* guard_level - one above those in front of pokes[i] that extend over it. */
static unsigned guard_level(const struct text_poke *pokes, size_t i)
{
    unsigned level = 0;

    for (size_t j = i; j-- > 0 && pokes[i].addr - pokes[j].addr < INSN_MAX_LEN;)
        if (old_end(&pokes[j]) > pokes[i].addr && pokes[j].guard_level >= level)
            level = above(pokes[j].guard_level, &pokes[i]);
    return level;
}

/* first_level - one above those behind pokes[i] that it will extend over. */
static unsigned first_level(const struct text_poke *pokes, size_t count, size_t i)
{
    unsigned level = 0;

    for (size_t j = i + 1; j < count && pokes[j].addr < new_end(&pokes[i]); j++)
        if (pokes[j].first_level >= level)
            level = above(pokes[j].first_level, &pokes[i]);
    return level;
}

static void poke_check(const struct text_poke *p, const struct text_poke *next)
{
    if (!p->len || p->len > INSN_MAX_LEN || p->old_span > INSN_MAX_LEN ||
        p->new_span > INSN_MAX_LEN)
        plat_bug("a poke of impossible length", p->addr);
    if (next && next->addr < p->addr + p->len)
        plat_bug("pokes overlap or are out of order", p->addr);
}

static void raise(unsigned *levels, unsigned level)
{
    if (level >= *levels)
        *levels = level + 1;
}

static void levels_from_front(struct text_batch *b)
{
    uintptr_t end = 0; /* of all in front */

    for (size_t i = 0; i < b->count; i++) {
        struct text_poke *p = &b->pokes[i];
        const struct text_poke *next = i + 1 < b->count ? p + 1 : NULL;

        poke_check(p, next);
        if (p->len > 1)
            raise(&b->levels[TEXT_POKE_TAIL], 0);
        p->guard_level = UNGUARDED;
        if (!is_lone(p, next)) {
            p->guard_level = (uint16_t)(end > p->addr ? guard_level(b->pokes, i) : 0);
            raise(&b->levels[TEXT_POKE_GUARD], p->guard_level);
        }
        end = old_end(p) > end ? old_end(p) : end;
    }
}

static void levels_from_end(struct text_batch *b)
{
    for (size_t i = b->count; i-- > 0;) {
        struct text_poke *p = &b->pokes[i];

        p->first_level = (uint16_t)first_level(b->pokes, b->count, i);
        raise(&b->levels[TEXT_POKE_FIRST], p->first_level);
    }
}

/* ---- writing --------------------------------------------------------------------------- */

/* level_of - in which level of @step is @p written? UNGUARDED, and above all: in none. */
static unsigned level_of(const struct text_poke *p, enum text_poke_step step)
{
    switch (step) {
    case TEXT_POKE_GUARD:
        return p->guard_level;
    case TEXT_POKE_TAIL:
        return p->len > 1 ? 0 : UNGUARDED;
    default:
        return p->first_level;
    }
}

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

/* poke_put - what @step writes of @p, into a copy of the text.  Return: did it change? */
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

/* first_of_window - how far down can be written together with pokes[last]? */
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

/* write_window - pokes[first..last], with what lies between them written back as it is.
 * Return: has anything changed?
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

/* narrow - to those that are of a higher level than @level. */
static void narrow(struct text_batch *b, enum text_poke_step step, unsigned level)
{
    size_t first = b->end, end = b->first;

    for (size_t i = b->first; i < b->end; i++) {
        unsigned its_level = level_of(&b->pokes[i], step);

        if (its_level == UNGUARDED || its_level <= level)
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
    levels_from_front(b);
    levels_from_end(b);
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

bool text_batch_is_inside(const struct text_batch *b, uintptr_t ip)
{
    size_t low = 0, high = b->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (b->pokes[mid].addr < ip)
            low = mid + 1;
        else
            high = mid;
    }
    return low && ip < b->pokes[low - 1].addr + b->pokes[low - 1].len;
}
