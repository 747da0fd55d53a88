/* poke_targets.h - instructions of five bytes to be changed, and threads that execute them.
 * For kernel tests, one at a time.
 */
#pragma once

#include "kernel/memmap.h"
#include "probes/core/text_poke.h"
#include "probes/kprobe.h"

#include <stddef.h>
#include <stdint.h>

#define TARGETS 67

/* poke_targets.asm: where they are, one at each offset of a cache line, and some across
 * pages. Each returns a word of which any mixture of old and new shows itself.
 */
extern const uintptr_t poke_targets[];
extern const uint8_t old_code[], new_code[];

/* Every address that is patched needs a site: one probe on each target, disabled by
 * targets_begin(). targets_failed - what went wrong since then.
 */
extern struct kprobe target_probes[TARGETS];
extern unsigned targets_failed;

/* targets_begin, targets_end - the probes, disabled; the second reports.
 * targets_in, targets_out - register them with @flags, take them out. Nothing is reported.
 */
void targets_begin(void);
void targets_end(void);
void targets_in(uint32_t flags);
void targets_out(void);

/* poke - text_poke_batch() with its lock.
 * targets_poke - @code into all targets; targets_poke_one - into the @i-th.
 * targets_poke_rounds - @rounds times all, one and one back, all back: four batches each.
 */
void poke(struct text_poke *pokes, size_t count);
void targets_poke(const uint8_t *code);
void targets_poke_one(size_t i, const uint8_t *code);
void targets_poke_rounds(uint64_t rounds);

/* What a CPU has seen of the targets, in threads and in NMIs. @calls is counted last. */
struct seen {
    volatile uint64_t calls, old, new, torn;
};
extern struct seen seen[MAX_CPUS], seen_in_nmi[MAX_CPUS];

/* targets_run - call each target, and count. Context: any. */
void targets_run(struct seen *s);
/* runners_start - threads on all CPUs that do nothing else, from zeroes on. */
void runners_start(int tids[MAX_CPUS]);
void runners_stop(const int tids[MAX_CPUS]);

/* seen_sum - of all CPUs. seen_report - every CPU saw the old or the new. */
struct seen seen_sum(const struct seen *of);
void seen_report(const char *where, struct seen all);
