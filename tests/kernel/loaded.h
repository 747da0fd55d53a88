/* loaded.h - modules for kernel tests: the objects of tests/kernel/modules/, as files inside
 * of the image, and what is in them when they are loaded.
 */
#pragma once

#include "kernel/module/module.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_OF(name)                                                                    \
    extern const uint8_t module_##name[];                                                \
    extern const uint8_t module_##name##_end[]
FILE_OF(acts);
FILE_OF(bad_range);
FILE_OF(guest);
FILE_OF(leaky_mark);
FILE_OF(marks);
FILE_OF(old);
FILE_OF(plain);
FILE_OF(refuses);
FILE_OF(user);
FILE_OF(watcher);

extern long guest_total; /* the sum of guest_calls, when it has gone */
extern bool guest_holds; /* guest_sleeper() stays, though its module is told to go */
extern char loaded_why[MODULE_WHY_MAX]; /* of the last call that has failed */

/* LOAD - as module_load(), by its name alone. */
#define LOAD(name)                                                                       \
    module_load(#name, module_##name, (size_t)(module_##name##_end - module_##name),     \
                loaded_why)

/* load_guest, unload - a failure is a line of the test's output. */
int load_guest(void);
int unload(const char *name);

/* of - the address of a symbol of a module, or 0. */
uintptr_t of(const char *name);
/* call - a function of a module. value - a variable of it. */
long call(const char *name, long a, long b);
long value(const char *name);
