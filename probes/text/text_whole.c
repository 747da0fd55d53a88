/* text_whole.c - changes of text that one store makes: no content is between the old bytes
 * and the new ones.
 */
#include "probes/text/text_whole.h"

#include "kernel/base/bits.h"
#include "probes/core/extend.h"
#include "probes/core/platform.h"
#include "probes/core/text_poke.h"
#include "probes/text/text_history.h"

/* The steps of the batch come later. They find the bytes written, so they do nothing. */
void text_whole_choose(struct text_poke *poke)
{
    poke->whole = true;
    poke->guard_level = TEXT_POKE_UNGUARDED;
}

/* write_word - write the bytes [@first, @end) of @p by one store, of the smallest aligned
 * word that has all of them.
 */
static void write_word(const struct text_poke *p, size_t first, size_t end)
{
    uint8_t word[sizeof(uint64_t)];
    size_t len = 1;
    uintptr_t at;

    while ((p->addr + first) / len != (p->addr + end - 1) / len)
        len *= 2;
    at = align_down(p->addr + first, len);
    if (len > sizeof(word) || plat_text_read(word, at, len))
        plat_bug("text that is to be patched is not one word", p->addr);
    for (size_t i = first; i < end; i++)
        word[p->addr + i - at] = p->bytes[i];
    if (plat_text_write(at, word, len))
        plat_bug("text that is to be patched is not writable", at);
}

static bool write_one(const struct text_poke *p)
{
    uint8_t old[INSN_MAX_LEN];
    size_t first = 0, end = p->len;

    if (plat_text_read(old, p->addr, p->len))
        plat_bug("text that is to be patched is not readable", p->addr);
    while (end && old[end - 1] == p->bytes[end - 1])
        end--;
    if (!end)
        return false;
    while (old[first] == p->bytes[first])
        first++;
    write_word(p, first, end);
    return true;
}

void text_whole_write(const struct text_poke *pokes, size_t count)
{
    bool changed = false;

    for (size_t i = count; i-- > 0;)
        if (pokes[i].whole)
            changed |= write_one(&pokes[i]);
    if (changed)
        ext_poke_sync(pokes, count, TEXT_POKE_WHOLE, 0);
}

void text_poke_whole(struct text_poke *poke)
{
    text_whole_choose(poke);
    text_history_begin(poke, 1);
    text_whole_write(poke, 1);
    text_history_end(1);
}
