/* trace_graph.h - makes a tree of calls out of their returns, and prints it. */
#pragma once

#include "probes/trace/ring/print.h"

/* One call. @before, @child and @next are indexes plus one; trace_graph_print() sets them. */
struct graph_call {
    uint64_t func, ns;
    int32_t pid, depth;
    uint32_t cpu; /* where it returned */
    uint32_t before, child, next;
};

/* trace_graph_print - print the calls of each thread as a tree, the outermost first.
 * @calls: @count of them, in the order of their returns
 *
 * A call that returns has made all calls of its thread that are deeper, and have returned
 * since the last one that is not deeper. So no time is compared, and a tree may lack its
 * outermost call. Context: any.
 */
void trace_graph_print(struct graph_call *calls, size_t count, const struct print *p);
