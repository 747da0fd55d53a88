/* jumps.c - the switch, and what it was. */
#include "tests/kernel/jumps.h"

static enum optimize_method before;
static bool is_changed;

void jumps_by(enum optimize_method method)
{
    if (!is_changed)
        before = optimize_get_method();
    is_changed = true;
    optimize_set_method(method);
}

void jumps_as_before(void)
{
    optimize_set_method(before);
    is_changed = false;
}
