/* acts.h - what the constructor and the destructor of acts.c do. The variables are the
 * image's, tests/kernel/test_module_init.c.
 */
#pragma once

#include <stdbool.h>

enum acts {
    ACTS_NOT,
    ACTS_FAULT,         /* writes where nothing is */
    ACTS_SLEEP,         /* until acts_go_on */
    ACTS_LOAD,          /* another module, plain */
    ACTS_LOAD_ITSELF,   /* once more */
    ACTS_UNLOAD,        /* plain */
    ACTS_UNLOAD_ITSELF, /* while it is loaded or unloaded */
    ACTS_PROBE,         /* registers a probe, and refuses */
    ACTS_THREAD,        /* starts a thread that runs acts_sleeper(), and refuses */
};

extern enum acts acts_at_load, acts_at_unload;
extern bool acts_sleeps, acts_go_on;
extern int acts_result;
