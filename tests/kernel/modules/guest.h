/* guest.h - what the test modules share. */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>

extern long guest_calls, guest_stop;
/* Of the image. */
extern long guest_total;
extern bool guest_holds;

NOINLINE long guest_twice(long a);
NOINLINE long guest_mix(long a, long b);
NOINLINE long guest_old_mark(long a);
NOINLINE int guest_sleeper(void *unused);
