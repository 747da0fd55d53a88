/* kprobe.h - the interface of the core: probes on instructions of the running kernel.
 *
 * A kprobe is armed at one instruction. Each time a CPU is about to execute this
 * instruction, the pre-handlers of all probes at its address run, then the instruction,
 * then the post-handlers. Nothing else changes for the probed code, which is called the
 * program.
 *
 * Rules for handlers:
 *
 *   - A handler runs in the context of the program, with preemption off. An NMI may
 *     interrupt the handler; an interrupt may, too, if the CPU has come by a jump (see
 *     KPROBE_FLAG_IRQS_OFF).
 *   - A handler may not sleep, and may not wait for locks that the program could hold.
 *   - A handler sees the registers of the program, and may change them; ip is the probed
 *     address + 1, as after a trap.
 *   - A handler may itself run into probes.
 *   - If a handler faults or sleeps, the engine gives it up: the handler ends at once,
 *     its probe is disabled, and the log says so. Locks that the handler holds stay
 *     taken, and the log names them.
 *   - A handler may change the preemption count and the flags IF, DF and AC of the CPU,
 *     but the program never sees these changes: the engine restores the count, and the
 *     program goes on with the flags of the image.
 *
 * The names and their meanings are those of Linux.
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kprobe;
struct kprobe_program;
struct site;

/* A pre-handler runs before the instruction. It usually returns 0. If it returns another
 * value, it has set all of @regs, ip included, as the program is to go on: then the
 * engine runs neither the instruction nor the handlers of the later probes at this
 * address.
 */
typedef int (*kprobe_pre_handler_t)(struct kprobe *p, struct pt_regs *regs);
/* A light handler also runs before the instruction, but gets no registers; @ip is the
 * probed address. So a jump needs to save only the registers that a C function may
 * change, and a hit takes half the time.
 */
typedef void (*kprobe_light_handler_t)(struct kprobe *p, uintptr_t ip);
/* A post-handler runs after the instruction; regs->ip is where the program goes on.
 * @flags: always 0. The engine leaves the post-handler out if the instruction itself has
 * used up nearly all of the stack.
 */
typedef void (*kprobe_post_handler_t)(struct kprobe *p, struct pt_regs *regs,
                                      unsigned long flags);
/* A fault handler runs when the instruction, or another handler of the same probe, faults
 * with the vector @trapnr. If it returns a value that is not 0, it has dealt with the
 * fault, and the CPU goes on at regs->ip. It is not asked if the instruction is a branch,
 * or works on flags (emulate.c): the engine does these itself, and raises their faults.
 */
typedef int (*kprobe_fault_handler_t)(struct kprobe *p, struct pt_regs *regs, int trapnr);

/* The causes of a miss. A hit is active on a CPU from the moment at which the engine
 * enters it until the engine leaves it. Every miss is counted under one of these causes:
 */
enum probe_miss {
    /* A hit of the same address is active on this CPU. Or the address lies in the
     * engine's own code, and a hit of any address is active.
     */
    MISS_RECURSION,
    MISS_NESTED, /* PROBE_NEST_MAX hits are already active on this CPU */
    MISS_STACK,  /* less than PROBE_STACK_MIN bytes of the stack are left */
    MISS_EARLY,  /* the CPU was not ready for probes yet */
    MISS_CAUSES,
};

/* probe_miss_name - "recursion", "nested", ... Context: any. */
const char *probe_miss_name(enum probe_miss cause);

#define PROBE_NEST_MAX 4
#define PROBE_STACK_MIN 4096 /* bytes */

/* Flags; DISABLED, IRQS_OFF and PENDING may be given to register_kprobe(). */
#define KPROBE_FLAG_GONE 1u      /* the probed code is not loaded any more, or not yet */
#define KPROBE_FLAG_DISABLED 2u  /* registered, but the handlers do not run */
#define KPROBE_FLAG_OPTIMIZED 4u /* CPUs come to the probe by a jump, not by a trap */
#define KPROBE_FLAG_TRIPPED 32u  /* disabled by the engine: a handler faulted or slept */
/* The handlers of this probe always run with interrupts off. Without this flag interrupts
 * are off after a trap, but after a jump they are as the program has them.
 */
#define KPROBE_FLAG_IRQS_OFF 64u
/* For register_kprobe(): if no symbol has the name of this probe yet, the probe is
 * registered nevertheless. Then it is GONE, and is armed when text with this name is
 * loaded.
 */
#define KPROBE_FLAG_PENDING 128u
#define KPROBE_FLAGS_IDLE /* those that mean nothing to a hit */                         \
    (KPROBE_FLAG_OPTIMIZED | KPROBE_FLAG_PENDING)

enum kprobe_kind {
    KPROBE_KIND_PROBE,
    KPROBE_KIND_RETURN, /* at the entry of a function, for a struct kretprobe */
    KPROBE_KIND_JPROBE, /* for a struct jprobe */
};

struct kprobe {
    /* The caller sets these fields, and does not change them while the probe is
     * registered. Either symbol_name or addr names the place, and offset is added to it;
     * register_kprobe() fills in addr.
     */
    const char *symbol_name;
    uintptr_t addr;
    unsigned offset; /* bytes from the symbol or address */
    uint8_t kind;    /* the engine's own: enum kprobe_kind */
    kprobe_pre_handler_t pre_handler;
    kprobe_light_handler_t light_handler; /* instead of pre_handler, or NULL */
    struct kprobe_program *program; /* instead of handlers: probes/program/program.h */
    kprobe_post_handler_t post_handler;
    kprobe_fault_handler_t fault_handler;
    uint32_t flags;
    uint32_t counter; /* the engine's own: which counter counts hits by jumps; 0: none */

    /* Counted by the engine. */
    uint64_t hits;                /* hits that were not missed, but see kprobe_hits() */
    uint64_t nmissed;             /* misses: the sum of missed[] */
    uint64_t missed[MISS_CAUSES]; /* misses by cause */

    /* The engine's own. */
    struct site *site;   /* where the probe is registered, or NULL */
    struct kprobe *next; /* the next probe at the same address */
    struct kprobe *prev; /* used, with @next, in the list of probes that wait for text */
};

/* kprobe_hits - return the number of hits of @p that were not missed. A probe without a
 * handler has hits, too. While @p is registered, @p->hits lacks some of them: jumps count
 * hits in per-CPU counters. Context: any.
 */
uint64_t kprobe_hits(const struct kprobe *p);

/* register_kprobes_why - check, prepare and arm a set of probes: all of them or none.
 * The probes share the synchronisations. From the return on, every execution of the
 * probed instructions, on any CPU, is a hit.
 * @ps:  @count pointers to probes. Fields that the caller does not set are 0. The memory
 *       is the caller's; the engine uses it until unregister_kprobes()
 * @why: filled on refusal: the rule, the address, and the index of the probe in @ps; may
 *       be NULL
 *
 * Context: thread, else refused.  Locks: takes PLAT_PROBES.
 * Return:  0, or the errno of the refusal (kernel/base/err.h), and no
 *          probe of the set is registered.
 */
int register_kprobes_why(struct kprobe **ps, size_t count, struct probe_reject *why);

/* unregister_kprobes - take probes away. On return none of their handlers runs any more,
 * and their memory is the caller's again.
 * Context: thread, no handler.  Locks: takes PLAT_PROBES; waits for
 * quiescence.
 * Return:  0; -EINVAL a probe is not registered; -EDEADLK called from a handler. On error
 *          no probe was taken away.
 */
int unregister_kprobes(struct kprobe **ps, size_t count);

/* The same functions without @why, and for one probe. */
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

/* register_kprobes_some - register those probes of a set that the rules accept, and arm
 * them together.
 * @ps:      is reordered: the registered probes come first
 * @refused: called for each refused probe, with the reason
 *
 * Return: how many are registered; -EDEADLK or -ENOMEM, and none is registered.
 */
typedef void (*register_refused_t)(struct kprobe *p, const struct probe_reject *why,
                                   void *arg);
long register_kprobes_some(struct kprobe **ps, size_t count, register_refused_t refused,
                           void *arg);

/* enable_kprobes, disable_kprobes - switch the handlers of registered probes on or off.
 * All probes of the call share the synchronisations. A disabled probe costs nothing,
 * unless another probe at its address is enabled.
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EINVAL a probe is not registered; -EDEADLK called from a handler; for
 *          several probes also -ENOMEM. On error no probe was switched.
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

/* kprobes_switch - switch kprobes on or off as a whole, also for probes that are
 * registered later. While kprobes are off, every byte of text is the original one. When
 * they are switched on, each probe is enabled or disabled as enable_kprobes() and
 * disable_kprobes() have left it. Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EDEADLK, -ENOMEM, and nothing has changed.
 */
int kprobes_switch(bool on);
/* kprobes_are_on - are kprobes switched on as a whole? Context: any. */
bool kprobes_are_on(void);
