/* hist_parts.h - the layout of a histogram, and the functions that read one word of it. */
#pragma once

#include "kernel/base/compiler.h"
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
    HIST_USECS,   /* affects only times, as on Linux */
    HIST_PERCENT, /* of a value: its share in the sum of all entries */
    HIST_GRAPH,   /* of a value: a bar, beside the longest one of all entries */
    HIST_SHOWS,
};

/* The modifiers by enum hist_show: "hex", "sym", ...; NULL: it has none. */
extern const char *const hist_modifiers[];

/* A key or a value. */
struct hist_part {
    const char *name; /* of its field; in the histogram's own memory */
    struct filter_field field;
    enum hist_show show;
    uint64_t bucket;   /* the width of HIST_BUCKETS */
    uint16_t at, size; /* of a key: the place and length of this part, in bytes */
};

static inline bool hist_part_is_share(const struct hist_part *part)
{
    return part->show == HIST_PERCENT || part->show == HIST_GRAPH;
}

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

/* ---- variables and actions ---- */

#define HIST_OPS_MAX 7 /* of an expression: four operands, and three operators */

/* An operation of an expression, which stands behind its operands. */
struct hist_op {
    enum hist_op_kind {
        HIST_CONSTANT,
        HIST_FIELD,
        HIST_REF, /* a variable; value: its number in hist_more.ref */
        HIST_ADD,
        HIST_SUBTRACT,
        HIST_MULTIPLY,
        HIST_DIVIDE,
    } kind;
    uint64_t value;
    struct hist_part part;
};

struct hist_var {
    const char *name, *text; /* of its expression */
    bool is_time;            /* a time is in the expression, in hist.in_us units */
    unsigned op_count;
    struct hist_op op[HIST_OPS_MAX];
    unsigned readers; /* [t] expressions of other histograms that unset it */
};

/* A variable that is read. */
struct hist_ref {
    struct hist *of; /* the other histogram; NULL: the histogram itself */
    unsigned var;
    bool unsets;
};

/* An argument of an action. */
struct hist_arg {
    const char *name;
    struct hist_op op; /* a field, or a variable */
    bool is_text;
    uint16_t at; /* of save: the place of the value in the words of an entry, in bytes */
};

struct hist_action {
    enum { HIST_ONMATCH, HIST_ONMAX, HIST_ONCHANGE } handler;
    const char *text;         /* as it was written */
    uint64_t tracked;         /* of onmax and onchange: the variable, among those read */
    uint16_t at;              /* of these: the place of its last value, and of "is set" */
    struct hist_synth *synth; /* NULL: save */
    unsigned arg_count;
    struct hist_arg arg[HIST_ARGS_MAX];
};

/* Locks: as below */
struct hist_more {
    unsigned var_count, ref_count, action_count; /* [I] */
    size_t size;                                 /* [I] bytes of an entry */
    unsigned readers;                            /* [t] references of other histograms */
    struct hist_var var[HIST_VARS_MAX];          /* [I] */
    struct hist_ref ref[HIST_REFS_MAX];          /* [I] */
    struct hist_action action[HIST_ACTIONS_MAX]; /* [I] */
    char *room;                                  /* of texts, which is free */
    char text[];
};

/* A variable in an entry. */
struct hist_word_of_var {
    uint64_t value, is_set; /* [a] */
};

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
    uint64_t used; /* [a] entries that are published; behind hist_sorted(): have hits */
    uint64_t hits, dropped, unmatched, unread; /* [a] */
    uint64_t
        whole[HIST_VALS_MAX]; /* [t] what HIST_PERCENT and HIST_GRAPH are shares of */
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
    struct hist_more *more;    /* [I] NULL: neither variables nor actions */
    struct hist *keeps;        /* [I] of a view: has an entry for each key of the view */
    uint8_t *paused;           /* [a] 1: it does not count */
    uint8_t own_paused;        /* what it points to, unless hist_pause_at() was called */
};

/* The first part of an entry. The key follows the last sum; then come the variables, and
 * what actions keep.
 */
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

/* hist_entry_more - return the variables of an entry; the words of actions follow. */
static inline void *hist_entry_more(const struct hist *hist, struct hist_entry *entry)
{
    return hist_entry_key(hist, entry) + hist->key_size;
}

/* ---- single facts ---- */

static inline enum hist_request hist_request(const struct hist *hist)
{
    return hist->request;
}

/* hist_needs_another - tell whether the line continues or clears a histogram. Such a line
 * cannot make a histogram.
 */
static inline bool hist_needs_another(const struct hist *hist)
{
    return hist->needs_another;
}

/* hist_pause - stop counting, or count again. Context: any. */
static inline void hist_pause(struct hist *hist, bool pause)
{
    WRITE_ONCE(*hist->paused, pause);
}

/* hist_hold - stop counting in all histograms that share the table of @hist, or, with
 * @hold false, let hits count again. A hit that is running when the table is held may
 * still change the table. A paused histogram stays paused. Context: any.
 * hist_is_held - have they stopped?
 */
static inline void hist_hold(struct hist *hist, bool hold)
{
    WRITE_ONCE(hist->table->held, hold);
}

static inline bool hist_is_held(const struct hist *hist)
{
    return READ_ONCE(hist->table->held);
}

/* hist_is_paused - has it been told to pause? Context: any. */
static inline bool hist_is_paused(const struct hist *hist)
{
    return READ_ONCE(*hist->paused);
}

/* hist_begins_paused - was it defined with `pause`, to be switched later?
 * hist_pause_at - let the byte @at say whether it pauses, from now on.
 * hist_pause_byte - the byte that says so.
 */
static inline bool hist_begins_paused(const struct hist *hist)
{
    return hist->begins_paused;
}

static inline void hist_pause_at(struct hist *hist, uint8_t *at)
{
    *at = *hist->paused;
    hist->paused = at;
}

static inline uint8_t *hist_pause_byte(const struct hist *hist)
{
    return hist->paused;
}

/* hist_shares - do @a and @b count in one table? */
static inline bool hist_shares(const struct hist *a, const struct hist *b)
{
    return a->table == b->table;
}

/* hist_name - return the NAME of "name=NAME", or NULL. Context: any. */
static inline const char *hist_name(const struct hist *hist)
{
    return hist->name;
}

/* hist_clock - return the clock of the histogram; NULL: it has no times. Context: any. */
static inline const char *hist_clock(const struct hist *hist)
{
    return hist->clock;
}

/* hist_is_read - tell whether another histogram reads a variable of @hist, which then may
 * not be freed.
 * hist_is_plain - tell whether it has neither variables nor actions. Context: any.
 */
static inline bool hist_is_read(const struct hist *hist)
{
    return hist->more && hist->more->readers;
}

static inline bool hist_is_plain(const struct hist *hist)
{
    return !hist->more;
}

/* hist_dropped - return how many hits had no room in the table. Context: any. */
static inline uint64_t hist_dropped(const struct hist *hist)
{
    return READ_ONCE(hist->table->dropped);
}

/* hist_size - return how many entries there may be. */
static inline size_t hist_size(const struct hist *hist)
{
    return hist->table->size;
}

/* ---- the parser ---- */

#define HIST_WORDS_MAX 8 /* words of a line that define variables */

struct hist_word {
    const char *p;
    size_t len;
};

struct hist_parser {
    const struct def_host *host;
    const struct filter_field *fields;
    size_t field_count;
    const struct hist_world *world;
    const char *spec;
    struct hist *hist;
    struct hist_error *error;
    uint64_t size;
    struct hist_word keys, vals, sorts, name, clock;
    struct hist_word variable[HIST_WORDS_MAX], action[HIST_ACTIONS_MAX];
    unsigned variable_count, action_count;
};

/* hist_refuse - fill in the error. @word: the caret points to it. Return: -EINVAL. */
int hist_refuse(struct hist_parser *parse, enum hist_error_id id, struct hist_word word);
bool hist_word_is(struct hist_word word, const char *text);
bool hist_word_begins(struct hist_word word, const char *text);
/* hist_next_word - cut a word off @rest, up to @delim or the end. Return: the word; p is
 * NULL if there is none.
 */
struct hist_word hist_next_word(struct hist_word *rest, char delim);
static inline struct hist_word hist_word_behind(struct hist_word word, size_t skip)
{
    return (struct hist_word){ word.p + skip, word.len - skip };
}
/* hist_parse_part - read FIELD[.MODIFIER] of a key or a value. Return: 0; -EINVAL. */
int hist_parse_part(struct hist_parser *parse, struct hist_word word, bool is_key,
                    struct hist_part *part);

/* hist_parse_variables - read all NAME=EXPRESSION of the line. -EINVAL, -ENOMEM.
 * hist_parse_value - read $NAME as a value.
 * hist_plain_variable - replace $NAME, a key, by the field that it stands for. -EINVAL: it is
 * no variable of this line, or its expression is no field.
 * hist_parse_actions - read all actions. The keys have been read.
 */
int hist_parse_variables(struct hist_parser *parse);
int hist_parse_value(struct hist_parser *parse, struct hist_word word,
                     struct hist_part *part);
int hist_plain_variable(struct hist_parser *parse, struct hist_word *word);
int hist_parse_actions(struct hist_parser *parse);
/* hist_more_free - free @more, which may be NULL, and give up what it refers to. */
void hist_more_free(const struct def_host *host, struct hist_more *more);
/* hist_more_is_same - do the lines of @a and @b have the same variables and actions? */
bool hist_more_is_same(const struct hist_more *a, const struct hist_more *b);

/* ---- a hit ---- */

/* hist_more_read - read the variables of other histograms into @refs.
 * Return: false: one of them is not set; the hit is unmatched.
 * hist_more_set - set the variables of the hit's entry.
 * hist_more_act - carry out the actions.
 */
bool hist_more_read(struct hist *hist, const uint8_t *key, uint64_t *refs);
void hist_more_set(struct hist *hist, struct hist_entry *entry,
                   const struct hist_hit *hit, const struct hist_time *time,
                   uint64_t *refs);
void hist_more_act(struct hist *hist, struct hist_entry *entry,
                   const struct hist_hit *hit, const struct hist_time *time,
                   const uint64_t *refs);
/* hist_number - return the number that a hit has for @part.
 * hist_look - find the entry of a key. Return: NULL: there is none.
 */
uint64_t hist_number(const struct hist *hist, const struct hist_part *part,
                     const struct hist_hit *hit, const struct hist_time *time);
struct hist_entry *hist_look(const struct hist *hist, const uint8_t *key);
