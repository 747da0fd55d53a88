/* machine.h - the CPUs of a scenario: their registers, and the functions of the kernel with
 * which one CPU asks another for something.
 */
#pragma once

#include "tests/explore/explore.h"

#define MACHINE_CPUS 3

struct machine_cpu {
    uint64_t dr[8];
    bool irqs_off; /* the actors of this CPU let no interrupt in */
};

extern struct machine_cpu machine[MACHINE_CPUS];

static inline struct machine_cpu *machine_self(void)
{
    return &machine[explore_cpu()];
}

/* machine_irqs - let interrupts of this CPU in, or keep them out. */
void machine_irqs(bool on);
