/* marked.h - functions with markers, and a function to connect to these, for kernel tests. */
#pragma once

#include "probes/marker/marker.h"

#include <stdint.h>

#define MARKED_FORMAT "twice %lu is %lu" /* of ktest_marked, below */

/* marked - pass ktest_marked with @n + 3. Return: @n + 3.
 * marked_again - pass it with @n, at another place.
 * marked_otherwise - pass ktest_other, whose format is "nothing".
 * marked_twice - an argument of ktest_marked; counts in looked.evaluated. Return: 2 * @n.
 * Context: any.
 */
uint64_t marked(uint64_t n);
void marked_again(uint64_t n);
void marked_otherwise(void);
uint64_t marked_twice(uint64_t n);

/* What look() and marked_twice() have seen, on any CPU; look_begin() makes it nothing. */
struct looked {
    uint64_t evaluated; /* arguments */
    uint64_t calls[2];  /* by number of look_connect() */
    uint64_t wrong;     /* calls with another format, or with arguments that do not fit */
};
extern struct looked looked;

/* look_begin - nothing was seen yet. No CPU is in look() or marked_twice().
 * look - a function for ktest_marked. @private: a counter, to which it adds 1
 * Context: that of the marker.
 */
void look_begin(void);
void look(void *private, struct marker_call *call);

/* look_connect - connect look(), with looked.calls[@i]. look_disconnect - undo it.
 * Context: thread.  Return: as marker_connect(), marker_disconnect().
 */
int look_connect(unsigned i);
int look_disconnect(unsigned i);

extern const struct marker_insn marker_insns_start[],
    marker_insns_end[]; /* the image's */

/* insn_of - Return: the first marker in the 64 bytes from @fn on; NULL: there is none. */
const struct marker_insn *insn_of(uintptr_t fn);
