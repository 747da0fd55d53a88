/* port_posix.c - implements platform.h in an ordinary process: its start, and the
 * functions that are in no posix_*.c file.
 */
#define _GNU_SOURCE
#include "kernel/base/err.h"
#include "probes/core/insn_slot.h"
#include "probes/jump/optimize.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    pthread_mutex_t mutex;
    _Atomic pthread_t owner; /* 0: none */
} locks[] = { { .mutex = PTHREAD_MUTEX_INITIALIZER },
              { .mutex = PTHREAD_MUTEX_INITIALIZER } };

void plat_lock(enum plat_lock lock)
{
    if (lock == PLAT_PROBES && plat_lock_held(PLAT_TEXT))
        plat_bug("PLAT_PROBES comes before PLAT_TEXT", 0);
    pthread_mutex_lock(&locks[lock].mutex);
    locks[lock].owner = pthread_self();
}

void plat_unlock(enum plat_lock lock)
{
    locks[lock].owner = 0;
    pthread_mutex_unlock(&locks[lock].mutex);
}

bool plat_lock_held(enum plat_lock lock)
{
    return locks[lock].owner == pthread_self();
}

enum plat_context plat_context(void)
{
    if (posix_self && posix_self->cpu->nmi_depth)
        return PLAT_NMI;
    return posix_self && thread_area(posix_self)->depth ? PLAT_TRAP : PLAT_THREAD;
}

int plat_wait_check(const char *verb UNUSED)
{
    return plat_context() == PLAT_THREAD ? 0 : -EDEADLK;
}

/* plat_irq_save - nothing has to be switched off: a thread always has the same area, and
 * no other signal comes while a trap handler runs.
 */
unsigned long plat_irq_save(void)
{
    return 0;
}

void plat_irq_restore(unsigned long flags UNUSED)
{
}

uint64_t plat_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void plat_log(const char *fmt, ...)
{
    va_list args;

    printf("# ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

void plat_bug(const char *what, uintptr_t where)
{
    printf("Bail out! probes: %s (at 0x%lx)\n", what, where);
    abort();
}

void posix_init(void)
{
    optimize_set_method(OPTIMIZE_OFF); /* tests of jumps switch them on */
    static bool done;

    if (done)
        return;
    done = true;
    threads_init();
    symbols_init();
    text_init();
    trap_init();
    posix_thread_enter();
    if (insn_slot_init() || posix_take_marks())
        abort();
}

unsigned long posix_rounds(unsigned long usual, unsigned long when_long)
{
#if defined(POSIX_ASAN) || defined(POSIX_TSAN)
    when_long /= 10;
#endif
    return getenv("LONG") && when_long > usual ? when_long : usual;
}
