/* kprobe.h - the public interface: probes on instructions of the running kernel.
 *
 * A kprobe is armed at one instruction. Each time a CPU is about to execute it, the
 * pre-handlers of all probes there run, then the instruction, then the post-handlers.
 * Nothing else of the probed code changes.
 *
 * Rules for handlers. They run in the context of the probed code, with preemption off:
 * they may be interrupted by an NMI, and may not sleep or wait for locks that the probed
 * code could hold. They see and may change the registers of the probed code; ip is the
 * probed address + 1, as on a trap. A handler may itself run into probes.
 *
 * Names, and what they mean, are those of Linux.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kprobe;
struct site;

/* Before the instruction. Returning non-zero means: I have set regs->ip (and all else) to
 * where to go on; do not run the instruction, nor the handlers behind me.
 */
typedef int (*kprobe_pre_handler_t)(struct kprobe *p, struct pt_regs *regs);
/* After the instruction; regs->ip is where the program goes on. @flags: always 0. */
typedef void (*kprobe_post_handler_t)(struct kprobe *p, struct pt_regs *regs,
                                      unsigned long flags);
/* When the instruction, or a handler of this probe, faults with @trapnr. Returning
 * non-zero means: I have dealt with it, resume at regs->ip.
 */
typedef int (*kprobe_fault_handler_t)(struct kprobe *p, struct pt_regs *regs, int trapnr);

/* Why a hit ran without handlers. Every such hit is counted under one of these. */
enum probe_miss {
    MISS_RECURSION, /* this address, or in engine code any, is active on this CPU */
    MISS_NESTED,    /* PROBE_NEST_MAX hits are already active on this CPU */
    MISS_STACK,     /* less than PROBE_STACK_MIN bytes of the stack are left */
    MISS_EARLY,     /* the CPU was not ready for probes yet */
    MISS_CAUSES,
};

/* probe_miss_name - "recursion", "nested", ... Context: any. */
const char *probe_miss_name(enum probe_miss cause);

#define PROBE_NEST_MAX 4
#define PROBE_STACK_MIN 4096 /* bytes */

/* Flags; only DISABLED may be given to register_kprobe(). */
#define KPROBE_FLAG_GONE 1u      /* the code it was on no longer exists */
#define KPROBE_FLAG_DISABLED 2u  /* registered, handlers not called */
#define KPROBE_FLAG_OPTIMIZED 4u /* reached by a jump, not by a trap */
#define KPROBE_FLAG_TRIPPED 32u  /* disabled by the engine, because a handler faulted */

struct kprobe {
    /* Set by the caller, then left alone while registered. Either symbol_name (with
     * offset) or addr says where; register_kprobe() fills in addr.
     */
    const char *symbol_name;
    uintptr_t addr;
    unsigned offset; /* bytes from the symbol */
    kprobe_pre_handler_t pre_handler;
    kprobe_post_handler_t post_handler;
    kprobe_fault_handler_t fault_handler;
    uint32_t flags;

    /* Counted by the engine. */
    uint64_t hits;                /* pre-handlers were run */
    uint64_t nmissed;             /* they were not: the sum of missed[] */
    uint64_t missed[MISS_CAUSES]; /* why not */

    /* The engine's own. */
    struct site *site;   /* where it is registered, or NULL */
    struct kprobe *next; /* further probe at the same address */
};

/* register_kprobe - check, prepare and arm a probe. From its return on, every execution of
 * the instruction, on any CPU, is a hit.
 * @p: caller's memory, zeroed but for what is set; borrowed until unregister_kprobe()
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0, or the errno of the refusal: the table in docs/architecture.md.
 */
int register_kprobe(struct kprobe *p);
/* register_kprobe_why - the same; on refusal @why tells which rule, and where. */
int register_kprobe_why(struct kprobe *p, struct probe_reject *why);

/* unregister_kprobe - take a probe away. On return no handler of it runs any more, and the
 * memory of @p is the caller's again.
 *
 * Context: thread, not one of its own handlers.  Locks: takes PLAT_PROBES; waits for
 * quiescence.
 * Return:  0; -EINVAL not registered; -EDEADLK called from a handler.
 */
int unregister_kprobe(struct kprobe *p);

/* register_kprobes, unregister_kprobes - many at once: all or none, and one round of
 * waiting for all of them.
 * @ps: @count pointers
 *
 * Return: as above; on error nothing is left registered, and @why->at names the address.
 */
int register_kprobes(struct kprobe **ps, size_t count);
int register_kprobes_why(struct kprobe **ps, size_t count, struct probe_reject *why);
int unregister_kprobes(struct kprobe **ps, size_t count);

/* register_kprobes_some - as many of a set as are accepted, armed together.
 * @ps:      is reordered: those that are registered come first
 * @refused: told of each of the others and why
 *
 * Return: how many are registered; -EDEADLK, -ENOMEM with none.
 */
long register_kprobes_some(struct kprobe **ps, size_t count,
                           void (*refused)(struct kprobe *p,
                                           const struct probe_reject *why, void *arg),
                           void *arg);

/* enable_kprobe, disable_kprobe - switch the handlers of one registered probe. A disabled
 * one costs nothing, unless others at its address are enabled.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EINVAL not registered, or gone; -EDEADLK called from a handler.
 */
int enable_kprobe(struct kprobe *p);
int disable_kprobe(struct kprobe *p);

/* enable_kprobes, disable_kprobes - many, with one round of synchronisation.
 * Return: as above, and -ENOMEM; then none was switched.
 */
int enable_kprobes(struct kprobe **ps, size_t count);
int disable_kprobes(struct kprobe **ps, size_t count);

/* kprobes_switch - all probes, those of the future included. Off, every text byte is the
 * original; on, each probe is as it was switched by itself.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EDEADLK, -ENOMEM, and nothing has changed.
 */
int kprobes_switch(bool on);
/* kprobes_are_on - Context: any. */
bool kprobes_are_on(void);
