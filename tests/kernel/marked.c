/* marked.c - functions with markers, and a function that tests connect to these. */
#include "tests/kernel/marked.h"

#include "kernel/base/compiler.h"

#include <string.h>

struct looked looked;

NOINLINE uint64_t marked_twice(uint64_t n)
{
    __atomic_fetch_add(&looked.evaluated, 1, __ATOMIC_RELAXED);
    return 2 * n;
}

NOINLINE uint64_t marked(uint64_t n)
{
    n += 3;
    MARK(ktest_marked, MARKED_FORMAT, n, marked_twice(n));
    return n;
}

NOINLINE void marked_again(uint64_t n)
{
    MARK(ktest_marked, MARKED_FORMAT, n, marked_twice(n));
}

NOINLINE void marked_otherwise(void)
{
    MARK(ktest_other, "nothing");
}

void look_begin(void)
{
    looked = (struct looked){ 0 };
}

void look(void *private, struct marker_call *call)
{
    uint64_t n = va_arg(call->args, uint64_t), twice_n = va_arg(call->args, uint64_t);
    bool is_right = twice_n == 2 * n && strcmp(call->format, MARKED_FORMAT) == 0;

    __atomic_fetch_add((uint64_t *)private, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&looked.wrong, !is_right, __ATOMIC_RELAXED);
}

int look_connect(unsigned i)
{
    return marker_connect("ktest_marked", MARKED_FORMAT, look, &looked.calls[i]);
}

int look_disconnect(unsigned i)
{
    return marker_disconnect("ktest_marked", look, &looked.calls[i]);
}

const struct marker_insn *insn_of(uintptr_t fn)
{
    for (const struct marker_insn *i = marker_insns_start; i < marker_insns_end; i++)
        if (i->insn >= fn && i->insn < fn + 64)
            return i;
    return NULL;
}
