/* trace_graph.c - makes a tree of calls out of their returns, and prints it. */
#include "probes/console/trace_graph.h"

#include <string.h>

/* claim - take from the calls at *@last and before it those deeper than @depth. Return: the
 * first of them; the others are linked behind it.
 */
static uint32_t claim(struct graph_call *calls, uint32_t *last, int32_t depth)
{
    uint32_t first = 0;

    while (*last && calls[*last - 1].depth > depth) {
        struct graph_call *call = &calls[*last - 1];

        call->next = first;
        first = *last;
        *last = call->before;
    }
    return first;
}

/* link_thread - make the trees of the thread of call @i, whose other calls are behind it.
 * Return: the first of its outermost calls.
 */
static uint32_t link_thread(struct graph_call *calls, size_t i, size_t count)
{
    int32_t pid = calls[i].pid;
    uint32_t last = 0;

    for (; i < count; i++) {
        struct graph_call *call = &calls[i];

        if (call->pid != pid)
            continue;
        call->child = claim(calls, &last, call->depth);
        call->before = last;
        last = (uint32_t)i + 1;
    }
    return claim(calls, &last, -1);
}

static void print_call(const struct graph_call *call, const struct print *p)
{
    char name[128];

    if (!p->symbol(name, sizeof(name), call->func))
        strcpy(name, "?");
    name[strcspn(name, "+")] = '\0';
    print_text(p, "%12lu  %3u  %*s%s\n", call->ns, call->cpu, 2 * call->depth, "", name);
}

/* print_trees - print a call, then the calls that it has made, then the next one; @before
 * becomes the way back. A call that is printed belongs to thread -1.
 */
static void print_trees(struct graph_call *calls, uint32_t at, const struct print *p)
{
    uint32_t up = 0;

    while (at) {
        struct graph_call *call = &calls[at - 1];

        print_call(call, p);
        call->pid = -1;
        call->before = up;
        if (call->child) {
            up = at;
            at = call->child;
            continue;
        }
        for (at = call->next; !at && up; up = calls[up - 1].before)
            at = calls[up - 1].next;
    }
}

void trace_graph_print(struct graph_call *calls, size_t count, const struct print *p)
{
    print_text(p, "%12s  CPU  CALL\n", "NS");
    for (size_t i = 0; i < count; i++) {
        char comm[16] = "<...>";
        int32_t pid = calls[i].pid;

        if (pid < 0)
            continue;
        if (p->comm)
            p->comm(pid, comm);
        print_text(p, "%s-%d\n", comm, pid);
        print_trees(calls, link_thread(calls, i, count), p);
    }
}
