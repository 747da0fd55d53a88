/* free_set.c - keeps a bitmap of free things, with summaries that make the search fast.
 *
 * Pure: works only on memory of the caller. The owner of a set must hold its own lock.
 */
#include "kernel/mm/free_set.h"

#include "kernel/base/bits.h"

#define WORD_BITS 64u

static size_t words_for(size_t bits)
{
    return (bits + WORD_BITS - 1) / WORD_BITS;
}

size_t free_set_storage(size_t count)
{
    size_t words = words_for(count);
    size_t total = words;

    while (words > 1) {
        words = words_for(words);
        total += words;
    }
    return total * sizeof(uint64_t);
}

void free_set_init(struct free_set *s, size_t count, void *storage)
{
    uint64_t *at = storage;
    size_t words = words_for(count);

    *s = (struct free_set){ .count = count };
    for (size_t i = 0; i < free_set_storage(count) / sizeof(*at); i++)
        at[i] = 0;
    for (;;) {
        s->level[s->levels++] = at;
        if (words == 1)
            return;
        at += words;
        words = words_for(words);
    }
}

/* The bits of word @word of the bitmap that stand for @first..@end-1. */
static uint64_t word_mask(size_t word, size_t first, size_t end)
{
    size_t start = word * WORD_BITS;
    uint64_t mask = ~UINT64_C(0);

    if (first > start)
        mask &= ~UINT64_C(0) << (first - start);
    if (end < start + WORD_BITS)
        mask &= (UINT64_C(1) << (end - start)) - 1;
    return mask;
}

/* Updates the levels above, after word @word of the bitmap has become zero or non-zero.
 * Stops at the first level with a word that stays zero or stays non-zero.
 */
static void summarize(struct free_set *s, size_t word)
{
    for (unsigned l = 1; l < s->levels; l++) {
        uint64_t *above = &s->level[l][word / WORD_BITS];
        uint64_t was = *above;

        if (s->level[l - 1][word])
            *above |= BIT(word % WORD_BITS);
        else
            *above &= ~BIT(word % WORD_BITS);
        if (!was == !*above)
            return;
        word /= WORD_BITS;
    }
}

static void word_set(struct free_set *s, size_t word, uint64_t value)
{
    uint64_t *at = &s->level[0][word];
    bool summary_changes = !*at != !value;

    s->free += bit_count(value);
    s->free -= bit_count(*at);
    *at = value;
    if (summary_changes)
        summarize(s, word);
}

void free_set_add(struct free_set *s, size_t first, size_t count)
{
    size_t end = first + count;

    for (size_t w = first / WORD_BITS; w * WORD_BITS < end; w++)
        word_set(s, w, s->level[0][w] | word_mask(w, first, end));
}

void free_set_remove(struct free_set *s, size_t first, size_t count)
{
    size_t end = first + count;

    for (size_t w = first / WORD_BITS; w * WORD_BITS < end; w++)
        word_set(s, w, s->level[0][w] & ~word_mask(w, first, end));
}

bool free_set_has_any(const struct free_set *s, size_t first, size_t count)
{
    size_t found = free_set_find(s, first);

    return found != FREE_SET_NONE && found - first < count;
}

/* Goes up the levels until a word has a set bit at or above the current bit; then goes
 * down to the lowest free thing below this bit.
 */
size_t free_set_find(const struct free_set *s, size_t from)
{
    size_t bits = s->count;
    size_t i = from;
    unsigned l = 0;
    uint64_t hits;

    for (;;) {
        if (l == s->levels || i >= bits)
            return FREE_SET_NONE;
        hits = s->level[l][i / WORD_BITS] & (~UINT64_C(0) << (i % WORD_BITS));
        if (hits)
            break;
        i = i / WORD_BITS + 1;
        bits = words_for(bits);
        l++;
    }
    i = align_down(i, WORD_BITS) + bit_lowest(hits);
    while (l > 0) {
        l--;
        i = i * WORD_BITS + bit_lowest(s->level[l][i]);
    }
    return i;
}

/* The lowest thing of @first..@end-1 that is not free; @end if all are free. */
static size_t find_taken(const struct free_set *s, size_t first, size_t end)
{
    for (size_t w = first / WORD_BITS; w * WORD_BITS < end; w++) {
        uint64_t taken = ~s->level[0][w] & word_mask(w, first, end);

        if (taken)
            return w * WORD_BITS + bit_lowest(taken);
    }
    return end;
}

size_t free_set_find_run(const struct free_set *s, size_t from, size_t count,
                         size_t align)
{
    size_t first = free_set_find(s, from);

    while (first != FREE_SET_NONE) {
        size_t taken;

        first = align_up(first, align);
        if (first >= s->count || count > s->count - first)
            return FREE_SET_NONE;
        taken = find_taken(s, first, first + count);
        if (taken == first + count)
            return first;
        first = free_set_find(s, taken);
    }
    return FREE_SET_NONE;
}
