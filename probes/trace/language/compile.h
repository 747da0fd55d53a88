/* compile.h - makes programs of hits (probes/program) from what the tracer is asked for:
 * the arguments of an event, a filter, a histogram. What cannot be said as a program is
 * refused; then an interpreter does it at each hit, from the same definitions.
 *
 * Refused are: texts, stacks, times of records, names of threads; bit fields and arrays;
 * two keys that are no facts of the probe or its CPU; more than KPROBE_OPS_MAX operations;
 * and an argument from memory that is read twice, because memory that cannot be read is
 * counted once.
 */
#pragma once

#include "probes/program/program.h"
#include "probes/trace/language/def.h"
#include "probes/trace/language/filter.h"
#include "probes/trace/language/hist.h"

struct compile {
    const struct def *def;
    uint16_t type;         /* the number of the event */
    bool one_address;      /* all hits are at the address of the probe */
    struct kprobe_op *ops; /* KPROBE_OPS_MAX */
    unsigned count, words; /* operations; words of memory */
    /* Get memory for a table of @bits, see KPROBE_BY(). NULL: no event may have one. */
    uint64_t *(*new_keys)(unsigned bits);
    uint64_t read[FETCH_ARGS_MAX / 64]; /* bit i: argument i, from memory, is read */
    uint64_t ends; /* bit i: the skip of operation i leads to the end of the part */
    bool unable;
};

/* compile_begin_part, compile_end_part - what a filter does not keep goes on at the end
 * of the part.
 * compile_filter - the hits that @filter does not keep skip the rest of the part.
 * compile_own - a hit in the tracer's own work does nothing but count in the next word.
 * compile_unless_paused - while @hist is paused, the hits skip the rest of the part. Its
 * byte is within reach.
 * compile_hist - count in the words of @table.
 * compile_record - make a record of the arguments. @head: its bytes before the first
 * argument
 * @c->unable says at the end whether an operation was impossible.
 */
struct compile_table {
    uint16_t first; /* word: the hit counts of all rows, then each value's */
    uint16_t rows;
    uint8_t key_bits;     /* 0: a row's number is its key */
    const uint64_t *keys; /* else here is its key */
};
void compile_begin_part(struct compile *c);
void compile_end_part(struct compile *c);
void compile_own(struct compile *c);
void compile_unless_paused(struct compile *c, const struct hist *hist);
void compile_filter(struct compile *c, const struct filter *filter);
void compile_hist(struct compile *c, const struct hist *hist,
                  struct compile_table *table);
void compile_record(struct compile *c, size_t head, kprobe_reserve_t reserve,
                    void (*commit)(void *token));

/* compile_end - nothing else is asked for: a program has one operation at least.
 * compile_words - how many words a table of @hist has.
 */
void compile_end(struct compile *c);
size_t compile_words(const struct hist *hist, const struct compile_table *table);
/* compile_fold - add the words of @table of a CPU to the entries of @hist.
 * @of:    the histogram of the program, which may share the table of one of another event
 * @words: of the program, on CPU @cpu
 * @c:     the event and the probe, as the program was made for
 * @ip:    address of the probe
 * Context: thread.
 */
void compile_fold(struct hist *hist, const struct hist *of,
                  const struct compile_table *table, const struct compile *c,
                  uintptr_t ip, unsigned cpu,
                  uint64_t (*word)(const struct kprobe_program *program, unsigned cpu,
                                   size_t i),
                  const struct kprobe_program *program);
