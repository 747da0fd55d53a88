/* jumps.c - the switch, and what it was. */
#include "tests/kernel/jumps.h"

static enum optimize_method before;

void jumps_by(enum optimize_method method)
{
    before = optimize_get_method();
    optimize_set_method(method);
}

void jumps_as_before(void)
{
    optimize_set_method(before);
}
