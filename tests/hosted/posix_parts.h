/* posix_parts.h - declares what the files of the port use of each other. */
#pragma once

#include "kernel/cpu/percpu.h"
#include "probes/core/life.h"

#include <signal.h>

/* ---- posix_text.c ---- */

void text_init(void);
bool text_is_copy(uintptr_t ip); /* is @ip in memory of plat_exec_alloc()? */
/* text_extent - return the range [*@start, *@end) of the program and the executable
 * memory near it.
 * @text: receives the address at which code begins in the range
 */
void text_extent(uintptr_t *start, uintptr_t *text, uintptr_t *end);

/* ---- posix_pads.c ---- */

/* pads_alias - return the address at which @len bytes of the landing page at @addr can be
 * written; NULL: there is no landing page.
 */
uint8_t *pads_alias(uintptr_t addr, size_t len);
/* pads_contains - is there a landing page at @addr? Context: any. */
bool pads_contains(uintptr_t addr);
/* pads_used - return the number of pages and frames that are not given back yet. */
size_t pads_used(void);

/* ---- posix_symbols.c ---- */

void symbols_init(void);
/* posix_take_marks - give the marks of NOKPROBE to the engine. Return: as
 * blacklist_add().
 */
int posix_take_marks(void);

/* ---- posix_trap.c ---- */

void trap_init(void);
/* signal_take - let @handler handle @sig on the trap stack. Meanwhile all signals are
 * blocked, except for those that an instruction raises, and SIGNAL_NMI unless @nmi. This
 * is a direct system call: with the C library, sanitizers would delay some signals until
 * the thread blocks.
 * @nmi: @sig stands for an NMI
 */
void signal_take(int sig, void (*handler)(int, siginfo_t *, void *), bool nmi);
/* trap_ip - return the ip that the signal with @context has interrupted. */
uintptr_t trap_ip(const void *context);

/* ---- posix_threads.c ---- */

#define THREADS_MAX 16
#define TRAP_STACK_LEN ((size_t)256 << 10)
#define SIGNAL_QUIESCE SIGUSR2
#define SIGNAL_STOP SIGUSR1
#define SIGNAL_NMI SIGPROF

/* A row is for one thread at a time. Its area stays when the thread leaves. GS of the
 * thread points at the area, as in the kernel, because detours call the same code as in
 * the kernel.
 */
struct posix_thread {
    struct percpu *cpu; /* behind it, as in the kernel, the engine's part and counters */
    uintptr_t stack;    /* lowest byte of the trap stack */
    int tid;            /* 0: the row is free */
    _Atomic unsigned seen; /* number of the last plat_quiesce() that saw it outside */
    uintptr_t top;         /* of the thread's own stack */
    size_t len;
    _Atomic unsigned returning; /* how deep kretprobe_return() is nested */
    _Atomic bool stopped;       /* the thread waits in on_stop() */
    uintptr_t stopped_ip;       /* the ip that on_stop() has interrupted */
};

extern __thread struct posix_thread *posix_self;

void threads_init(void);

static inline struct probe_cpu *thread_area(const struct posix_thread *t)
{
    return percpu_room(t->cpu);
}

/* ---- posix_shadow.c ---- */

/* shadow_enter - give the calling thread a shadow, if one is wanted. @t: its row
 * Locks: takes PLAT_PROBES; the lock of the rows must not be held.
 * shadow_leave - free the shadow of the calling thread, when it has left its row.
 * Locks: PLAT_PROBES held since before then.
 */
void shadow_enter(struct posix_thread *t);
void shadow_leave(struct shadow *shadow);
/* posix_thread_each - call @fn for each thread that has entered. Meanwhile no thread
 * enters or leaves.
 */
void posix_thread_each(void (*fn)(struct posix_thread *t, void *arg), void *arg);
/* trap_is_of_return - is @regs the image of a return, and not of a trap? */
bool trap_is_of_return(const struct pt_regs *regs);

/* ---- for the thread sanitizer ---- */

/* The port is not compiled for TSan, because its signal handlers may interrupt the
 * sanitizer. So TSan is told these orders by hand: plat_quiesce() returns after the end
 * of every earlier hit; and a thread that has come by a jump sees the data that were
 * written before the jump.
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
