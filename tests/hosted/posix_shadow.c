/* posix_shadow.c - implements the shadows of the threads' stacks, and the functions that
 * the trampoline calls.
 *
 * The trampoline handles a return without a signal handler. So posix_thread.returning
 * tells a wait for quiescence that the thread is still inside.
 */
#define _GNU_SOURCE
#include "probes/returns/platform_returns.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"

#include "kernel/base/err.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/shadow.h"

#include <pthread.h>
#include <stdlib.h>

static bool wanted, data_wanted; /* each thread gets a shadow, with data [PLAT_PROBES] */

/* ---- shadows ---- */

static int give(struct posix_thread *t)
{
    struct shadow *shadow = t->cpu->thread_probe;

    if (!shadow) {
        shadow = shadow_new(t->top, t->len);
        __atomic_store_n(&t->cpu->thread_probe, shadow, __ATOMIC_RELEASE);
    }
    if (!shadow)
        return -ENOMEM;
    return data_wanted ? shadow_add_data(shadow) : 0;
}

void shadow_enter(struct posix_thread *t)
{
    pthread_attr_t attr;
    void *base;

    if (pthread_getattr_np(pthread_self(), &attr) ||
        pthread_attr_getstack(&attr, &base, &t->len))
        abort();
    pthread_attr_destroy(&attr);
    t->top = (uintptr_t)base + t->len;
    plat_lock(PLAT_PROBES);
    if (wanted && give(t))
        abort();
    plat_unlock(PLAT_PROBES);
}

void shadow_leave(struct shadow *shadow)
{
    if (shadow)
        shadow_unwind(shadow, 0);
    shadow_free(shadow);
}

static void give_to_each(struct posix_thread *t, void *arg)
{
    int *err = arg;

    *err = give(t) ? -ENOMEM : *err;
}

int plat_shadow_make(bool with_data)
{
    int err = 0;

    wanted = true;
    data_wanted |= with_data;
    posix_thread_each(give_to_each, &err);
    return err;
}

struct visit {
    void (*fn)(struct shadow *shadow, void *arg);
    void *arg;
};

static void visit_thread(struct posix_thread *t, void *arg)
{
    const struct visit *visit = arg;

    if (t->cpu->thread_probe)
        visit->fn(t->cpu->thread_probe, visit->arg);
}

void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg)
{
    struct visit visit = { fn, arg };

    posix_thread_each(visit_thread, &visit);
}

const struct shadow *plat_shadow_of(uintptr_t at)
{
    const struct shadow *s = posix_self ? posix_self->cpu->thread_probe : NULL;

    return s && shadow_covers(s, at) ? s : NULL;
}

bool plat_switches_stack(uintptr_t addr UNUSED)
{
    return false;
}

/* ---- returns ---- */

void posix_return(struct pt_regs *regs);
void posix_return(struct pt_regs *regs)
{
    posix_self->returning++;
    SANITIZER_ACQUIRE(&text_written);
    kretprobe_return(regs, plat_this_cpu());
    SANITIZER_RELEASE(&hits_ended);
    posix_self->returning--;
}
NOKPROBE(posix_return);

void posix_return_resume(struct pt_regs *regs);
void posix_return_resume(struct pt_regs *regs)
{
    kprobe_resume(regs, plat_this_cpu());
    SANITIZER_RELEASE(&hits_ended);
    posix_self->returning--;
}
NOKPROBE(posix_return_resume);

bool trap_is_of_return(const struct pt_regs *regs)
{
    return (uintptr_t)regs - posix_self->stack >= TRAP_STACK_LEN;
}
