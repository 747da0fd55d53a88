/* posix_threads.c - lets threads stand for CPUs: their areas; functions that synchronise
 * all threads, stop them, and wait until each has been outside of the engine's code.
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
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER; /* of the rows in use */
static _Atomic uint64_t syncs, synced_ns;
static _Atomic unsigned epoch; /* number of the last plat_quiesce() */

/* plat_optimize_soon - nothing: the tests call optimize_run() themselves. */
void plat_optimize_soon(void)
{
}

/* ---- synchronising ---- */

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* plat_sync_cores - on return each running thread of this process has executed a
 * serialising instruction. A thread that is not running executes one before it runs
 * again.
 */
void plat_sync_cores(void)
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE))
        plat_bug("membarrier", 0);
    syncs++;
    synced_ns = plat_clock_ns();
    SANITIZER_RELEASE(&text_written);
}

/* plat_sync_count - a membarrier() synchronises all threads, so one count is enough. */
uint64_t plat_sync_count(unsigned cpu UNUSED)
{
    return syncs;
}

uint64_t plat_sync_ns(unsigned cpu UNUSED)
{
    return synced_ns;
}

/* ---- stopping ---- */

static _Atomic bool released;

/* on_stop - stop the calling thread. As in is_inside(), the signal has interrupted no
 * trap handler.
 */
static void on_stop(int sig UNUSED, siginfo_t *info UNUSED, void *context)
{
    if (!posix_self)
        return;
    posix_self->stopped_ip = trap_ip(context);
    atomic_store(&posix_self->stopped, true);
    while (!atomic_load(&released))
        sched_yield();
    atomic_store(&posix_self->stopped, false);
}

/* other - return the thread in row @i; NULL if there is none, or if it is the calling
 * one.
 */
static struct posix_thread *other(size_t i)
{
    return threads[i].tid && &threads[i] != posix_self ? &threads[i] : NULL;
}

/* wait_others - wait until all other threads have stopped (@stopped), or gone on. */
static void wait_others(bool stopped)
{
    for (size_t i = 0; i < THREADS_MAX; i++)
        while (other(i) && atomic_load(&other(i)->stopped) != stopped)
            sched_yield();
}

/* plat_stop_machine - a stopped thread may hold a lock of the C library. So @fn may use
 * only functions of it that take no lock, or that it has used before.
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

/* is_where_text_changes - is @ip inside instructions that are about to be replaced? The
 * engine is asked only if @ip is in the text. Elsewhere the signal may have interrupted a
 * sanitizer, and the engine's functions, as they are compiled, would enter the sanitizer
 * a second time.
 */
static bool is_where_text_changes(uintptr_t ip)
{
    return plat_text_contains(ip, 1) && (region_is_watched(ip) || xmc_is_inside(ip));
}

/* is_inside - is the thread @t inside memory that the engine may free? Trap handlers
 * block the signal, so it has interrupted the program. The program may be in a handler
 * that a jump has called, with preemption off; in the code around such a handler; on a
 * pad; in a copy; or outside.
 */
static bool is_inside(const struct posix_thread *t, uintptr_t ip)
{
    return t->returning || t->cpu->preempt_count || thread_area(t)->depth ||
           plat_is_detour(ip) || text_is_copy(ip) || pads_contains(ip) ||
           is_where_text_changes(ip);
}

static void on_quiesce(int sig UNUSED, siginfo_t *info UNUSED, void *context)
{
    if (posix_self && !is_inside(posix_self, trap_ip(context)))
        atomic_store(&posix_self->seen, atomic_load(&epoch));
}

/* has_been_outside - has the thread @t been outside since quiescence number @wanted
 * began? If not, send it the signal, by which it looks again.
 */
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

/* One area for each row, also for rows without a thread. */
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

/* A detour compares the stack pointer with STACK_BASE, to find out whether the stack has
 * room for handlers. The program may be on any stack, so with 0 there always is room.
 * With sanitizers there never is: so each hit goes through kprobe_jump_handler(), which
 * sanitizers need.
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
        .nmi_stack_base = t->stack, /* NMIs run on the stack of traps */
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
    t->cpu->tid = t->tid;
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
    posix_self = t; /* from here on the thread answers signals, even while it waits */
    shadow_enter(t);
}

void posix_thread_leave(void)
{
    const stack_t none = { .ss_flags = SS_DISABLE };
    struct posix_thread *t = posix_self;
    struct shadow *shadow;

    plat_lock(PLAT_PROBES);            /* no walk over the shadows until it is freed */
    pthread_mutex_lock(&threads_lock); /* its holder may wait for an answer until here */
    posix_self = NULL;
    sigaltstack(&none, NULL);
    shadow = t->cpu->thread_probe;
    t->cpu->thread_probe = NULL;
    t->tid = 0;
    pthread_mutex_unlock(&threads_lock);
    shadow_leave(shadow);
    plat_unlock(PLAT_PROBES);
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
