/* returns.h - the interface of return probes and jprobes: probes on whole functions. */
#pragma once

#include "probes/core/kprobe.h"

struct kretprobe_holder;

/* kprobe_kind - tell the kind of @p: 'r' if @p is part of a return probe, 'j' if it is
 * part of a jprobe, otherwise 'k'. Context: any.
 */
char kprobe_kind(const struct kprobe *p);

/* ---- jprobes ---- */

/* A jprobe is a kprobe at the entry of a function. Its handler has the same signature as
 * the function, and finds the arguments where the function would find them: in the
 * registers, and on a stack that begins with a copy of the first JPROBE_STACK_LEN bytes
 * above the return address. If the handler changes arguments, the function does not see the
 * changes. The handler ends with jprobe_return(), which may be called from any depth of
 * calls. The rules for a pre-handler apply to it.
 */
struct jprobe {
    struct kprobe kp; /* the caller sets the place, flags, fault_handler */
    void *entry;      /* the handler */
};

#define JPROBE_STACK_LEN 256 /* bytes of arguments on the stack that are copied */

/* jprobe_return - end the handler of a jprobe. A call from any other code is a bug. */
_Noreturn void jprobe_return(void);

/* register_jprobes_why - register @count jprobes, as register_kprobes_why() registers
 * kprobes. Each place must be the entry of a function. An entry can have only one jprobe,
 * and any number of other probes.
 * Return: 0; -EINVAL not an entry, or no handler; -EEXIST the entry has a jprobe already;
 *         else as register_kprobes_why().
 */
int register_jprobes_why(struct jprobe **jps, size_t count, struct probe_reject *why);

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

/* A kretprobe is armed at the entry of a function. Its entry_handler runs at the entry. Its
 * handler runs each time the function returns, by any of its `ret` instructions. At the
 * entry the engine exchanges the return address, and keeps the real one in a shadow stack.
 * Each stack has its shadow, with one entry for every 16 bytes of the stack. So a deep
 * recursion cannot fill the shadow if each function has one kretprobe; each further one
 * takes an entry for each call, too. A large number of threads that sleep in the function
 * cannot fill a shadow either.
 *
 * A function may end with a jump to another function (a tail call). It returns when the
 * other function returns. If both are probed, the handler of the other, inner one runs
 * first. If a chain of such jumps leads back to a function that has an instance in this
 * chain, no second instance is made: the jump is counted as coalesced. A function that
 * is left in another way (by a longjmp, or by the end of its thread) never returns. The
 * engine drops its instance, and counts it as dropped.
 *
 * An instance is one call that the engine follows to its return.
 */
struct kretprobe_instance {
    struct kretprobe *rp;
    uintptr_t ret_addr;                          /* where the function returns to */
    uint8_t data[] __attribute__((aligned(16))); /* data_size bytes, undefined until the
                                                  * entry_handler writes them */
};

/* The type of entry_handler and handler.
 * entry_handler: @regs is as for a pre-handler. A non-zero return value means that this
 * call is not followed: handler will not run for it.
 * handler: @regs is the image after the `ret`; its ip is the real return address. The
 * return value is ignored.
 * The program goes on with @regs as the handler leaves it. The rules are those of a
 * kprobe's handler, with one exception: while handler runs, interrupts are on or off as the
 * function has left them, unless kp.flags has KPROBE_FLAG_IRQS_OFF.
 */
typedef int (*kretprobe_handler_t)(struct kretprobe_instance *ri, struct pt_regs *regs);

/* Why a call was not followed to its return. Each such call is counted under one cause. */
enum kretprobe_miss {
    KRETPROBE_MISS_STACK, /* the return address is not on the thread's or the NMI's stack,
                           * or this stack has no shadow */
    KRETPROBE_MISS_FULL,  /* the shadow stack is full */
    KRETPROBE_MISS_FAR,   /* the return address is 2 GiB or more from the trampoline */
    KRETPROBE_MISS_DATA,  /* no room for data_size bytes */
    KRETPROBE_MISS_MAXACTIVE, /* maxactive instances exist already */
    KRETPROBE_MISS_RETURN,    /* when the function returned, no handler was allowed to run
                            * (see probe_miss), or the probe was disabled, or
                            * kprobes were off as a whole */
    KRETPROBE_MISS_CAUSES,
};

/* kretprobe_miss_name - return the name of @cause: "stack", "full", ... Context: any. */
const char *kretprobe_miss_name(enum kretprobe_miss cause);

#define KRETPROBE_DATA_MAX 4096 /* bytes */

struct kretprobe {
    /* Set by the caller. In kp: the place (entry of a function), flags, fault_handler. */
    struct kprobe kp;
    kretprobe_handler_t handler;
    kretprobe_handler_t entry_handler;
    int maxactive;    /* the most instances at a time; 0 or negative: no limit */
    size_t data_size; /* bytes of each instance's data, up to KRETPROBE_DATA_MAX */

    /* Counted by the engine. kp.hits counts calls. kp.nmissed counts the calls at which
     * no handler was allowed to run at the entry.
     */
    uint64_t nmissed; /* calls that the engine saw but did not follow to their return: the
                       * sum of missed[] */
    uint64_t missed[KRETPROBE_MISS_CAUSES];
    uint64_t coalesced; /* tail calls that came to the same function again */
    uint64_t dropped;   /* instances that never returned */

    struct kretprobe_holder *holder; /* only the engine uses it; NULL: not registered */
};

/* register_kretprobes_why - register @count return probes, as register_kprobes_why()
 * registers kprobes. Each place must be the entry of a function.
 *
 * The first call makes shadow stacks for all threads. The first call with a probe that has
 * a data_size makes room for data in each of them.
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; -EINVAL not an entry, -E2BIG too much data, -EOPNOTSUPP a function that
 *          returns on another stack, or by a `ret` with an operand; else as
 *          register_kprobes_why().
 */
int register_kretprobes_why(struct kretprobe **rps, size_t count,
                            struct probe_reject *why);

/* unregister_kretprobes - take @count return probes out. On return no handler of @rps
 * runs any more, and the caller may free their memory. This function does not wait for
 * probed functions that are still running: they return later, as if there were no probe.
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

/* If a function was called before its return probe was disabled, and returns while it is
 * disabled, the handler does not run; the call is counted as missed.
 */
static inline int enable_kretprobe(struct kretprobe *rp)
{
    return enable_kprobe(&rp->kp);
}

static inline int disable_kretprobe(struct kretprobe *rp)
{
    return disable_kprobe(&rp->kp);
}

/* kretprobe_find_ret - find the real return address that belongs in @slot, a word of a
 * stack. Return: the address; 0: the engine has not exchanged a return address in that
 * word.
 * Context: any. Only the stacks of threads that run on a CPU now, and the NMI stacks, are
 * looked at.
 */
uintptr_t kretprobe_find_ret(const uintptr_t *slot);
/* kretprobe_depth - tell how deep the call is whose handler runs, within the outermost call
 * of the function at @addr on this stack: 0: it is that call. Only calls of functions with
 * return probes count. A function that ends with a jump to another one is its caller.
 * Context: any. The caller is the handler, or the entry_handler, of a return probe.
 * Return:  -1: the call is not within such a call.
 */
int kretprobe_depth(uintptr_t addr);
