/* each_cpu.h - the same function in a thread on every CPU at once, for kernel tests. */
#pragma once

#include <stdint.h>

/* each_cpu_run - run @fn(@arg) in one thread per online CPU, pinned to it, and wait.
 *
 * Context: thread.
 * Return:  how many answered something else than 0, or could not be started.
 */
unsigned each_cpu_run(int (*fn)(void *arg), void *arg);

/* each_cpu_syncs - how often changes of text have synchronised CPUs, all CPUs together.
 * Context: any.
 */
uint64_t each_cpu_syncs(void);
