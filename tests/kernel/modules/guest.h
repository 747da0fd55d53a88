/* guest.h - the functions and variables of guest.c that other modules use. */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>

extern long guest_calls, guest_stop;
/* These are defined in the image, by tests/kernel/loaded.c. */
extern long guest_total;
extern bool guest_holds;

NOINLINE long guest_twice(long a);
NOINLINE long guest_mix(long a, long b);
NOINLINE long guest_old_mark(long a);
NOINLINE int guest_sleeper(void *unused);
