/* marks.c - a module for tests of markers. It has a marker with a name of its own, and
 * markers with names that the image uses, too. Its constructor connects a function to the
 * marker ktest_marked; the module never disconnects it.
 */
#include "kernel/base/compiler.h"
#include "kernel/debug/static_key.h"
#include "probes/marker/marker.h"

long marks_calls;
long marks_pass(long n);
void marks_pass_image(unsigned long n);
void marks_pass_odd(void);

/* The marker is the last thing in this function. */
NOINLINE void marks_pass_image(unsigned long n)
{
    MARK(ktest_marked, "twice %lu is %lu", n, 2 * n);
}

NOINLINE void marks_pass_odd(void)
{
    MARK(ktest_other, "this has %d", 1);
}

/* The compiler puts the last marker of the file in front of the others. */
NOINLINE long marks_pass(long n)
{
    for (long i = 0; i < n; i++)
        MARK(ktest_module, "i %ld", i);
    return n;
}

extern struct static_key ktest_key;
long marks_asks_key(void);

NOINLINE long marks_asks_key(void)
{
    return static_key_is_on(&ktest_key);
}

static void count(void *private, struct marker_call *call UNUSED)
{
    __atomic_fetch_add((long *)private, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void marks_init(void)
{
    marks_pass(3);
    marker_connect("ktest_marked", "twice %lu is %lu", count, &marks_calls);
}
