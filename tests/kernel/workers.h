/* workers.h - threads that allocate, compute, and give their turns away, for tests of probes
 * on the functions that do so.
 */
#pragma once

#define WORKERS 8

/* Of one set of workers: how many rounds each takes, and the threads. */
struct workers {
    unsigned rounds;
    int tids[WORKERS];
};

/* workers_start - make the threads. @w lives until workers_end().
 * workers_end - wait for their ends.
 * workers_run - both.
 * Context: thread.
 */
void workers_start(struct workers *w, unsigned rounds);
void workers_end(struct workers *w);
void workers_run(unsigned rounds);
