/* hist.h - histograms: hits counted, and values summed, for each combination of keys.
 *
 *     keys=KEY[,KEY..][:vals=VAL[,VAL..]][:sort=FIELD[.descending][,FIELD..]][:size=N]
 *     [:name=NAME][:clock=CLOCK][:pause|:continue|:clear][:nohitcount]
 *
 * Histograms of one name share one table, which all their events fill.
 *
 *     KEY = stacktrace
 *         | FIELD[.hex|.sym|.sym-offset|.execname|.syscall|.usecs|.log2|.buckets=N]
 *     VAL = FIELD[.hex|.usecs|.min|.max] | hitcount        .min and .max are not Linux's
 *
 * FIELD may be common_timestamp: the time of the hit in CLOCK, which is then the clock of all
 * records. With .usecs anywhere it is counted in microseconds. The number of a text is the
 * address at which the hit has the text: Linux takes such lines, and this is what they mean.
 *
 * How the table can be changed in any context without a lock. An entry is first filled with
 * its key, where only its maker can see it, and then published by one exchange of the word of
 * its slot. So:
 *   1. What a slot shows never changes again, and a key that is seen is complete. A hit that
 *      interrupts a half made entry sees an empty slot, and makes an entry of its own.
 *   2. Of two hits that make the same key, the second finds its slot taken, compares, and
 *      uses the entry of the first. Each hit looks at the slots of a key in the same order,
 *      and no slot becomes empty; so no key is there twice.
 *   3. Sums are changed by atomic additions only.
 *   4. Each step ends by itself: a hit looks at each slot at most once, and waits for
 *      nothing.
 * The entry of the second hit is kept for the next key. Only if two of them lie there at a
 * time one is lost, so a table may hold a few keys less than its size.
 */
#pragma once

#include "probes/trace/filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIST_KEYS_MAX 3
#define HIST_VALS_MAX 3  /* beside the hitcount */
#define HIST_PLAIN_MAX 2 /* of these, all but .min and .max: Linux takes no more */
#define HIST_SORTS_MAX 2
#define HIST_SIZE_DEFAULT 2048 /* entries */
#define HIST_SIZE_MIN 128
#define HIST_SIZE_MAX 131072
#define HIST_STRING_MAX 64 /* bytes of a string that is a key, NUL included */
#define HIST_STACK_MAX 16  /* places of a stack that is a key */
#define HIST_COMM_MAX 16   /* bytes of a thread's name, NUL included */

#define HIST_ERRORS(X)                                                                   \
    X(NONE, "No error")                                                                  \
    X(TRIGGER_EEXIST, "Hist trigger already exists")                                     \
    X(TRIGGER_ENOENT_CLEAR, "Can't clear or continue a nonexistent hist trigger")        \
    X(BAD_FIELD_MODIFIER, "Invalid field modifier")                                      \
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
    enum hist_error_id id; /* HIST_NONE_ERROR: no entry in the log */
    unsigned column;       /* in "hist:SPEC" */
};

/* hist_error_text - the sentence. Context: any. */
const char *hist_error_text(enum hist_error_id id);

struct hist;

/* What a hit gives. */
struct hist_hit {
    const void *record; /* @len bytes */
    size_t len;
    unsigned cpu;
    const char *comm;      /* the thread's name, with a NUL */
    const uint64_t *stack; /* @stack_len return addresses, the innermost first */
    size_t stack_len;
};

/* When it is. */
struct hist_time {
    uint64_t value;
    bool is_ns; /* else it counts something else */
};

/* hist_parse - make an empty histogram.
 * @spec: what is behind "hist:"
 * @out:  the caller's until hist_free()
 *
 * Context: thread.
 * Return:  0; -EINVAL, -ENOMEM; -ENOENT nothing would be shown. With @error filled.
 */
int hist_parse(const struct def_host *host, const char *spec,
               const struct filter_field *fields, size_t count, struct hist **out,
               struct hist_error *error);
void hist_free(const struct def_host *host, struct hist *hist);

/* What a line asks of a histogram that is there already. */
enum hist_request { HIST_MAKE, HIST_PAUSE, HIST_CONTINUE, HIST_CLEAR };
enum hist_request hist_request(const struct hist *hist);
/* hist_needs_another - the line continues or clears, so it cannot make a histogram. */
bool hist_needs_another(const struct hist *hist);
/* hist_is_same - has it the same keys, values, order and name? */
bool hist_is_same(const struct hist *a, const struct hist *b);
/* hist_pause - stop or go on counting. Context: any. */
void hist_pause(struct hist *hist, bool pause);
/* hist_hold - true: hits leave the table alone from now on, in all histograms that share
 * it. Hits that are running may still change it. False: hits count again. A histogram
 * that is paused stays paused. Context: any.
 */
void hist_hold(struct hist *hist, bool hold);
/* hist_clear - remove all entries. The caller makes sure that no hit counts meanwhile. */
void hist_clear(struct hist *hist);
/* hist_name - what "name=" says, or NULL. Context: any. */
const char *hist_name(const struct hist *hist);
/* hist_clock - the clock that its times are of; NULL: it has no times. Context: any. */
const char *hist_clock(const struct hist *hist);
/* hist_value_column - where what is behind @word, "name=", stands in "hist:@spec"; 0: it does
 * not. Context: any.
 */
unsigned hist_value_column(const char *spec, const char *word);
/* hist_share - @hist, which no hit has seen yet, counts in the table of @named.
 *
 * Context: thread. The caller lets no other thread share or free either of them meanwhile.
 * Return:  0; -EINVAL: they differ in more than their events.
 */
int hist_share(const struct def_host *host, struct hist *hist, struct hist *named);
/* hist_wants_stack - is the stack a key? Context: any. */
bool hist_wants_stack(const struct hist *hist);

/* hist_add - count a hit.
 *
 * Context: any.  Locks: none, see above.
 * Cost:    the key is copied and hashed; then as many slots as hashes collide.
 */
void hist_add(struct hist *hist, const struct hist_hit *hit);
/* hist_add_at - the same, for a histogram that has a hist_clock(). */
void hist_add_at(struct hist *hist, const struct hist_hit *hit,
                 const struct hist_time *time);

/* hist_print_spec - "hist:keys=...:size=2048 [active]", as the file `trigger` has it, without
 * a newline. @filter: or NULL.
 * Return: the length of the whole text, without its NUL.
 */
size_t hist_print_spec(const struct hist *hist, const char *filter, char *buf,
                       size_t size);

/* hist_sorted - the numbers of the entries as they are now, in the order they are shown in.
 * @numbers: room for hist_size()
 * Context: thread.
 * Return:  how many.
 */
size_t hist_sorted(const struct hist *hist, uint32_t *numbers);
/* hist_size - how many entries there may be. */
size_t hist_size(const struct hist *hist);

/* hist_print_entry - print one entry to @buf as the file `hist` shows it, newline
 * included.
 * @symbol: writes an address as text, as in struct fetch_from; NULL: print the number
 * Return:  the length of the whole text without its NUL, also when @size was too small
 *          for it.
 */
size_t hist_print_entry(const struct hist *hist, uint32_t number,
                        size_t (*symbol)(char *buf, size_t size, uintptr_t addr),
                        char *buf, size_t size);
/* hist_print_totals - the lines behind the entries. */
size_t hist_print_totals(const struct hist *hist, char *buf, size_t size);
