/* truth_nmi.h - sends NMIs from one CPU to another, one after the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A storm of NMIs. The caller of truth_storm_start() owns it. */
struct truth_storm {
    uint64_t count; /* NMIs to send */
    uint64_t sent;  /* NMIs that were sent and taken */
    bool is_enough; /* send no more */
    int tid;
};

/* truth_storm_init - set the handler of NMIs. Context: boot. */
void truth_storm_init(void);

/* truth_storm_start - send @s->count NMIs from CPU 0 to the last CPU, in a thread.
 * truth_storm_running - are there NMIs that were not yet taken?
 * truth_storm_end - send no more NMIs, and wait until those that were sent are taken.
 *
 * Context: thread; one storm at a time, with two CPUs at least.
 * Return:  0; -ENOMEM; -EINVAL there is only one CPU.
 */
int truth_storm_start(struct truth_storm *s);
bool truth_storm_running(const struct truth_storm *s);
void truth_storm_end(struct truth_storm *s);
