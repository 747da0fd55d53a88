/* posix_parts.h - what the files of the port know of each other. */
#pragma once

#include "probes/life.h"

#include <signal.h>

/* ---- posix_text.c ---- */

void text_init(void);
bool text_is_copy(uintptr_t ip); /* in memory of plat_exec_alloc() */

/* ---- posix_symbols.c ---- */

void symbols_init(void);

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
#define SIGNAL_NMI SIGPROF

/* One row for each thread that was ever entered; areas stay when their thread leaves. */
struct posix_thread {
    struct probe_cpu area;
    uintptr_t stack;       /* lowest byte of where traps run */
    int tid;               /* 0: nobody's */
    _Atomic unsigned seen; /* number of the last plat_quiesce() it was outside for */
    unsigned nmi_depth;
};

extern __thread struct posix_thread *posix_self;

void threads_init(void);

/* ---- for the thread sanitizer ---- */

/* The port is not built under it: its signal handlers may interrupt the sanitizer itself.
 * What plat_quiesce() promises is told to it here: it comes behind the end of every hit.
 */
extern char hits_ended;
#ifdef POSIX_TSAN
void __tsan_acquire(void *token);
void __tsan_release(void *token);
#define SANITIZER_ACQUIRE(token) __tsan_acquire(token)
#define SANITIZER_RELEASE(token) __tsan_release(token)
#else
#define SANITIZER_ACQUIRE(token) ((void)0)
#define SANITIZER_RELEASE(token) ((void)0)
#endif
