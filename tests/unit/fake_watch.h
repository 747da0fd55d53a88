/* fake_watch.h - debug registers in an array, for unit tests of watches. */
#pragma once

#include "tests/unit/port_fake.h"

#define FAKE_REGS 4

struct fake_watch {
    const char *owner[FAKE_REGS];
    uintptr_t addr[FAKE_REGS];
    unsigned kind[FAKE_REGS];
    size_t len[FAKE_REGS];
    uintptr_t own;      /* this address may not be watched; 0: all may */
    uintptr_t program;  /* what plat_watch_ip() returns; 0: the ip of the image */
    unsigned rests;     /* all bits that plat_watch_rest() has got */
    uintptr_t executes; /* the address of plat_watch_execute(); 0: none */
    uintptr_t inner;    /* a #DB there is inside the entry of another trap; 0: none */
    unsigned told;      /* all bits that plat_watch_tell() has got */
    unsigned missed;    /* all that it has got as misses */
    void (*on_tell)(struct pt_regs *regs); /* called by it, if they are not misses */
};

extern struct fake_watch fake_watch;

/* fake_debug - let the executing CPU take a #DB at @regs->ip, with @dr6 in DR6. If a
 * probe handler calls this function, and the engine ends that handler, it does not
 * return.
 * Return: whether the engine has dealt with the #DB.
 */
bool fake_debug(struct pt_regs *regs, unsigned long dr6);
