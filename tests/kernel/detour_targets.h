/* detour_targets.h - the functions of detour_targets.asm, in which one instruction carries a
 * probe, and what loads and stores all registers around a call of one.
 */
#pragma once

#include <stdint.h>

struct detour_target {
    void (*fn)(void);
    uintptr_t addr; /* of the probed instruction */
    const char *name;
};

extern const struct detour_target detour_targets[], detour_targets_end[];
extern const char detour_callee[];

struct detour_run {
    uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    uint64_t flags;
    void (*fn)(void);
};

void detour_run(struct detour_run *run);
