/* hist_parts.h - a histogram, as its parser, its table and its printer see it. */
#pragma once

#include "probes/trace/hist.h"

enum hist_show {
    HIST_NUMBER,
    HIST_HEX,
    HIST_SYM,
    HIST_SYM_OFFSET,
    HIST_EXECNAME,
    HIST_LOG2,
    HIST_BUCKETS,
    HIST_STRING,
    HIST_STACK, /* the stack itself, no field */
    HIST_MIN,   /* of a value: the least, not the sum */
    HIST_MAX,
    HIST_SYSCALL,
    HIST_USECS, /* changes times only; all else is as without it, as on Linux */
    HIST_SHOWS,
};

/* hist_modifier - "hex", "sym", ...; NULL: none is written. */
const char *hist_modifier(enum hist_show show);

/* A key or a value. */
struct hist_part {
    const char *name; /* of its field; in the histogram's own memory */
    struct filter_field field;
    enum hist_show show;
    uint64_t bucket;   /* the width of HIST_BUCKETS */
    uint16_t at, size; /* of a key: its bytes in the key */
};

/* hist_key_is_number - else it is a text or a stack, and several words long. */
static inline bool hist_key_is_number(const struct hist_part *key)
{
    return key->size == sizeof(uint64_t);
}

/* hist_part_is_text - is its field one? */
static inline bool hist_part_is_text(const struct hist_part *part)
{
    return part->field.kind == FILTER_CHARS || part->field.kind == FILTER_STRING ||
           part->field.kind == FILTER_COMM;
}

struct hist_sort {
    bool by_key;    /* else by a value */
    unsigned index; /* of the key, or of the value; value 0 is the hitcount */
    bool descending;
};

/* What the hits make: of one histogram, or of all that have one name.
 * Locks:  I immutable   a any CPU, atomically   t threads that make and free histograms
 */
struct hist_table {
    unsigned users;    /* [t] */
    size_t size;       /* [I] entries; a power of two */
    size_t entry_size; /* [I] bytes */
    uint32_t *slot;    /* [a] twice as many; 0: empty, else an entry's number and 1 */
    uint8_t
        *entries;   /* [I]; an entry is made by one CPU, then [I] but for its sums [a] */
    bool held;      /* [a] */
    uint64_t next;  /* [a] entries that were taken */
    uint32_t spare; /* [a] an entry that was not needed, and 1 */
    uint64_t used;  /* [a] entries that are published */
    uint64_t hits, dropped; /* [a] */
};

/* Locks:  as above */
struct hist {
    struct hist_table *table; /* [I] once a hit may see it */
    struct hist_part key[HIST_KEYS_MAX], val[HIST_VALS_MAX]; /* [I] */
    struct hist_sort sort[HIST_SORTS_MAX];                   /* [I] */
    unsigned key_count, val_count, sort_count;               /* [I] */
    const char *name;          /* [I] of the histogram, or NULL */
    const char *clock;         /* [I] of its times; NULL: it has none */
    bool in_us;                /* [I] its times, if the clock counts nanoseconds */
    enum hist_request request; /* [I] */
    bool needs_another;        /* [I] what is asked is asked of one that is there */
    bool no_hitcount;          /* [I] it is not shown */
    bool has_comm;             /* [I] entries keep the thread's name */
    size_t key_size;           /* [I] bytes */
    bool paused;               /* [a] */
};

/* The front of an entry; the key is behind the last sum. */
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
