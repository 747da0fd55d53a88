/* text_history.c - the last changes of text, in a ring. They answer the question which
 * change has made the bytes at an address what they are.
 */
#include "probes/text/text_history.h"

#include "probes/core/platform.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/text/text_phases.h"

/* Locks: PLAT_TEXT. */
static struct text_change changes[TEXT_HISTORY_LEN];
static uint64_t noted;

static size_t remembered(size_t count)
{
    return count < TEXT_HISTORY_LEN ? count : TEXT_HISTORY_LEN;
}

static void note_change(const struct text_poke *p)
{
    struct text_change *c = &changes[noted++ % TEXT_HISTORY_LEN];

    *c = (struct text_change){
        .addr = p->addr,
        .first_phase = text_phases_count(),
        .guard_level = p->guard_level,
        .first_level = p->first_level,
        .len = p->len,
        .whole = p->whole,
    };
    plat_text_read(c->old, c->addr, c->len);
    for (size_t i = 0; i < c->len; i++)
        c->bytes[i] = p->bytes[i];
}

/* A batch may be larger than the ring. Its first changes would be overwritten at once, so
 * only its last ones are noted.
 */
void text_history_begin(const struct text_poke *pokes, size_t count)
{
    noted += count - remembered(count);
    for (size_t i = count - remembered(count); i < count; i++)
        note_change(&pokes[i]);
}

void text_history_end(size_t count)
{
    uint64_t now = plat_clock_ns();

    for (size_t i = 1; i <= remembered(count); i++) {
        struct text_change *c = &changes[(noted - i) % TEXT_HISTORY_LEN];

        c->ns = now;
        c->phases = (uint16_t)(text_phases_count() - c->first_phase);
    }
}

size_t text_history_find(uintptr_t start, uintptr_t end, struct text_change *out,
                         size_t max)
{
    uint64_t oldest = noted > TEXT_HISTORY_LEN ? noted - TEXT_HISTORY_LEN : 0;
    size_t count = 0;

    for (uint64_t n = noted; n > oldest && count < max; n--) {
        const struct text_change *c = &changes[(n - 1) % TEXT_HISTORY_LEN];

        if (c->addr < end && c->addr + c->len > start)
            out[count++] = *c;
    }
    return count;
}

void text_history_forget(uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < TEXT_HISTORY_LEN; i++)
        if (changes[i].addr - start < end - start)
            changes[i].addr = 0;
}

static bool tail_differs(const struct text_change *c)
{
    for (size_t i = 1; i < c->len; i++)
        if (c->old[i] != c->bytes[i])
            return true;
    return false;
}

size_t text_change_in(const struct text_change *c, unsigned step, unsigned level,
                      size_t *off)
{
    *off = 0;
    if (c->whole != (step == TEXT_POKE_WHOLE))
        return 0;
    switch (step) {
    case TEXT_POKE_GUARD:
        return c->guard_level == level && c->old[0] != INSN_INT3;
    case TEXT_POKE_TAIL:
        *off = 1;
        return tail_differs(c) ? c->len - 1u : 0;
    case TEXT_POKE_FIRST:
        return c->first_level == level &&
               c->bytes[0] !=
                   (c->guard_level == TEXT_POKE_UNGUARDED ? c->old[0] : INSN_INT3);
    default:
        return c->len;
    }
}
