/* machine.h - the CPUs of a scenario: their registers, and the functions of the kernel with
 * which one CPU asks another for something.
 */
#pragma once

#include "tests/explore/explore.h"

#define MACHINE_CPUS 3 /* at most */

struct machine_cpu {
    uint64_t dr[8];
    unsigned inside; /* in code that quiesce() waits for: preemption is off, or a hit */
    unsigned left;   /* how often it has left such code */
    bool irqs_off;   /* the actors of this CPU let no interrupt in */
};

extern struct machine_cpu machine[MACHINE_CPUS];
extern unsigned cpus_online; /* 3 */

static inline struct machine_cpu *machine_self(void)
{
    return &machine[explore_cpu()];
}

/* machine_irqs - let interrupts of this CPU in, or keep them out. */
void machine_irqs(bool on);

/* machine_takes_irqs - does @cpu, a struct machine_cpu, let interrupts in? For
 * explore_wait().
 */
bool machine_takes_irqs(const void *cpu);

/* machine_enter, machine_leave - this CPU is in code that quiesce() waits for, such as a
 * handler of a hit.
 */
void machine_enter(void);
void machine_leave(void);
