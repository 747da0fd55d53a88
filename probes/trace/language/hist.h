/* hist.h - histograms, which count hits and sum up values for each combination of keys.
 *
 *     keys=KEY[,KEY..][:vals=VAL[,VAL..]][:sort=FIELD[.descending][,FIELD..]][:size=N]
 *     [:name=NAME][:clock=CLOCK][:pause|:continue|:clear][:nohitcount]
 *     [:VARIABLE=EXPRESSION[,VARIABLE=EXPRESSION..]..][:HANDLER.ACTION..]
 *
 * Histograms with the same name share one table, which all their events fill.
 *
 *     KEY = stacktrace
 *         | FIELD[.hex|.sym|.sym-offset|.execname|.syscall|.usecs|.log2|.buckets=N]
 *     VAL = FIELD[.hex|.usecs|.percent|.graph|.min|.max] | $VARIABLE
 *         | hitcount[.percent|.graph]
 *                                                          .min and .max are not Linux's
 *     EXPRESSION = OPERAND [+|-|*|/ OPERAND]..             at most three operators
 *     OPERAND = FIELD[.usecs] | NUMBER | [GROUP.EVENT.]$VARIABLE
 *     HANDLER = onmatch(GROUP.EVENT) | onmax($VARIABLE) | onchange($VARIABLE)
 *     ACTION = SYNTHETIC(ARG,..) | trace(SYNTHETIC,ARG,..) | save(FIELD,..)
 *     ARG = FIELD | $VARIABLE                              save is not for onmatch
 *
 * FIELD may be common_timestamp: the time of the hit in CLOCK, which becomes the clock of
 * all records. If one FIELD has .usecs, all times of the histogram are in microseconds.
 * Each entry has variables of its own. $VARIABLE of another histogram is that of the entry
 * with the same key there. A hit for which it was not set does not count: it is unmatched.
 * An expression that reads it unsets it, so one start goes with one end.
 * For a key TEXT.log2 or TEXT.buckets=N the number of a text is the address at which the
 * hit has the text: Linux accepts such lines with that meaning.
 *
 * Why the table can be changed in any context without a lock: a hit that meets a new key
 * makes an entry, fills in the key while no other hit can see the entry, and then
 * publishes the entry by one exchange of a slot's word. So:
 *   1. A slot that holds an entry never changes again, and the key of a published entry
 *      is complete. A hit that interrupts the making of an entry still sees an empty
 *      slot, and makes an entry of its own.
 *   2. If two hits make entries for the same key, the second hit finds the slot taken,
 *      compares the keys, and uses the entry of the first hit. All hits look at the slots
 *      of a key in the same order, and no slot becomes empty. So no key has two entries.
 *   3. Sums are changed by atomic additions only.
 *   4. A hit never waits, and looks at each slot at most once. So its loop ends.
 * The unused entry of the second hit is kept for the next new key. There is room for one
 * such entry: if there are two, one is lost. So a table may hold a few keys less than its
 * size.
 */
#pragma once

#include "probes/trace/language/filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIST_KEYS_MAX 3
#define HIST_VALS_MAX 3  /* values besides the hitcount */
#define HIST_PLAIN_MAX 2 /* of them, values without .min or .max: Linux's limit */
#define HIST_SORTS_MAX 2
#define HIST_SIZE_DEFAULT 2048 /* entries */
#define HIST_SIZE_MIN 128
#define HIST_SIZE_MAX 131072
#define HIST_STRING_MAX 64 /* bytes of a string that is a key, NUL included */
#define HIST_STACK_MAX 16  /* addresses of a stack that is a key */
#define HIST_COMM_MAX 16   /* bytes of a thread's name, NUL included */
#define HIST_VARS_MAX 16
#define HIST_REFS_MAX 16 /* variables that are read */
#define HIST_ACTIONS_MAX 8
#define HIST_ARGS_MAX 16 /* arguments of an action */

#define HIST_ERRORS(X)                                                                   \
    X(NONE, "No error")                                                                  \
    X(TRIGGER_EEXIST, "Hist trigger already exists")                                     \
    X(TRIGGER_ENOENT_CLEAR, "Can't clear or continue a nonexistent hist trigger")        \
    X(BAD_FIELD_MODIFIER, "Invalid field modifier")                                      \
    X(DUPLICATE_VAR, "Variable already defined")                                         \
    X(TOO_MANY_VARS, "Too many variables defined")                                       \
    X(TOO_MANY_SUBEXPR, "Too many subexpressions (3 max)")                               \
    X(TIMESTAMP_MISMATCH, "Timestamp units in expression don't match")                   \
    X(HIST_NOT_FOUND, "Matching event histogram not found")                              \
    X(SYNTH_EVENT_NOT_FOUND, "Couldn't find synthetic event")                            \
    X(SYNTH_TYPE_MISMATCH, "Param type doesn't match synthetic event field type")        \
    X(SYNTH_COUNT_MISMATCH, "Param count doesn't match synthetic event field count")     \
    X(ONX_NOT_VAR, "For onmax(x) or onchange(x), x must be a variable")                  \
    X(ONX_VAR_NOT_FOUND, "Couldn't find onmax or onchange variable")                     \
    X(TOO_MANY_PARAMS, "Too many action params")                                         \
    X(PARAM_NOT_FOUND, "Couldn't find param")                                            \
    X(NO_SAVE_PARAMS, "No params found for save()")                                      \
    X(TOO_MANY_SAVE_ACTIONS, "Can't have more than one save() action per hist")          \
    X(ACTION_MISMATCH, "Handler doesn't support action")                                 \
    X(NO_CLOSING_PAREN, "No closing paren found")                                        \
    X(SUBSYS_NOT_FOUND, "Missing subsystem")                                             \
    X(INVALID_SUBSYS_EVENT, "Invalid subsystem or event name")                           \
    X(INVALID_REF_KEY, "Using variable references in keys not supported")                \
    X(INVALID_STR_OPERAND, "String type can not be an operand in expression")            \
    X(EXPECT_NUMBER, "Expecting numeric literal")                                        \
    X(UNARY_MINUS_SUBEXPR, "Unary minus not supported in sub-expressions")               \
    X(DIVISION_BY_ZERO, "Division by zero")                                              \
    X(ACTION_NOT_FOUND, "Action not found")                                              \
    X(FIELD_NOT_FOUND, "Couldn't find field")                                            \
    X(EMPTY_ASSIGNMENT, "Empty assignment")                                              \
    X(INVALID_SORT_MODIFIER, "Invalid sort modifier")                                    \
    X(EMPTY_SORT_FIELD, "Empty sort field")                                              \
    X(TOO_MANY_SORT_FIELDS, "Too many sort fields (Max = 2)")                            \
    X(INVALID_SORT_FIELD, "Sort field must be a key or a val")                           \
    X(SET_CLOCK_FAIL, "Couldn't set trace_clock")                                        \
    X(NEED_NOHC_VAL, "Non-hitcount value is required for 'nohitcount'")                  \
    X(NAMED_MISMATCH,                                                                    \
      "Named hist trigger doesn't match existing named trigger (includes variables)")

#define HIST_ERROR_ID(name, text) HIST_##name##_ERROR,
enum hist_error_id { HIST_ERRORS(HIST_ERROR_ID) HIST_ERROR_COUNT };

struct hist_error {
    int err;
    enum hist_error_id id; /* HIST_NONE_ERROR: the log gets no entry */
    unsigned column;       /* of the caret, in "hist:SPEC" */
};

/* hist_error_text - return the text of an error. Context: any. */
const char *hist_error_text(enum hist_error_id id);

struct hist;
struct hist_hit;

/* A synthetic event, as the actions of histograms know it. */
struct hist_synth {
    const char *name;
    unsigned field_count;
    uint32_t texts; /* bit i: field i is a text */
    unsigned users; /* actions that let it happen; changed in threads only */
};

/* What a line may name beside the fields of its event. */
struct hist_world {
    const char *group, *event; /* the event of the line */
    /* Call @fn for each histogram there is, until it returns false. */
    void (*each)(bool (*fn)(struct hist *hist, const char *group, const char *event,
                            void *arg),
                 void *arg);
    struct hist_synth *(*synth)(const char *name, size_t len); /* NULL: there is none */
};

/* The data of a hit, from which keys and values are taken. */
struct hist_hit {
    const void *record; /* @len bytes */
    size_t len;
    unsigned cpu;
    const char *comm;      /* the thread's name, with a NUL */
    const uint64_t *stack; /* @stack_len return addresses, the innermost first */
    size_t stack_len;
    /* Let a synthetic event happen. @values: one for each field; of a text, its address.
     * NULL: nothing happens.
     */
    void (*emit)(const struct hist_hit *hit, struct hist_synth *synth,
                 const uint64_t *values);
};

/* The time of a hit. */
struct hist_time {
    uint64_t value;
    bool is_ns; /* false: the clock does not count nanoseconds */
};

/* hist_parse - make an empty histogram.
 * @spec:   the text behind "hist:"
 * @fields: @count fields of the event
 * @world:  NULL: there are no other histograms, and no synthetic events
 * @out:    set to the histogram, the caller's until hist_free()
 *
 * Context: thread.
 * Return:  0; with @error filled: -EINVAL; -ENOMEM; -ENOENT no value would be shown.
 */
int hist_parse(const struct def_host *host, const char *spec,
               const struct filter_field *fields, size_t count,
               const struct hist_world *world, struct hist **out,
               struct hist_error *error);
void hist_free(const struct def_host *host, struct hist *hist);

/* The request of a line: make a histogram, or change the one that exists. */
enum hist_request { HIST_MAKE, HIST_PAUSE, HIST_CONTINUE, HIST_CLEAR };
/* hist_is_same - tell whether @a and @b have the same keys, values, order and name. */
bool hist_is_same(const struct hist *a, const struct hist *b);
/* hist_merge - add hits that were counted elsewhere to the entry of @key: @sums are their
 * number, and the sum, minimum or maximum of each value.
 * hist_merge_dropped - the same for hits for whose key there was no room.
 * hist_copy - copy a histogram with its entries as they are now. Return: NULL: no memory.
 */
void hist_merge(struct hist *hist, const uint8_t *key, const uint64_t *sums);
void hist_merge_dropped(struct hist *hist, uint64_t hits);
struct hist *hist_copy(const struct def_host *host, const struct hist *hist);
void hist_copy_free(const struct def_host *host, struct hist *copy);
/* hist_by_symbol - copy a histogram, so that the addresses of a symbol are one key.
 * @start: returns where the symbol of an address begins
 * Return: NULL: no key is a symbol without offset, or there is no memory.
 */
struct hist *hist_by_symbol(const struct def_host *host, const struct hist *hist,
                            uint64_t (*start)(uint64_t addr));
/* hist_clear - remove all entries. The caller makes sure that no hit counts meanwhile. */
void hist_clear(struct hist *hist);
/* hist_value_column - find the column, in "hist:@spec", of the text behind @word.
 * @word: "name=" or "clock="
 *
 * Context: any.
 * Return:  the column; 0: @word is not in @spec.
 */
unsigned hist_value_column(const char *spec, const char *word);
/* hist_share - let @hist, which no hit has seen yet, count in the table of @named.
 * Context: thread. No other thread may share or free @hist or @named meanwhile.
 * Return:  0; -EINVAL: the histograms differ in more than their events.
 */
int hist_share(const struct def_host *host, struct hist *hist, struct hist *named);
/* hist_unmatched - return how many hits did not count because another histogram had no
 * variable for them.
 * hist_unread - return how many values of variables other histograms have not read, though
 * they read such values. Context: any.
 */
uint64_t hist_unmatched(const struct hist *hist);
uint64_t hist_unread(const struct hist *hist);
/* hist_wants_stack - tell whether the stack is a key. Context: any. */
bool hist_wants_stack(const struct hist *hist);

/* hist_add - count a hit. Context: any.  Locks: none.
 * Cost:    the key is copied and hashed; then one slot is read for each colliding hash.
 */
void hist_add(struct hist *hist, const struct hist_hit *hit);
/* hist_add_at - do the same for a histogram that has a hist_clock(). */
void hist_add_at(struct hist *hist, const struct hist_hit *hit,
                 const struct hist_time *time);

/* hist_print_spec - print "hist:keys=...:size=2048 [active]", as the file `trigger` shows
 * it, without a newline.
 * @filter: the text of its filter, or NULL
 *
 * Return: the length of the whole text, without its NUL.
 */
size_t hist_print_spec(const struct hist *hist, const char *filter, char *buf,
                       size_t size);

/* hist_sorted - list the numbers of the entries that have hits now, in the order of printing.
 * Note how many there are, and what the values .percent and .graph of hist_print_entry() are
 * shares of.
 * @numbers: room for hist_size()
 * Context: thread.
 * Return:  how many.
 */
size_t hist_sorted(const struct hist *hist, uint32_t *numbers);

/* hist_print_entry - print one entry to @buf as the file `hist` shows it, newline
 * included.
 * @symbol: NULL: addresses are printed as numbers
 * Return:  the length of the whole text without its NUL, also when @size was too small
 *          for it.
 */
size_t hist_print_entry(const struct hist *hist, uint32_t number, symbol_text_t symbol,
                        char *buf, size_t size);
/* hist_print_totals - print the lines that follow the entries. */
size_t hist_print_totals(const struct hist *hist, char *buf, size_t size);
