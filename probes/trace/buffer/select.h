/* select.h - decides which hits are recorded: those of selected threads on selected CPUs.
 *
 * A hit reads the lists without a lock. A list never changes: a new list replaces it, and
 * the old list is freed after quiescence.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/trace/buffer/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Locks:  I immutable once a hit may see it */
struct pids {
    size_t count; /* [I] */
    int pid[];    /* [I] sorted, without duplicates */
};

enum select_list {
    SELECT_WANTED,   /* no list: all threads are wanted */
    SELECT_UNWANTED, /* no list: no thread is unwanted */
    SELECT_LISTS,
};

/* For trace_takes_hit() only. While the first is false, hits check nothing else. */
extern bool select_is_needed; /* there is a list, or an unwanted CPU */
bool select_takes_hit(void);

/* trace_stops_hit - 0: trace_takes_hit(). Context, Cost: the same. */
static ALWAYS_INLINE uint8_t trace_stops_hit(void)
{
    return likely(!READ_ONCE(select_is_needed)) ? READ_ONCE(buffer_stops)
                                                : !select_takes_hit();
}

/* trace_takes_hit - tell whether hits of this thread on this CPU are recorded now. They
 * are not if tracing is off, or if the CPU or the thread is not wanted.
 * Context: any, preemption off.
 * Cost:    two loads; if CPUs or threads are selected, also a search in each list.
 */
static ALWAYS_INLINE bool trace_takes_hit(void)
{
    return !trace_stops_hit();
}

/* Context of all: thread.  Locks of all: the trace lock held. */

/* select_pids - return a list, or NULL: there is none. */
const struct pids *select_pids(enum select_list which);
/* select_add_pids - add the numbers of @text to a list. If a word of it is not a number,
 * nothing changes.
 * @text: @len bytes; blanks between the numbers
 *
 * Return: 0; -ENOMEM; as on Linux -EINVAL no number, -EPERM a number from 2^30 on, of
 *         which the lowest 32 bits count.
 */
int select_add_pids(enum select_list which, const char *text, size_t len);
void select_drop_pids(enum select_list which);

/* select_hide_thread - record no events of the calling thread from now on. For histograms
 * that come later, all that it does is the tracer's own work.
 * select_hides_thread - was that asked for?
 */
void select_hide_thread(void);
bool select_hides_thread(void);

/* select_cpus - set for each CPU whether its hits are recorded.
 * @mask: bit i: CPU i
 */
void select_cpus(uint64_t mask);
