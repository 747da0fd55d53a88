/* poke_levels.c - puts the changes of a batch in order, if jumps are made of bytes of
 * each other.
 *
 * An instruction may extend over first bytes of other pokes. Then its meaning depends on
 * these bytes. So its int3, the guard, must be written before they change. Its new first
 * byte may be written only when they have their final values. The levels give this order:
 *
 *   guard   level of a poke = one above the highest of those that extend over it now
 *   first   level of a poke = one above the highest of those that it will extend over
 *
 * Pokes of the same level do not depend on each other. There are few levels, because
 * chains of such instructions are short: an instruction without a poke ends a chain, and
 * so does an instruction that is as long as its jump.
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

/* is_lone - may the one byte of @p change without a guard? */
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

/* guard_level - one above the highest of those in front that extend over pokes[i] now. */
static unsigned guard_level(const struct text_poke *pokes, size_t i)
{
    unsigned level = 0;

    for (size_t j = i; j-- > 0 && pokes[i].addr - pokes[j].addr < INSN_MAX_LEN;)
        if (old_end(&pokes[j]) > pokes[i].addr && pokes[j].guard_level >= level)
            level = above(pokes[j].guard_level, &pokes[i]);
    return level;
}

/* first_level - one above the highest of those behind that pokes[i] will extend over. */
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
    uintptr_t end = 0; /* the highest end of the pokes in front */

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
