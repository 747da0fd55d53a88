/* hist_parts.h - the layout of a histogram, for its parser, its table and its printer. */
#pragma once

#include "probes/trace/language/hist.h"

enum hist_show {
    HIST_NUMBER,
    HIST_HEX,
    HIST_SYM,
    HIST_SYM_OFFSET,
    HIST_EXECNAME,
    HIST_LOG2,
    HIST_BUCKETS,
    HIST_STRING,
    HIST_STACK, /* the stack itself, which is not a field */
    HIST_MIN,   /* of a value: keep the minimum, not the sum */
    HIST_MAX,   /* of a value: keep the maximum */
    HIST_SYSCALL,
    HIST_USECS, /* affects only times, as on Linux */
    HIST_SHOWS,
};

/* hist_modifier - return the modifier of @show, "hex", "sym", ...; NULL: it has none. */
const char *hist_modifier(enum hist_show show);

/* A key or a value. */
struct hist_part {
    const char *name; /* of its field; in the histogram's own memory */
    struct filter_field field;
    enum hist_show show;
    uint64_t bucket;   /* the width of HIST_BUCKETS */
    uint16_t at, size; /* of a key: the place and length of this part, in bytes */
};

/* hist_key_is_number - tell whether the key is a number, which is one word long. A text
 * or a stack is longer.
 */
static inline bool hist_key_is_number(const struct hist_part *key)
{
    return key->size == sizeof(uint64_t);
}

/* hist_part_is_text - tell whether the field of @part is a text. */
static inline bool hist_part_is_text(const struct hist_part *part)
{
    return part->field.kind == FILTER_CHARS || part->field.kind == FILTER_STRING ||
           part->field.kind == FILTER_COMM;
}

struct hist_sort {
    bool by_key;    /* false: by a value */
    unsigned index; /* of the key, or of the value; value 0 is the hitcount */
    bool descending;
};

/* The entries that the hits make. Histograms with the same name share a table.
 * Locks:  I immutable   a any CPU, atomically   t threads that make and free histograms
 */
struct hist_table {
    unsigned users;    /* [t] histograms that share it */
    size_t size;       /* [I] entries; a power of two */
    size_t entry_size; /* [I] bytes */
    uint32_t *slot;    /* [a] 2 * size words; 0: empty, else the number of an entry + 1 */
    uint8_t *entries;  /* [I] one CPU makes an entry, which is [I] then; sums are [a] */
    bool held;         /* [a] */
    uint64_t next;     /* [a] entries that were taken; the number of the next one */
    uint32_t spare;    /* [a] the number of an unused entry + 1, or 0 */
    uint64_t used;     /* [a] entries that are published */
    uint64_t hits, dropped; /* [a] */
};

/* Locks:  as above */
struct hist {
    struct hist_table *table; /* [I] as soon as a hit may use the histogram */
    struct hist_part key[HIST_KEYS_MAX], val[HIST_VALS_MAX]; /* [I] */
    struct hist_sort sort[HIST_SORTS_MAX];                   /* [I] */
    unsigned key_count, val_count, sort_count;               /* [I] */
    const char *name;          /* [I] of the histogram, or NULL */
    const char *clock;         /* [I] of its times; NULL: it has no times */
    bool in_us;                /* [I] show nanoseconds as microseconds */
    enum hist_request request; /* [I] */
    bool needs_another;        /* [I] the request needs a histogram that exists */
    bool no_hitcount;          /* [I] the hitcount is not shown */
    bool has_comm;             /* [I] entries keep the thread's name */
    size_t key_size;           /* [I] bytes */
    bool begins_paused;        /* [I] */
    uint8_t *paused;           /* [a] 1: it does not count */
    uint8_t own_paused;        /* what it points to, unless hist_pause_at() was called */
};

/* The first part of an entry. The key follows the last sum. */
struct hist_entry {
    uint32_t hash;
    char comm[HIST_COMM_MAX]; /* of the first hit */
    uint64_t sum[];           /* [a] hitcount, then the values */
};

static inline struct hist_entry *hist_entry(const struct hist *hist, uint32_t number)
{
    const struct hist_table *table = hist->table;

    return (struct hist_entry *)(void *)(table->entries + number * table->entry_size);
}

static inline uint8_t *hist_entry_key(const struct hist *hist, struct hist_entry *entry)
{
    return (uint8_t *)&entry->sum[1 + hist->val_count];
}
