/* loaded.h - modules for kernel tests: the image contains the objects of
 * tests/kernel/modules/ as files, and these functions load them, call their functions and
 * read their variables.
 */
#pragma once

#include "kernel/module/module.h"
#include "probes/watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILE_OF(name)                                                                    \
    extern const uint8_t module_##name[];                                                \
    extern const uint8_t module_##name##_end[]
FILE_OF(acts);
FILE_OF(bad_key);
FILE_OF(bad_range);
FILE_OF(guest);
FILE_OF(leaky_mark);
FILE_OF(leaky_pointer);
FILE_OF(leaps);
FILE_OF(marks);
FILE_OF(old);
FILE_OF(plain);
FILE_OF(refuses);
FILE_OF(user);
FILE_OF(watcher);

extern long guest_total;         /* the destructor of guest.c adds guest_calls to it */
extern struct kprobe lent_probe; /* watcher.c registers these two, and they call it */
extern struct watch lent_watch;
extern bool guest_holds;                /* guest_sleeper() does not return at an unload */
extern char loaded_why[MODULE_WHY_MAX]; /* why the last call has failed */

/* LOAD - load the module @name by module_load(), whose result it returns. */
#define LOAD(name)                                                                       \
    module_load(#name, module_##name, (size_t)(module_##name##_end - module_##name),     \
                loaded_why)

/* load_guest - load guest.c. Return: as module_load().
 * unload - unload the module @name. Return: as module_unload().
 * Both print a failure as a line of the test's output.
 */
int load_guest(void);
int unload(const char *name);

/* of - return the address of a symbol of a module; 0: there is no such symbol. */
uintptr_t of(const char *name);
/* call - call the function @name of a module. value - return the value of its variable.
 */
long call(const char *name, long a, long b);
long value(const char *name);
