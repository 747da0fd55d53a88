/* watch.h - watchpoints: a kprobe is on an instruction, a watch is on bytes of memory.
 *
 * A watch takes one of the four debug registers of the processor, the same one on all
 * CPUs. If a CPU writes the watched bytes (or reads them, if the watch is on reads, too),
 * the CPU traps after that instruction, and the engine calls the handler of the watch. A
 * watch on an instruction makes the CPU trap before that instruction; the text is not
 * changed.
 *
 * Handlers run with interrupts off. The rules are those for handlers of kprobes: a
 * handler may not sleep, hits inside a handler nest, and a handler that faults is given
 * up, and its watch is switched off. A handler sees the registers of the program, and may
 * change them. regs->ip is the address in the program's own text where the program goes
 * on: behind the instruction that has touched the bytes, or at the watched instruction.
 * This is so even if the CPU has executed a copy of the instruction elsewhere. If a
 * handler touches the watched bytes itself, or the engine does so on the way to a hit,
 * this access is counted as a miss.
 *
 * Only accesses by CPUs are seen, and not those by devices. One instruction makes one
 * hit, no matter how many of the bytes it touches. An instruction with a repeat prefix
 * makes a hit in each iteration, or one hit in several iterations (SDM vol. 3B, "Data
 * Breakpoints" of "Debug Exceptions").
 */
#pragma once

#include "kernel/base/regs.h"
#include "probes/core/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch;

enum watch_kind {
    WATCH_WRITE,
    WATCH_ACCESS, /* reads and writes; the processor has none for reads alone */
    WATCH_EXECUTE,
    WATCH_KINDS,
};

/* watch_kind_name - "w", "rw", "x". Context: any. */
const char *watch_kind_name(enum watch_kind kind);

/* The handler is called after the access, or before the watched instruction. */
typedef void (*watch_handler_t)(struct watch *w, struct pt_regs *regs);

#define WATCH_NAME_MAX 48 /* bytes, NUL included */

struct watch {
    /* The caller sets these, and does not change them while the watch is registered. */
    char name[WATCH_NAME_MAX]; /* shown when a fifth watch is refused */
    uintptr_t addr;            /* a multiple of len; 0: nothing yet, see watch_move() */
    uint8_t kind;              /* enum watch_kind */
    uint8_t len;               /* bytes: 1, 2, 4 or 8; for WATCH_EXECUTE 1 */
    uint32_t flags;            /* KPROBE_FLAG_DISABLED: it begins disabled */
    watch_handler_t handler;   /* NULL: hits are counted */

    /* Only the engine uses these. */
    int reg; /* while registered: its debug register, 0..3 */
    bool is_registered;
    uint64_t hits, nmissed; /* while registered: minus earlier counts of the CPUs for the
                             * register; afterwards: the hits and misses of this watch */
    struct kprobe kp;       /* calls the handler: hits call handlers of kprobes only */
};

/* Why a watch is refused. */
enum watch_reason {
    WATCH_OK,
    WATCH_TWICE,       /* this struct watch is registered already */
    WATCH_READ_ALONE,  /* there is no such kind */
    WATCH_LENGTH,      /* the length is not 1, 2, 4 or 8 */
    WATCH_EXECUTE_LEN, /* WATCH_EXECUTE: the length is not 1 */
    WATCH_UNALIGNED,
    WATCH_NOT_KERNEL,  /* the address is not canonical, or not the kernel's */
    WATCH_OWN,         /* the handling of each hit touches the bytes */
    WATCH_NO_CODE,     /* WATCH_EXECUTE: there is no instruction */
    WATCH_BLACKLISTED, /* WATCH_EXECUTE: the instruction runs before a hit is entered */
    WATCH_ALL_TAKEN,   /* watch_owner() tells the owner of each register */
    WATCH_NO_MEMORY,
    WATCH_IN_HIT, /* the caller is a handler */
    WATCH_REASONS,
};

/* watch_reason_text - return @reason as one sentence, without a full stop. Context: any.
 * watch_reason_errno - return the negative errno of @reason; 0 for WATCH_OK.
 */
const char *watch_reason_text(enum watch_reason reason);
int watch_reason_errno(enum watch_reason reason);

/* watch_check - check whether @w could be registered if a register were free. The address
 * 0 is accepted, but not for WATCH_EXECUTE.
 * Context: thread or held.  Locks: takes PLAT_PROBES.
 */
enum watch_reason watch_check(const struct watch *w);

/* watch_check_own - would the handling of each hit of a register with this place hit it
 * again? For all users of debug registers.
 * Context: any.  Return: WATCH_OK no; WATCH_OWN, WATCH_BLACKLISTED yes.
 */
enum watch_reason watch_check_own(uintptr_t addr, size_t len, enum watch_kind kind);

/* register_watch_why - register @w. After the return every access, on any CPU, is a hit.
 * CPUs that are started later watch the bytes, too.
 * @w:   memory of the caller; fields that the caller does not set are 0. The engine uses
 *       it until unregister_watch()
 * @why: receives the reason, WATCH_OK if @w is registered; may be NULL
 *
 * Context: thread.  Locks: takes PLAT_PROBES.
 * Return:  0; the reason's errno: -EINVAL, -EPERM, -EILSEQ, -EBUSY, -EEXIST, -ENOMEM,
 *          -EDEADLK.
 */
int register_watch_why(struct watch *w, enum watch_reason *why);
static inline int register_watch(struct watch *w)
{
    return register_watch_why(w, NULL);
}

/* unregister_watch - take @w out. On return no handler of @w runs any more, and the
 * caller may free its memory. No code may call watch_move() for @w meanwhile.
 * Context: thread, no handler.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EINVAL it is not registered; -EDEADLK called from a handler.
 */
int unregister_watch(struct watch *w);

/* watch_leaves - take out all watches that lie in the @len bytes at @memory, which are about
 * to go, or have their handlers there.
 * Context: thread, no handler.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  how many.
 */
unsigned watch_leaves(uintptr_t memory, size_t len);

/* enable_watch, disable_watch - switch @w on or off. A disabled watch keeps its register,
 * and costs nothing.
 * Context: thread.  Locks: takes PLAT_PROBES.  Return: as unregister_watch().
 */
int watch_switch(struct watch *w, bool on);
static inline int enable_watch(struct watch *w)
{
    return watch_switch(w, true);
}
static inline int disable_watch(struct watch *w)
{
    return watch_switch(w, false);
}

/* watch_move - let the registered watch @w watch other bytes from now on, or none. The
 * executing CPU does so at once, each other CPU as soon as it takes an interrupt. After
 * the call no access to the old bytes is a hit, on any CPU. @w must not watch an
 * instruction.
 * @addr: 0: watch nothing
 *
 * Context: any.  Locks: none. If two CPUs call it at the same time, one
 *          of the two addresses is watched afterwards.
 * Return:  0; -EINVAL @addr is not aligned or not the kernel's, or the handling of each
 *          hit would touch the bytes, or @w watches an instruction.
 */
int watch_move(struct watch *w, uintptr_t addr);
/* watch_addr - return the address that @w watches now. 0: @w watches nothing, or is
 * disabled. Context: any.
 */
uintptr_t watch_addr(const struct watch *w);

/* watch_hits - count the accesses for which the handler of @w was called, or would have
 * been called if @w had a handler.
 * watch_misses - count the accesses for which it was not called, for instance those by
 * handlers, or by the engine on the way to a handler.
 * Context: any. The result is a sum over all CPUs, which may count on meanwhile.
 */
uint64_t watch_hits(const struct watch *w);
uint64_t watch_misses(const struct watch *w);

/* watch_owner - return the owner of register @i: the name of a watch, or of another part of
 * the kernel. NULL: the register is free, or @i is above 3. Context: any.
 */
const char *watch_owner(unsigned i);
