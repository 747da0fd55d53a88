/* acts.h - tells the constructor and the destructor of acts.c what to do. The variables
 * are defined in the image, by tests/kernel/test_module_init.c.
 */
#pragma once

#include <stdbool.h>

enum acts {
    ACTS_NOT,
    ACTS_FAULT,         /* write to an address where no memory is */
    ACTS_SLEEP,         /* sleep until acts_go_on is true */
    ACTS_LOAD,          /* load another module: plain.c */
    ACTS_LOAD_ITSELF,   /* load acts.c once more */
    ACTS_LOAD_REFUSED,  /* load another module, which refuses: refuses.c */
    ACTS_UNLOAD,        /* unload plain.c */
    ACTS_UNLOAD_ITSELF, /* unload acts.c, which is just being loaded or unloaded */
    ACTS_PROBE,         /* register a probe, then refuse to be loaded */
    ACTS_THREAD,        /* start a thread that runs acts_sleeper(), then refuse */
};

extern enum acts acts_at_load, acts_at_unload;
extern bool acts_sleeps, acts_go_on;
extern int acts_result;
