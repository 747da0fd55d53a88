/* workers.h - threads that allocate memory, compute, and yield, for tests that have
 * probes on the functions which these threads call.
 */
#pragma once

#define WORKERS 8

/* A set of workers: how many rounds each of them does, and the threads. */
struct workers {
    unsigned rounds;
    int tids[WORKERS];
};

/* workers_start - make the threads. @w must stay valid until workers_end() has returned.
 * workers_end - wait for the ends of the threads.
 * workers_run - make the threads, and wait for their ends.
 * Context: thread.
 */
void workers_start(struct workers *w, unsigned rounds);
void workers_end(struct workers *w);
void workers_run(unsigned rounds);
