/* kprobe.h - the interface of the core: probes on instructions of the running kernel.
 *
 * A kprobe is armed at one instruction. Each time a CPU is about to execute it, the
 * pre-handlers of all probes there run, then the instruction, then the post-handlers.
 * Nothing else of the probed code changes.
 *
 * Rules for handlers. They run in the context of the probed code, with preemption off:
 * they may be interrupted by an NMI, and may not sleep or wait for locks that the probed
 * code could hold. They see and may change the registers of the probed code; ip is the
 * probed address + 1, as on a trap. A handler may itself run into probes. A handler that
 * faults or sleeps is given up: its probe is switched off, and the log says so.
 *
 * A handler's changes of the count of preemption and of the flags of the CPU (IF, DF, AC)
 * end with it. The program goes on with the flags of the image, IF included. Locks that a
 * handler holds when it is given up stay taken, and the log names them.
 *
 * Names, and what they mean, are those of Linux.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kprobe;
struct kprobe_stores;
struct site;

/* Before the instruction. Returning non-zero means: I have set regs->ip (and all else) to
 * where to go on; do not run the instruction, nor the handlers behind me.
 */
typedef int (*kprobe_pre_handler_t)(struct kprobe *p, struct pt_regs *regs);
/* The same, for a handler that needs no registers: @ip is the probed address. A jump saves
 * only what a C function may change, and takes half the time.
 */
typedef void (*kprobe_light_handler_t)(struct kprobe *p, uintptr_t ip);
/* After the instruction; regs->ip is where the program goes on. @flags: always 0. It is left
 * out where the instruction itself has taken nearly all of the stack.
 */
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

/* Flags; DISABLED, IRQS_OFF, PENDING and BY_IMAGE may be given to register_kprobe(). */
#define KPROBE_FLAG_GONE 1u      /* the code it was on no longer exists */
#define KPROBE_FLAG_DISABLED 2u  /* registered, handlers not called */
#define KPROBE_FLAG_OPTIMIZED 4u /* reached by a jump, not by a trap */
#define KPROBE_FLAG_TRIPPED 32u  /* disabled by the engine: a handler faulted or slept */
/* Handlers run with interrupts off, whether they come by a trap or by a jump; else a jump
 * leaves interrupts as the program has them.
 */
#define KPROBE_FLAG_IRQS_OFF 64u
/* Given to register_kprobe(): if nothing has its name yet, it is registered all the same, is
 * GONE, and will be armed when text comes that has this name.
 */
#define KPROBE_FLAG_PENDING 128u
#define KPROBE_FLAG_BY_IMAGE 16u /* see kprobe_by_image() */

enum kprobe_kind {
    KPROBE_KIND_PROBE,
    KPROBE_KIND_RETURN, /* at the entry of a function, for a struct kretprobe */
    KPROBE_KIND_JPROBE, /* for a struct jprobe */
};

struct kprobe {
    /* Set by the caller, then left alone while registered. Either symbol_name (with
     * offset) or addr says where; register_kprobe() fills in addr.
     */
    const char *symbol_name;
    uintptr_t addr;
    unsigned offset; /* bytes from the symbol */
    uint8_t kind;    /* the engine's own: enum kprobe_kind */
    kprobe_pre_handler_t pre_handler;
    kprobe_light_handler_t light_handler; /* in the place of pre_handler */
    const struct kprobe_stores *stores;   /* or NULL; pre_handler does the same */
    kprobe_post_handler_t post_handler;
    kprobe_fault_handler_t fault_handler;
    uint32_t flags;
    uint32_t counter; /* the engine's own: counts hits by jumps, on each CPU; 0: none */

    /* Counted by the engine. */
    uint64_t hits; /* pre-handlers were run; while registered ask kprobe_hits() for all */
    uint64_t nmissed;             /* they were not: the sum of missed[] */
    uint64_t missed[MISS_CAUSES]; /* why not */

    /* The engine's own. */
    struct site *site;   /* where it is registered, or NULL */
    struct kprobe *next; /* further probe at the same address */
    struct kprobe *prev; /* while it waits for text, with @next */
};

/* kprobe_hits - how often the pre-handlers of @p were run, or would have been if it had any.
 * Those that no trap was needed for are not in @p->hits as long as it is registered.
 * Context: any.
 */
uint64_t kprobe_hits(const struct kprobe *p);

/* register_kprobes_why - check, prepare and arm probes: all or none, with one round of
 * waiting for all of them. From its return on, every execution of their instructions, on any
 * CPU, is a hit.
 * @ps:  @count pointers to the caller's memory, zeroed but for what is set; borrowed until
 *       unregister_kprobes()
 * @why: on refusal the rule, the address and the element; may be NULL
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0, or the errno of the refusal: the table in docs/architecture.md. Then none is
 *          registered.
 */
int register_kprobes_why(struct kprobe **ps, size_t count, struct probe_reject *why);

/* unregister_kprobes - take probes away. On return no handler of them runs any more, and
 * their memory is the caller's again.
 *
 * Context: thread, not one of their own handlers.  Locks: takes PLAT_PROBES; waits for
 * quiescence.
 * Return:  0; -EINVAL one is not registered; -EDEADLK called from a handler.
 */
int unregister_kprobes(struct kprobe **ps, size_t count);

/* The same without a reason, and for one probe. */
static inline int register_kprobes(struct kprobe **ps, size_t count)
{
    return register_kprobes_why(ps, count, NULL);
}

static inline int register_kprobe_why(struct kprobe *p, struct probe_reject *why)
{
    return register_kprobes_why(&p, 1, why);
}

static inline int register_kprobe(struct kprobe *p)
{
    return register_kprobes_why(&p, 1, NULL);
}

static inline int unregister_kprobe(struct kprobe *p)
{
    return unregister_kprobes(&p, 1);
}

/* register_kprobes_some - as many of a set as are accepted, armed together.
 * @ps:      is reordered: those that are registered come first
 * @refused: told of each of the others and why
 *
 * Return: how many are registered; -EDEADLK, -ENOMEM with none.
 */
typedef void (*register_refused_t)(struct kprobe *p, const struct probe_reject *why,
                                   void *arg);
long register_kprobes_some(struct kprobe **ps, size_t count, register_refused_t refused,
                           void *arg);

/* enable_kprobes, disable_kprobes - switch the handlers of registered probes, with one round
 * of synchronisation. A disabled probe costs nothing, unless others at its address are
 * enabled.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EINVAL one is not registered, or gone; -EDEADLK called from a handler; for
 *          several also -ENOMEM. On error none was switched.
 */
int enable_kprobes(struct kprobe **ps, size_t count);
int disable_kprobes(struct kprobe **ps, size_t count);

static inline int enable_kprobe(struct kprobe *p)
{
    return enable_kprobes(&p, 1);
}

static inline int disable_kprobe(struct kprobe *p)
{
    return disable_kprobes(&p, 1);
}

/* kprobes_switch - all probes, those of the future included. Off, every text byte is the
 * original; on, each probe is as it was switched by itself.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EDEADLK, -ENOMEM, and nothing has changed.
 */
int kprobes_switch(bool on);
/* kprobes_are_on - Context: any. */
bool kprobes_are_on(void);
