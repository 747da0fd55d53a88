/* posix_parts.h - what the files of the port know of each other. */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/core/life.h"

#include <signal.h>

/* ---- posix_text.c ---- */

void text_init(void);
bool text_is_copy(uintptr_t ip); /* in memory of plat_exec_alloc() */
/* text_extent - from the program to the last of what is executable near it.
 * @text: where code begins in it
 */
void text_extent(uintptr_t *start, uintptr_t *text, uintptr_t *end);

/* ---- posix_pads.c ---- */

/* pads_alias - where @len bytes of a landing page can be written; NULL: it is none. */
uint8_t *pads_alias(uintptr_t addr, size_t len);
/* pads_contains - is there a landing page at @addr? Context: any. */
bool pads_contains(uintptr_t addr);
/* pads_used - pages and frames that were not given back. */
size_t pads_used(void);

/* ---- posix_symbols.c ---- */

void symbols_init(void);
/* posix_take_marks - the engine hears of NOKPROBE. Return: as blacklist_add(). */
int posix_take_marks(void);

/* ---- posix_trap.c ---- */

void trap_init(void);
/* signal_take - let @handler have @sig, on the trap stack, all others
 * blocked but, unless it is @nmi itself, SIGNAL_NMI. Done without the C library: sanitizers
 * would keep some signals back until the thread blocks.
 */
void signal_take(int sig, void (*handler)(int, siginfo_t *, void *), bool nmi);
/* trap_ip - what the signal with @context has interrupted. */
uintptr_t trap_ip(const void *context);

/* ---- posix_threads.c ---- */

#define THREADS_MAX 16
#define TRAP_STACK_LEN ((size_t)256 << 10)
#define SIGNAL_QUIESCE SIGUSR2
#define SIGNAL_STOP SIGUSR1
#define SIGNAL_NMI SIGPROF

/* One row for each thread that was ever entered; areas stay when their thread leaves. GS
 * points at them, as in the kernel: the code that jumps call is the same.
 */
struct posix_thread {
    struct percpu *cpu; /* behind it, as in the kernel, the engine's part and counters */
    uintptr_t stack;    /* lowest byte of where traps run */
    int tid;            /* 0: free */
    _Atomic unsigned seen; /* number of the last plat_quiesce() it was outside for */
    uintptr_t top;         /* of the thread's stack */
    size_t len;
    _Atomic unsigned returning; /* levels of kretprobe_return() */
    _Atomic bool stopped;       /* it stands still */
    uintptr_t stopped_ip;       /* where */
};

extern __thread struct posix_thread *posix_self;

void threads_init(void);

static inline struct probe_cpu *thread_area(const struct posix_thread *t)
{
    return percpu_room(t->cpu);
}

/* ---- posix_shadow.c ---- */

/* shadow_enter - of the calling thread, with its row. shadow_leave - when it is no longer in
 * there, and without the lock of the rows: it takes PLAT_PROBES.
 */
void shadow_enter(struct posix_thread *t);
void shadow_leave(struct shadow *shadow);
/* posix_thread_each - call @fn for each thread that is entered; none comes or goes. */
void posix_thread_each(void (*fn)(struct posix_thread *t, void *arg), void *arg);
/* trap_is_of_return - is @regs the image of a return, and not of a trap? */
bool trap_is_of_return(const struct pt_regs *regs);

/* ---- for the thread sanitizer ---- */

/* The port is not built under it: its signal handlers may interrupt the sanitizer itself.
 * What plat_quiesce() promises is told to it here: it comes behind the end of every hit.
 * And a thread that has come by a jump finds what was written before it.
 */
extern char hits_ended, text_written;
#ifdef POSIX_TSAN
void __tsan_acquire(void *token);
void __tsan_release(void *token);
#define SANITIZER_ACQUIRE(token) __tsan_acquire(token)
#define SANITIZER_RELEASE(token) __tsan_release(token)
#else
#define SANITIZER_ACQUIRE(token) ((void)0)
#define SANITIZER_RELEASE(token) ((void)0)
#endif
