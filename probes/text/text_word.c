/* text_word.c - the engine that makes a change by one store where no CPU can fetch a mixture
 * of old and new bytes, and takes the steps of int3 elsewhere: docs/text-poke.md.
 */
#include "kernel/base/bits.h"
#include "probes/core/platform.h"
#include "probes/core/text_batch.h"
#include "probes/text/platform_text.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_whole.h"

#define WORD sizeof(uint64_t)

/* span_end - where do the old and the new instruction of @p end? */
static uintptr_t span_end(const struct text_poke *p)
{
    unsigned span = p->old_span > p->new_span ? p->old_span : p->new_span;

    return p->addr + (span > p->len ? span : p->len);
}

static bool is_one_byte(const struct text_poke *p)
{
    uint8_t old[INSN_MAX_LEN];
    unsigned differ = 0;

    if (plat_text_read(old, p->addr, p->len))
        return false;
    for (size_t i = 0; i < p->len; i++)
        differ += old[i] != p->bytes[i];
    return differ <= 1;
}

static bool is_one_word(const struct text_poke *p)
{
    uintptr_t word = align_down(p->addr, WORD);

    return plat_fetches_words() && span_end(p) <= word + WORD &&
           plat_text_contains(word, WORD);
}

static void choose_words(struct text_batch *b)
{
    uintptr_t end = 0; /* of the instructions in front */

    for (size_t i = 0; i < b->count; i++) {
        struct text_poke *p = &b->pokes[i];
        bool is_apart =
            end <= p->addr && (i + 1 == b->count || span_end(p) <= b->pokes[i + 1].addr);

        if (is_apart && p->len > 1 && (is_one_byte(p) || is_one_word(p)))
            text_whole_choose(p);
        end = span_end(p) > end ? span_end(p) : end;
    }
}

const struct text_engine text_engine_word = {
    .name = "word",
    .steps = BIT(TEXT_POKE_WHOLE) | BIT(TEXT_POKE_GUARD) | BIT(TEXT_POKE_TAIL) |
             BIT(TEXT_POKE_FIRST),
    .choose = choose_words,
    .run = text_poke_steps,
};
