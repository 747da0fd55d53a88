/* poke_levels.c - the order of changes where jumps are made of bytes of each other.
 *
 * An instruction may extend over first bytes of other pokes: then what it means depends on
 * them. It has to be guarded before they are, and may become visible only when they have
 * their final value:
 *
 *   guard   level of a poke = one above the highest of those that extend over it now
 *   first   level of a poke = one above the highest of those that it will extend over
 *
 * Pokes of a level do not depend on each other. Such chains are short: each instruction
 * without a poke ends them, and each that is as long as its jump.
 */
#include "probes/core/extend.h"
#include "probes/core/platform.h"
#include "probes/core/text_batch.h"

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
    if (level >= TEXT_POKE_UNGUARDED - 1)
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

static void find_guard_levels(struct text_poke *pokes, size_t count)
{
    uintptr_t end = 0; /* of all in front */

    for (size_t i = 0; i < count; i++) {
        struct text_poke *p = &pokes[i];

        if (!is_lone(p, i + 1 < count ? p + 1 : NULL))
            p->guard_level = (uint16_t)(end > p->addr ? guard_level(pokes, i) : 0);
        end = old_end(p) > end ? old_end(p) : end;
    }
}

void ext_poke_levels(struct text_poke *pokes, size_t count)
{
    find_guard_levels(pokes, count);
    for (size_t i = count; i-- > 0;)
        pokes[i].first_level = (uint16_t)first_level(pokes, count, i);
}
