/* poke_targets.h - changes instructions of five bytes, and runs threads that execute them
 * meanwhile. For kernel tests; only one test at a time.
 */
#pragma once

#include "kernel/memmap.h"
#include "probes/core/text_poke.h"
#include "probes/kprobe.h"

#include <stddef.h>
#include <stdint.h>

#define TARGETS 67

/* The functions of poke_targets.asm: at each offset in a cache line is one, and a
 * few lie across a page boundary. Each returns a word that shows any mixture of
 * old and new bytes.
 */
extern const uintptr_t poke_targets[];
extern const uint8_t old_code[], new_code[];

/* Text is changed only at addresses that have a site. So each target has a probe, which
 * targets_begin() registers as a disabled one.
 * targets_failed - how many steps have failed since targets_begin().
 */
extern struct kprobe target_probes[TARGETS];
extern unsigned targets_failed;

/* targets_begin - register the probes, disabled.
 * targets_end - unregister them, and report whether targets_failed is 0.
 * targets_in - register the probes with @flags. Nothing is reported.
 * targets_out - unregister them. Nothing is reported.
 */
void targets_begin(void);
void targets_end(void);
void targets_in(uint32_t flags);
void targets_out(void);

/* poke - call text_poke_batch() with its lock held.
 * targets_poke - write @code to all targets.
 * targets_poke_one - write @code to target @i.
 * targets_poke_rounds - do @rounds rounds of TARGETS_BATCHES batches each. At the end all
 * targets have their old code.
 */
#define TARGETS_BATCHES 4
void poke(struct text_poke *pokes, size_t count);
void targets_poke(const uint8_t *code);
void targets_poke_one(size_t i, const uint8_t *code);
void targets_poke_rounds(uint64_t rounds);

/* What one CPU has seen when it called the targets: in seen[] threads, in seen_in_nmi[]
 * NMIs. calls is counted last.
 */
struct seen {
    volatile uint64_t calls, old, new, torn;
};
extern struct seen seen[MAX_CPUS], seen_in_nmi[MAX_CPUS];

/* targets_run - call each target, and count in @s what it returns. Context: any. */
void targets_run(struct seen *s);
/* runners_start - set the counters to 0, and start a thread on each CPU that calls
 * targets_run() all the time. Returns when each thread has made a call.
 * runners_stop - stop the threads, and wait for their ends.
 * Context: thread.
 */
void runners_start(int tids[MAX_CPUS]);
void runners_stop(const int tids[MAX_CPUS]);

/* seen_sum - return the sum of @of over all CPUs; new stays 0.
 * seen_report - report that each call saw either the old or the new instruction.
 */
struct seen seen_sum(const struct seen *of);
void seen_report(const char *where, struct seen all);
