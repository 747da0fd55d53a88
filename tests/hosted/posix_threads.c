/* posix_threads.c - threads in the place of CPUs: their areas, synchronising all of them,
 * stopping them, waiting until each has been outside.
 */
#define _GNU_SOURCE
#include "probes/jump/platform_jump.h"
#include "probes/region/region.h"
#include "probes/xmc/xmc.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"

#include "kernel/base/err.h"

#include <asm/prctl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GUARD_LEN ((size_t)4096)
#define COUNTERS_MAX 16384
#define AREA_LEN (PERCPU_COUNTERS_OFF + COUNTERS_MAX * sizeof(uint64_t))

__thread struct posix_thread *posix_self;

static struct posix_thread threads[THREADS_MAX];
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER; /* rows come and go */
static _Atomic uint64_t syncs, synced_ns;
static _Atomic unsigned epoch; /* number of the last plat_quiesce() */

/* Programs of this port call optimize_run() when it suits them. */
void plat_optimize_soon(void)
{
}

/* ---- synchronising ---- */

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Each thread of this process that runs has executed a serialising instruction on return; a
 * thread that does not run executes one before it runs again.
 */
void plat_sync_cores(void)
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE))
        plat_bug("membarrier", 0);
    syncs++;
    synced_ns = plat_clock_ns();
    SANITIZER_RELEASE(&text_written);
}

/* All threads have been synchronised, or none. */
uint64_t plat_sync_count(unsigned cpu)
{
    (void)cpu;
    return syncs;
}

uint64_t plat_sync_ns(unsigned cpu)
{
    (void)cpu;
    return synced_ns;
}

/* ---- stopping ---- */

static _Atomic bool released;

/* As in quiescence, what is interrupted is the program. */
static void on_stop(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    if (!posix_self)
        return;
    posix_self->stopped_ip = trap_ip(context);
    atomic_store(&posix_self->stopped, true);
    while (!atomic_load(&released))
        sched_yield();
    atomic_store(&posix_self->stopped, false);
}

/* other - is there a thread in row @i, besides the calling one? */
static struct posix_thread *other(size_t i)
{
    return threads[i].tid && &threads[i] != posix_self ? &threads[i] : NULL;
}

/* wait_others - until all others have stopped, or gone on. */
static void wait_others(bool stopped)
{
    for (size_t i = 0; i < THREADS_MAX; i++)
        while (other(i) && atomic_load(&other(i)->stopped) != stopped)
            sched_yield();
}

/* What @fn needs of the C library it must have used before: a thread may have been stopped
 * that holds one of its locks.
 */
void plat_stop_machine(void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&threads_lock);
    atomic_store(&released, false);
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (other(i))
            syscall(SYS_tgkill, getpid(), other(i)->tid, SIGNAL_STOP);
    wait_others(true);
    fn(arg);
    atomic_store(&released, true);
    wait_others(false);
    pthread_mutex_unlock(&threads_lock);
}

uintptr_t plat_stopped_ip(unsigned cpu)
{
    return other(cpu) ? threads[cpu].stopped_ip : 0;
}

/* ---- quiescence ---- */

/* The engine is asked only about text: elsewhere a sanitizer may have been interrupted, which
 * its code, as it is compiled, would enter once more.
 */
static bool is_where_text_changes(uintptr_t ip)
{
    return plat_text_contains(ip, 1) && (region_is_watched(ip) || xmc_is_inside(ip));
}

/* A signal comes only when no trap handler runs, since these block it: what it interrupts is
 * the program. That can be in a handler that a jump has brought, where preemption is off; in
 * the code around such handlers; on a pad, in a copy; or outside.
 */
static bool is_inside(const struct posix_thread *t, uintptr_t ip)
{
    return t->returning || t->cpu->preempt_count || thread_area(t)->depth ||
           plat_is_detour(ip) || text_is_copy(ip) || pads_contains(ip) ||
           is_where_text_changes(ip);
}

static void on_quiesce(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    if (posix_self && !is_inside(posix_self, trap_ip(context)))
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

void posix_thread_each(void (*fn)(struct posix_thread *t, void *arg), void *arg)
{
    pthread_mutex_lock(&threads_lock);
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (threads[i].tid)
            fn(&threads[i], arg);
    pthread_mutex_unlock(&threads_lock);
}

/* ---- areas ---- */

/* Of each thread, whether it lives or not. */
static uint8_t areas[THREADS_MAX][AREA_LEN] ALIGNED(4096);

static uint64_t *counters_of(const struct posix_thread *t)
{
    return (uint64_t *)(areas[t - threads] + PERCPU_COUNTERS_OFF);
}

int plat_counters_map(size_t count)
{
    for (size_t i = 0; i < THREADS_MAX; i++)
        thread_area(&threads[i])->plat.counters = counters_of(&threads[i]);
    return count > COUNTERS_MAX ? -ENOMEM : 0;
}

/* How much is left of the program's own stack, where jumps bring handlers, is not known
 * here: it may be on any stack. If it were the last one that there is, each hit would be
 * looked at by kprobe_jump_handler(), which a sanitizer needs.
 */
#if defined(POSIX_ASAN) || defined(POSIX_TSAN)
#define STACK_BASE INTPTR_MAX
#else
#define STACK_BASE 0
#endif

static void row_init(struct posix_thread *t)
{
    uint8_t *p = mmap(NULL, TRAP_STACK_LEN + GUARD_LEN, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED ||
        mprotect(p + GUARD_LEN, TRAP_STACK_LEN, PROT_READ | PROT_WRITE))
        abort();
    t->stack = (uintptr_t)p + GUARD_LEN;
    t->cpu->self = t->cpu;
    t->cpu->probe = thread_area(t);
    t->cpu->stack_base = STACK_BASE;
    thread_area(t)->plat = (struct plat_cpu){
        .shadow = (struct shadow *const *)&t->cpu->thread_probe,
        .counters = counters_of(t),
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
    if (sigaltstack(&stack, NULL) || syscall(SYS_arch_prctl, ARCH_SET_GS, t->cpu))
        abort();
    posix_self = t; /* from here on it answers, whatever it waits for */
    shadow_enter(t);
}

void posix_thread_leave(void)
{
    const stack_t none = { .ss_flags = SS_DISABLE };
    struct posix_thread *t = posix_self;
    struct shadow *shadow;

    pthread_mutex_lock(&threads_lock); /* until here it answers the lock's holders */
    posix_self = NULL;
    sigaltstack(&none, NULL);
    shadow = t->cpu->thread_probe;
    t->cpu->thread_probe = NULL;
    t->tid = 0;
    pthread_mutex_unlock(&threads_lock);
    shadow_leave(shadow);
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
    for (size_t i = 0; i < THREADS_MAX; i++)
        threads[i].cpu = (struct percpu *)areas[i];
    signal_take(SIGNAL_QUIESCE, on_quiesce, false);
    signal_take(SIGNAL_STOP, on_stop, false);
}

unsigned plat_cpu_count(void)
{
    return THREADS_MAX;
}

struct probe_cpu *plat_probe_cpu(unsigned cpu)
{
    return thread_area(&threads[cpu]);
}

struct probe_cpu *plat_this_cpu(void)
{
    return posix_self ? thread_area(posix_self) : NULL;
}
NOKPROBE(plat_this_cpu);
