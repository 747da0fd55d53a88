/* each_cpu.h - runs one function on all CPUs at the same time, for kernel tests. */
#pragma once

#include <stdint.h>

/* each_cpu_run - run @fn(@arg) in one thread per online CPU, pinned to this CPU, and wait
 * for the end of all threads.
 *
 * Context: thread.
 * Return:  how many threads returned something else than 0, or could not be started.
 */
unsigned each_cpu_run(int (*fn)(void *arg), void *arg);

/* each_cpu_syncs - return how often changes of text have synchronised a CPU, as the sum
 * over all CPUs. Context: any.
 */
uint64_t each_cpu_syncs(void);
