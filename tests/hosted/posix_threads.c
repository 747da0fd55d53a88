/* posix_threads.c - threads in the place of CPUs: their areas, synchronising all of them,
 * waiting until each has been outside.
 */
#define _GNU_SOURCE
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GUARD_LEN ((size_t)4096)

__thread struct posix_thread *posix_self;

static struct posix_thread threads[THREADS_MAX];
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER; /* rows come and go */
static _Atomic unsigned epoch; /* number of the last plat_quiesce() */

/* ---- synchronising ---- */

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Each thread of this process that runs has executed a serialising instruction on return;
 * one that does not run executes one before it runs again.
 */
void plat_sync_cores(void)
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE))
        plat_bug("membarrier", 0);
}

/* ---- quiescence ---- */

/* A signal comes only when no trap handler runs, since these block it: what it interrupts is
 * the program, in a copy or not.
 */
static void on_quiesce(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    if (posix_self && !text_is_copy(trap_ip(context)))
        atomic_store(&posix_self->seen, atomic_load(&epoch));
}

/* has_been_outside - else it is asked, once more. */
static bool has_been_outside(struct posix_thread *t, unsigned wanted)
{
    if (!t->tid || t == posix_self || atomic_load(&t->seen) == wanted)
        return true;
    syscall(SYS_tgkill, getpid(), t->tid, SIGNAL_QUIESCE);
    return false;
}

void plat_quiesce(void)
{
    const struct timespec pause = { 0, 50000 };
    bool done = false;
    unsigned wanted;

    pthread_mutex_lock(&threads_lock);
    wanted = atomic_fetch_add(&epoch, 1) + 1;
    while (!done) {
        done = true;
        for (size_t i = 0; i < THREADS_MAX; i++)
            done &= has_been_outside(&threads[i], wanted);
        if (!done)
            nanosleep(&pause, NULL);
    }
    pthread_mutex_unlock(&threads_lock);
    SANITIZER_ACQUIRE(&hits_ended);
}

/* ---- areas ---- */

static void row_init(struct posix_thread *t)
{
    uint8_t *p = mmap(NULL, TRAP_STACK_LEN + GUARD_LEN, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED ||
        mprotect(p + GUARD_LEN, TRAP_STACK_LEN, PROT_READ | PROT_WRITE))
        abort();
    t->stack = (uintptr_t)p + GUARD_LEN;
    t->area.plat = (struct plat_cpu){
        .nmi_depth = &t->nmi_depth,
        .stack_base = &t->stack,
        .nmi_stack_base = t->stack, /* an NMI runs on top of what it has interrupted */
    };
}

static struct posix_thread *row_take(void)
{
    struct posix_thread *t = threads;

    pthread_mutex_lock(&threads_lock);
    while (t < threads + THREADS_MAX && t->tid)
        t++;
    if (t == threads + THREADS_MAX)
        abort();
    if (!t->stack)
        row_init(t);
    t->tid = (int)syscall(SYS_gettid);
    atomic_store(&t->seen, atomic_load(&epoch));
    pthread_mutex_unlock(&threads_lock);
    return t;
}

void posix_thread_enter(void)
{
    stack_t stack = { .ss_size = TRAP_STACK_LEN };
    struct posix_thread *t = row_take();

    stack.ss_sp = (void *)t->stack;
    if (sigaltstack(&stack, NULL))
        abort();
    posix_self = t;
}

void posix_thread_leave(void)
{
    const stack_t none = { .ss_flags = SS_DISABLE };
    struct posix_thread *t = posix_self;

    posix_self = NULL;
    sigaltstack(&none, NULL);
    pthread_mutex_lock(&threads_lock);
    t->tid = 0;
    pthread_mutex_unlock(&threads_lock);
}

static void skip(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    exit(0);
}

void threads_init(void)
{
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE))
        skip("this kernel cannot synchronise cores for us");
    signal_take(SIGNAL_QUIESCE, on_quiesce, false);
}

unsigned plat_cpu_count(void)
{
    return THREADS_MAX;
}

struct probe_cpu *plat_probe_cpu(unsigned cpu)
{
    return &threads[cpu].area;
}

struct probe_cpu *plat_this_cpu(void)
{
    return posix_self ? &posix_self->area : NULL;
}
NOKPROBE(plat_this_cpu);
