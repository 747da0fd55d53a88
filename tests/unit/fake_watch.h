/* fake_watch.h - debug registers in an array, for unit tests of watches. */
#pragma once

#include "tests/unit/port_fake.h"

#define FAKE_REGS 4

struct fake_watch {
    const char *owner[FAKE_REGS];
    uintptr_t addr[FAKE_REGS];
    unsigned kind[FAKE_REGS];
    size_t len[FAKE_REGS];
    uintptr_t own;      /* what may not be watched; 0: all may */
    uintptr_t program;  /* what plat_watch_ip() answers; 0: the image's ip */
    unsigned rests;     /* bits of plat_watch_rest() */
    uintptr_t executes; /* of plat_watch_execute() */
    uintptr_t inner;    /* a #DB there is inside the entry of another; 0: none is */
    bool stray;
};

extern struct fake_watch fake_watch;

/* fake_debug - #DB at @regs->ip with the bits @dr6, which CPU 0 takes. Called from a handler,
 * it does not return when the engine ends that handler.
 * Return: the engine took it.
 */
bool fake_debug(struct pt_regs *regs, unsigned long dr6);
