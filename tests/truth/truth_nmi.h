/* truth_nmi.h - NMIs at one CPU, from another, one after the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Belongs to the function that starts it. */
struct truth_storm {
    uint64_t count; /* NMIs to send */
    uint64_t sent;  /* that have been taken, too */
    bool is_enough; /* send no more */
    int tid;
};

/* truth_storm_init - take NMIs. Context: boot. */
void truth_storm_init(void);

/* truth_storm_start - send @s->count NMIs from CPU 0 to the last one, in a thread.
 * truth_storm_running - have not all of them been taken yet?
 * truth_storm_end - send no more of them, and wait until those that were sent are taken.
 *
 * Context: thread; one storm at a time, with two CPUs at least.
 * Return:  0; -ENOMEM; -EINVAL there is only one CPU.
 */
int truth_storm_start(struct truth_storm *s);
bool truth_storm_running(const struct truth_storm *s);
void truth_storm_end(struct truth_storm *s);
