/* marked.h - functions with markers, and a function that kernel tests connect to these.
 */
#pragma once

#include "probes/marker/marker.h"

#include <stdint.h>

#define MARKED_FORMAT "twice %lu is %lu" /* of ktest_marked, below */

/* marked - pass the marker ktest_marked with @n + 3. Return: @n + 3.
 * marked_again - pass another marker of the same name with @n.
 * marked_otherwise - pass the marker ktest_other, whose format is "nothing".
 * marked_twice - compute an argument of ktest_marked, and count in looked.evaluated.
 * Return: 2 * @n.
 * Context: any.
 */
uint64_t marked(uint64_t n);
void marked_again(uint64_t n);
void marked_otherwise(void);
uint64_t marked_twice(uint64_t n);

/* What look() and marked_twice() have counted, on all CPUs; look_begin() sets it to 0. */
struct looked {
    uint64_t evaluated; /* calls of marked_twice() */
    uint64_t calls[2];  /* calls of look(), by the number that look_connect() got */
    uint64_t wrong;     /* calls with another format, or with arguments that do not fit */
};
extern struct looked looked;

/* look_begin - set the counters of looked to 0. No CPU may be in look() or
 * marked_twice().
 * look - the function that tests connect to ktest_marked: check the
 * arguments of the marker.
 * @private: a counter, to which look() adds 1
 * Context: that of the marker.
 */
void look_begin(void);
void look(void *private, struct marker_call *call);

/* look_connect - connect look() to ktest_marked, with looked.calls[@i] as its counter.
 * look_disconnect - disconnect it.
 * Context: thread.  Return: as marker_connect(), marker_disconnect().
 */
int look_connect(unsigned i);
int look_disconnect(unsigned i);

extern const struct marker_insn marker_insns_start[],
    marker_insns_end[]; /* the markers of the image */

/* insn_of - return the first marker in the 64 bytes from @fn on; NULL: there is none. */
const struct marker_insn *insn_of(uintptr_t fn);
