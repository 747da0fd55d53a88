/* watch.h - watchpoints: what a kprobe is to an instruction, a watch is to some bytes of
 * memory.
 *
 * A watch has one of the four debug registers of the processor, of all CPUs. Each time a CPU
 * writes its bytes, or also reads them, it traps behind the instruction that did so, and the
 * handler of the watch is called. A watch of an instruction traps in front of it; its text
 * is left as it is.
 *
 * Handlers run as those of kprobes do, with interrupts off, and the same rules hold: they may
 * not sleep, their hits nest, and a handler that faults is given up and its watch switched
 * off. They see and may change the registers of the program. regs->ip is where the program
 * goes on, in its own text, also where a copy of the instruction has been executed out of
 * line: behind the instruction that has touched the bytes, or at the one that is watched. A
 * handler that touches the bytes itself is counted as a miss, like an access of the engine's
 * own on the way to a hit.
 *
 * Accesses are those of CPUs: devices that write memory are not seen. One instruction is one
 * hit, however many of the bytes it touches; one with a repeat prefix is one in each
 * iteration, or in a few of them (SDM vol. 3B, "Data Breakpoints" of "Debug Exceptions").
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

/* Behind the access, or in front of the instruction. */
typedef void (*watch_handler_t)(struct watch *w, struct pt_regs *regs);

#define WATCH_NAME_MAX 48 /* bytes, NUL included */

struct watch {
    /* Set by the caller, then left alone while registered. */
    char name[WATCH_NAME_MAX]; /* shown where a fifth is refused */
    uintptr_t addr;            /* a multiple of len; 0: nothing yet, see watch_move() */
    uint8_t kind;              /* enum watch_kind */
    uint8_t len;               /* bytes: 1, 2, 4 or 8; of WATCH_EXECUTE 1 */
    uint32_t flags;            /* KPROBE_FLAG_DISABLED: not yet */
    watch_handler_t handler;   /* NULL: hits are counted */

    /* The engine's own. */
    int reg; /* of 0..3, while registered */
    bool is_registered;
    uint64_t hits, nmissed; /* of the time before it was registered */
    struct kprobe kp;       /* its handler, as hits know handlers */
};

/* Why a watch is refused. */
enum watch_reason {
    WATCH_OK,
    WATCH_TWICE,       /* this struct watch is registered already */
    WATCH_READ_ALONE,  /* there is no such kind */
    WATCH_LENGTH,      /* 1, 2, 4 or 8 */
    WATCH_EXECUTE_LEN, /* of an instruction: 1 */
    WATCH_UNALIGNED,
    WATCH_NOT_KERNEL,  /* the address is not canonical, or not the kernel's */
    WATCH_OWN,         /* its own handling touches it */
    WATCH_NO_CODE,     /* WATCH_EXECUTE: there is no instruction */
    WATCH_BLACKLISTED, /* WATCH_EXECUTE: runs before a hit is entered */
    WATCH_ALL_TAKEN,   /* watch_owner() says by whom */
    WATCH_NO_MEMORY,
    WATCH_IN_HIT, /* called from a handler */
    WATCH_REASONS,
};

/* watch_reason_text - one sentence without a full stop. Context: any.
 * watch_reason_errno - the negative errno; 0 for WATCH_OK.
 */
const char *watch_reason_text(enum watch_reason reason);
int watch_reason_errno(enum watch_reason reason);

/* watch_check - all that is asked of a watch, but for a free register and the address 0.
 * Context: thread.  Locks: takes PLAT_PROBES.
 */
enum watch_reason watch_check(const struct watch *w);

/* register_watch_why - from its return on every access, on any CPU, is a hit; CPUs that are
 * started later watch as well.
 * @w:   the caller's memory, zeroed but for what is set; borrowed until unregister_watch()
 * @why: on refusal the reason; may be NULL
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

/* unregister_watch - on return no handler of it runs any more, and its memory is the
 * caller's. Nothing may move it meanwhile.
 * Context: thread, no handler.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EINVAL it is not registered; -EDEADLK called from a handler.
 */
int unregister_watch(struct watch *w);

/* enable_watch, disable_watch - a disabled watch keeps its register, and costs nothing.
 * Context: thread.  Locks: takes PLAT_PROBES.  Return: as unregister_watch().
 */
int enable_watch(struct watch *w);
int disable_watch(struct watch *w);

/* watch_move - let @w, which is registered, watch other bytes from now on, or none: at once
 * on the executing CPU, on the others as soon as they take an interrupt. Of the old bytes no
 * access is a hit any more, on any CPU. For data only.
 * @addr: 0: none
 *
 * Context: any, a hit included.  Locks: none. Of two CPUs that do so, one is the last.
 * Return:  0; -EINVAL not aligned, not the kernel's, its own handling would touch it, or @w
 *          watches an instruction.
 */
int watch_move(struct watch *w, uintptr_t addr);
/* watch_addr - what it watches now; 0: nothing, or it is disabled. Context: any. */
uintptr_t watch_addr(const struct watch *w);

/* watch_hits - accesses for which the handler was called, or would be if there was one.
 * watch_misses - accesses for which it was not: by handlers, or by the engine's way to them.
 * Context: any. Summed over CPUs that go on counting.
 */
uint64_t watch_hits(const struct watch *w);
uint64_t watch_misses(const struct watch *w);

/* watch_owner - whose register @i of 0..3 is, a watch's name or another part's of the kernel;
 * NULL: it is free. Context: any.
 */
const char *watch_owner(unsigned i);
