/* tests.c - your tests of the tracer. */
#include "rig.h"
#include "tracer.h"

void run_tests(void)
{
}
