/* hist.c - keeps the table of a histogram. hist_add() runs in every hit. The numbers 1 to
 * 4 mark the places that the comment in hist.h explains.
 */
#include "probes/trace/language/hist_parts.h"

#include "kernel/base/compiler.h"

#include <string.h>

/* ---- keys ---- */

static uint64_t log2_of(uint64_t value)
{
    return value ? 63u - (unsigned)__builtin_clzll(value) : 0;
}

uint64_t hist_number(const struct hist *hist, const struct hist_part *part,
                     const struct hist_hit *hit, const struct hist_time *time)
{
    size_t size;

    if (part->field.kind == FILTER_ONE)
        return 1;
    if (part->field.kind == FILTER_TIME)
        return hist->in_us && time->is_ns ? time->value / 1000 : time->value;
    if (hist_part_is_text(part))
        return (uintptr_t)filter_field_string(&part->field, hit->record, hit->len,
                                              hit->comm, &size);
    return filter_field_number(&part->field, hit->record, hit->cpu);
}

static uint64_t number_key(const struct hist *hist, const struct hist_part *part,
                           const struct hist_hit *hit, const struct hist_time *time)
{
    uint64_t value = hist_number(hist, part, hit, time);

    switch (part->show) {
    case HIST_LOG2:
        /* As on Linux: the least power of two that is not below the value. */
        return value <= 1 ? 0 : log2_of(value - 1) + 1;
    case HIST_BUCKETS:
        return value - value % part->bucket;
    default:
        return value;
    }
}

static void string_key(const struct hist_part *part, const struct hist_hit *hit,
                       uint8_t *key)
{
    size_t size;
    const char *text =
        filter_field_string(&part->field, hit->record, hit->len, hit->comm, &size);

    if (size > HIST_STRING_MAX - 1)
        size = HIST_STRING_MAX - 1;
    memcpy(key, text, strnlen(text, size));
}

static void stack_key(const struct hist_hit *hit, uint8_t *key)
{
    size_t len = hit->stack_len < HIST_STACK_MAX ? hit->stack_len : HIST_STACK_MAX;

    if (len)
        memcpy(key, hit->stack, len * sizeof(*hit->stack));
}

/* make_key - fill in the key of a hit. @key: key_size bytes, zeroed. */
static void make_key(const struct hist *hist, const struct hist_hit *hit,
                     const struct hist_time *time, uint8_t *key)
{
    for (unsigned i = 0; i < hist->key_count; i++) {
        const struct hist_part *part = &hist->key[i];
        uint64_t number;

        if (part->show == HIST_STACK) {
            stack_key(hit, key + part->at);
        } else if (!hist_key_is_number(part)) {
            string_key(part, hit, key + part->at);
        } else {
            number = number_key(hist, part, hit, time);
            memcpy(key + part->at, &number, sizeof(number));
        }
    }
}

/* hash_key - hash a key. @size is a multiple of 8. */
static uint32_t hash_key(const uint8_t *key, size_t size)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, key + i, sizeof(word));
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* ---- entries ---- */

/* entry_spare_take - take an entry that no other hit uses. Return: its number + 1; 0:
 * there is none.
 */
static uint32_t entry_spare_take(struct hist_table *table)
{
    uint32_t spare = __atomic_exchange_n(&table->spare, 0, __ATOMIC_ACQUIRE);
    uint64_t number;

    if (spare)
        return spare;
    if (__atomic_load_n(&table->next, __ATOMIC_RELAXED) >= table->size)
        return 0;
    number = __atomic_fetch_add(&table->next, 1, __ATOMIC_RELAXED);
    return number < table->size ? (uint32_t)number + 1 : 0;
}

/* entry_spare_put - keep an unused entry for the next key. If there is one already, that
 * one is lost.
 */
static void entry_spare_put(struct hist_table *table, uint32_t entry)
{
    __atomic_store_n(&table->spare, entry, __ATOMIC_RELEASE);
}

static void entry_fill(struct hist *hist, uint32_t number, const uint8_t *key,
                       uint32_t hash, const char *comm)
{
    struct hist_entry *entry = hist_entry(hist, number);

    entry->hash = hash;
    entry->sum[0] = 0;
    for (unsigned i = 0; i < hist->val_count; i++) {
        bool is_signed = hist->val[i].field.is_signed;

        entry->sum[1 + i] = 0;
        if (hist->val[i].show == HIST_MIN)
            entry->sum[1 + i] = is_signed ? (uint64_t)INT64_MAX : UINT64_MAX;
        else if (hist->val[i].show == HIST_MAX && is_signed)
            entry->sum[1 + i] = (uint64_t)INT64_MIN;
    }
    memset(entry->comm, 0, sizeof(entry->comm));
    memcpy(entry->comm, comm, strnlen(comm, sizeof(entry->comm) - 1));
    memcpy(hist_entry_key(hist, entry), key, hist->key_size);
    if (hist->more)
        memset(hist_entry_more(hist, entry), 0, hist->more->size);
}

static bool is_entry_of(const struct hist *hist, uint32_t number, const uint8_t *key,
                        uint32_t hash)
{
    struct hist_entry *entry = hist_entry(hist, number);

    return entry->hash == hash &&
           !memcmp(hist_entry_key(hist, entry), key, hist->key_size);
}

/* entry_find - find the entry of a key, or make it. Return: NULL: the table is full. */
static struct hist_entry *entry_find(struct hist *hist, const uint8_t *key,
                                     const char *comm)
{
    struct hist_table *table = hist->table;
    uint32_t hash = hash_key(key, hist->key_size), mine = 0;
    size_t slots = 2 * table->size;

    for (size_t i = 0; i < slots; i++) { /* 4 */
        uint32_t *slot = &table->slot[(hash + i) & (slots - 1)];
        uint32_t seen = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

        if (!seen) {
            if (!mine) {
                mine = entry_spare_take(table);
                if (!mine)
                    return NULL;
                entry_fill(hist, mine - 1, key, hash, comm); /* 1 */
            }
            if (__atomic_compare_exchange_n(slot, &seen, mine, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                __atomic_fetch_add(&table->used, 1, __ATOMIC_RELAXED);
                return hist_entry(hist, mine - 1);
            }
        }
        if (is_entry_of(hist, seen - 1, key, hash)) { /* 2 */
            if (mine)
                entry_spare_put(table, mine);
            return hist_entry(hist, seen - 1);
        }
    }
    if (mine)
        entry_spare_put(table, mine);
    return NULL;
}

struct hist_entry *hist_look(const struct hist *hist, const uint8_t *key)
{
    const struct hist_table *table = hist->table;
    uint32_t hash = hash_key(key, hist->key_size);
    size_t slots = 2 * table->size;

    for (size_t i = 0; i < slots; i++) {
        uint32_t seen =
            __atomic_load_n(&table->slot[(hash + i) & (slots - 1)], __ATOMIC_ACQUIRE);

        if (!seen)
            return NULL;
        if (is_entry_of(hist, seen - 1, key, hash))
            return hist_entry(hist, seen - 1);
    }
    return NULL;
}

/* ---- values ---- */

static bool is_less(uint64_t a, uint64_t b, bool is_signed)
{
    return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

/* note_extreme - store @value if it is a new minimum or maximum. An exchange fails only
 * if another hit has stored a more extreme value.
 */
static void note_extreme(uint64_t *sum, uint64_t value, const struct hist_part *part)
{
    uint64_t old = __atomic_load_n(sum, __ATOMIC_RELAXED);
    bool is_signed = part->field.is_signed;

    while (part->show == HIST_MIN ? is_less(value, old, is_signed)
                                  : is_less(old, value, is_signed))
        if (__atomic_compare_exchange_n(sum, &old, value, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return;
}

static void sum_merge(uint64_t *sum, uint64_t value, const struct hist_part *part)
{
    if (part->show == HIST_MIN || part->show == HIST_MAX)
        note_extreme(sum, value, part);
    else
        __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}

void hist_add_at(struct hist *hist, const struct hist_hit *hit,
                 const struct hist_time *time)
{
    uint8_t key[HIST_KEYS_MAX * HIST_STACK_MAX * sizeof(uint64_t)];
    uint64_t refs[HIST_REFS_MAX];
    struct hist_entry *entry;

    if (READ_ONCE(*hist->paused) || hist_is_held(hist))
        return;
    memset(key, 0, hist->key_size);
    make_key(hist, hit, time, key);
    if (hist->more && !hist_more_read(hist, key, refs))
        return;
    entry = entry_find(hist, key, hit->comm);
    if (!entry) {
        __atomic_fetch_add(&hist->table->dropped, 1, __ATOMIC_RELAXED);
        return;
    }
    if (hist->more)
        hist_more_set(hist, entry, hit, time, refs);
    for (unsigned i = 0; i < hist->val_count; i++) { /* 3 */
        const struct hist_part *part = &hist->val[i];
        uint64_t value = part->field.kind == FILTER_VARIABLE
                             ? refs[part->field.offset]
                             : hist_number(hist, part, hit, time);

        sum_merge(&entry->sum[1 + i], value, part);
    }
    __atomic_fetch_add(&entry->sum[0], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&hist->table->hits, 1, __ATOMIC_RELAXED);
    if (hist->more)
        hist_more_act(hist, entry, hit, time, refs);
}

void hist_add(struct hist *hist, const struct hist_hit *hit)
{
    static const struct hist_time none;

    hist_add_at(hist, hit, &none);
}

void hist_clear(struct hist *hist)
{
    struct hist_table *table = hist->table;

    memset(table->slot, 0, 2 * table->size * sizeof(*table->slot));
    table->next = 0;
    table->spare = 0;
    table->used = 0;
    table->hits = 0;
    table->dropped = 0;
    table->unmatched = 0;
    table->unread = 0;
}

/* ---- hits that were counted elsewhere ---- */

void hist_merge(struct hist *hist, const uint8_t *key, const uint64_t *sums)
{
    bool room = !hist->keeps || entry_find(hist->keeps, key, "");
    struct hist_entry *entry = room ? entry_find(hist, key, "") : NULL;

    if (!entry) {
        __atomic_fetch_add(&hist->table->dropped, sums[0], __ATOMIC_RELAXED);
        return;
    }
    for (unsigned i = 0; i < hist->val_count; i++)
        sum_merge(&entry->sum[1 + i], sums[1 + i], &hist->val[i]);
    __atomic_fetch_add(&entry->sum[0], sums[0], __ATOMIC_RELAXED);
    __atomic_fetch_add(&hist->table->hits, sums[0], __ATOMIC_RELAXED);
}

void hist_merge_dropped(struct hist *hist, uint64_t hits)
{
    __atomic_fetch_add(&hist->table->dropped, hits, __ATOMIC_RELAXED);
}

/* An entry in the middle of being made is not in a slot yet, and is left out. */
COLD struct hist *hist_copy(const struct def_host *host, const struct hist *hist)
{
    const struct hist_table *from = hist->table;
    struct hist *copy = host->alloc(sizeof(*copy));
    struct hist_table *to = host->alloc(sizeof(*to));
    size_t slots = 2 * from->size * sizeof(*to->slot),
           entries = from->size * from->entry_size;
    uint32_t *slot = host->alloc(slots);
    uint8_t *bytes = host->alloc(entries);

    if (!copy || !to || !slot || !bytes) {
        host->free(copy);
        host->free(to);
        host->free(slot);
        host->free(bytes);
        return NULL;
    }
    *copy = *hist;
    *to = *from;
    copy->table = to;
    copy->keeps = NULL;
    to->slot = memcpy(slot, from->slot, slots);
    to->entries = memcpy(bytes, from->entries, entries);
    to->spare = 0;
    return copy;
}

void hist_copy_free(const struct def_host *host, struct hist *copy)
{
    host->free(copy->table->slot);
    host->free(copy->table->entries);
    host->free(copy->table);
    host->free(copy);
}

static bool has_symbol(const struct hist *hist)
{
    for (unsigned i = 0; i < hist->key_count; i++)
        if (hist->key[i].show == HIST_SYM)
            return true;
    return false;
}

static void merge_by_symbol(struct hist *to, const struct hist *from, uint32_t number,
                            uint64_t (*start)(uint64_t addr))
{
    uint8_t key[HIST_KEYS_MAX * HIST_STACK_MAX * sizeof(uint64_t)];
    struct hist_entry *entry = hist_entry(from, number);

    memcpy(key, hist_entry_key(from, entry), from->key_size);
    for (unsigned i = 0; i < from->key_count; i++) {
        uint64_t addr;

        if (from->key[i].show != HIST_SYM)
            continue;
        memcpy(&addr, key + from->key[i].at, sizeof(addr));
        addr = start(addr);
        memcpy(key + from->key[i].at, &addr, sizeof(addr));
    }
    hist_merge(to, key, entry->sum);
}

struct hist *hist_by_symbol(const struct def_host *host, const struct hist *hist,
                            uint64_t (*start)(uint64_t addr))
{
    const struct hist_table *from = hist->table;
    struct hist *copy = has_symbol(hist) ? hist_copy(host, hist) : NULL;

    if (!copy)
        return NULL;
    hist_clear(copy);
    for (size_t i = 0; i < 2 * from->size; i++)
        if (from->slot[i])
            merge_by_symbol(copy, hist, from->slot[i] - 1, start);
    copy->table->dropped += from->dropped;
    copy->table->unmatched = from->unmatched;
    copy->table->unread = from->unread;
    return copy;
}
