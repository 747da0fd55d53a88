/* jumps.c - sets the method of the optimizer, and remembers the one before. */
#include "tests/kernel/jumps.h"

#include "tests/kernel/ktest.h"

static enum optimize_method before;
static bool is_changed;

void jumps_by(enum optimize_method method)
{
    if (!is_changed)
        before = optimize_get_method();
    is_changed = true;
    ktest_at_end(jumps_as_before);
    optimize_set_method(method);
}

void jumps_as_before(void)
{
    if (is_changed)
        optimize_set_method(before);
    is_changed = false;
}
