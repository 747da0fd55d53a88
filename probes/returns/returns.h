/* returns.h - the interface of return probes and jprobes: probes on whole functions. */
#pragma once

#include "probes/core/kprobe.h"

struct kretprobe_holder;

/* kprobe_kind - 'k', 'r' for one of a return probe, 'j' for one of a jprobe.
 * Context: any.
 */
char kprobe_kind(const struct kprobe *p);

/* ---- jprobes ---- */

/* A jprobe is a kprobe at the entry of a function, whose handler has the function's own
 * signature: it finds the arguments where the function would, in registers and on a stack
 * that begins with a copy of the first JPROBE_STACK_LEN bytes behind the return address.
 * The function does not see what the handler does to them. It ends with jprobe_return(),
 * from any depth of calls, and has the same rules as a pre-handler.
 */
struct jprobe {
    struct kprobe kp; /* where, flags, fault_handler */
    void *entry;      /* the handler */
};

#define JPROBE_STACK_LEN 256 /* bytes of arguments on the stack, at most */

/* jprobe_return - end the handler of a jprobe. Anywhere else it is a bug. */
_Noreturn void jprobe_return(void);

/* register_jprobes_why - as register_kprobes_why(), at the entries of functions; there can be
 * one at each, beside other probes.
 * Return: 0; -EINVAL not an entry, or no handler; -EEXIST there is one; else as
 *         register_kprobes_why().
 */
int register_jprobes_why(struct jprobe **jps, size_t count, struct probe_reject *why);
/* unregister_jprobes - as unregister_kprobes(), and -ENOMEM. */
int unregister_jprobes(struct jprobe **jps, size_t count);

static inline int register_jprobes(struct jprobe **jps, size_t count)
{
    return register_jprobes_why(jps, count, NULL);
}

static inline int register_jprobe_why(struct jprobe *jp, struct probe_reject *why)
{
    return register_jprobes_why(&jp, 1, why);
}

static inline int register_jprobe(struct jprobe *jp)
{
    return register_jprobes_why(&jp, 1, NULL);
}

static inline int unregister_jprobe(struct jprobe *jp)
{
    return unregister_kprobe(&jp->kp);
}

static inline int enable_jprobe(struct jprobe *jp)
{
    return enable_kprobe(&jp->kp);
}

static inline int disable_jprobe(struct jprobe *jp)
{
    return disable_kprobe(&jp->kp);
}

/* ---- return probes ---- */

/* A kretprobe is armed at the entry of a function. Its entry_handler runs there, its
 * handler each time the function returns, by whichever of its exits. The return address is
 * exchanged at the entry, and kept in a shadow stack that belongs to the stack the function
 * runs on: an entry for every 16 bytes of it, so neither depth nor the number of threads
 * that sleep inside can exhaust it.
 *
 * A function that ends in a jump to another one (a tail call) returns when that one does:
 * where both are probed, the inner one's handler runs first. A jump to a function that is
 * to return to the same place already is not a second instance: it is counted as coalesced.
 * A function that is left by other means (a longjmp, the end of its thread) never returns;
 * what was kept for it is dropped.
 */
struct kretprobe_instance {
    struct kretprobe *rp;
    uintptr_t ret_addr;                          /* where the function returns to */
    uint8_t data[] __attribute__((aligned(16))); /* data_size bytes, as left by the
                                                  * entry_handler; at first anything */
};

/* As entry_handler: @regs as for a pre-handler. Non-zero means: not this time, let it return
 * unseen. As handler: @regs as they are behind the return, ip is where it goes; the answer
 * means nothing. The program goes on with @regs as the handler leaves them. Rules: those of
 * kprobes, but interrupts in handler are as the function left them, unless kp.flags has
 * KPROBE_FLAG_IRQS_OFF.
 */
typedef int (*kretprobe_handler_t)(struct kretprobe_instance *ri, struct pt_regs *regs);

/* Why a call was not followed to its return. Each is counted under one of these. */
enum kretprobe_miss {
    KRETPROBE_MISS_STACK,     /* not on the thread's own stack, or it has no shadow */
    KRETPROBE_MISS_FULL,      /* the shadow stack is full */
    KRETPROBE_MISS_FAR,       /* the return address is not near kernel text */
    KRETPROBE_MISS_DATA,      /* no room for data_size bytes */
    KRETPROBE_MISS_MAXACTIVE, /* maxactive instances exist already */
    KRETPROBE_MISS_RETURN, /* it returned where no handler may run, see probe_miss, or while
                               * the probe was disabled */
    KRETPROBE_MISS_CAUSES,
};

/* kretprobe_miss_name - "stack", "full", ... Context: any. */
const char *kretprobe_miss_name(enum kretprobe_miss cause);

#define KRETPROBE_DATA_MAX 4096 /* bytes */

struct kretprobe {
    /* Set by the caller. Of kp: where (the entry of a function), flags, fault_handler. */
    struct kprobe kp;
    kretprobe_handler_t handler;
    kretprobe_handler_t entry_handler;
    int maxactive;    /* instances at a time; 0 and less: as many as there are calls */
    size_t data_size; /* bytes of each instance's data, up to KRETPROBE_DATA_MAX */

    /* Counted by the engine; kp.hits are the calls, kp.nmissed those that no handler saw. */
    uint64_t nmissed; /* calls seen, but not their return: the sum of missed[] */
    uint64_t missed[KRETPROBE_MISS_CAUSES];
    uint64_t coalesced; /* jumps into an instance that was there already */
    uint64_t dropped;   /* instances that never returned */

    struct kretprobe_holder *holder; /* the engine's own; NULL: not registered */
};

/* register_kretprobes_why - as register_kprobes_why(), at the entries of functions.
 *
 * The first one makes shadow stacks for all threads, the first one with data room for it.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EINVAL not an entry, -E2BIG too much data, -EOPNOTSUPP a function that
 *          returns on another stack; else as register_kprobes_why().
 */
int register_kretprobes_why(struct kretprobe **rps, size_t count,
                            struct probe_reject *why);

/* unregister_kretprobes - on return no handler of them runs any more, and their memory is the
 * caller's again. Calls that are under way return as they would without them, however long
 * they take: they are not waited for.
 *
 * Context, Locks, Return: as unregister_kprobes().
 */
int unregister_kretprobes(struct kretprobe **rps, size_t count);

static inline int register_kretprobes(struct kretprobe **rps, size_t count)
{
    return register_kretprobes_why(rps, count, NULL);
}

static inline int register_kretprobe_why(struct kretprobe *rp, struct probe_reject *why)
{
    return register_kretprobes_why(&rp, 1, why);
}

static inline int register_kretprobe(struct kretprobe *rp)
{
    return register_kretprobes_why(&rp, 1, NULL);
}

static inline int unregister_kretprobe(struct kretprobe *rp)
{
    return unregister_kretprobes(&rp, 1);
}

/* While a return probe is disabled, calls that began before return unseen, and are counted as
 * missed.
 */
static inline int enable_kretprobe(struct kretprobe *rp)
{
    return enable_kprobe(&rp->kp);
}

static inline int disable_kretprobe(struct kretprobe *rp)
{
    return disable_kprobe(&rp->kp);
}

/* kretprobe_find_ret - the return address that belongs at @slot, where a function that is
 * probed is to return to; 0 when it is none of the engine's.
 * Context: any. Looks at the stacks of running threads and at those for NMIs.
 */
uintptr_t kretprobe_find_ret(const uintptr_t *slot);
