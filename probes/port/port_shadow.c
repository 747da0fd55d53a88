/* port_shadow.c - the part of platform_returns.h about stacks: makes the shadows. Each
 * thread has its shadow in thread.probe; each CPU has a shadow for its NMI stack.
 *
 * There are no shadows until the first return probe is registered. From then on a new
 * thread gets its shadow when it is created. Interrupts run on the stack of the thread that
 * they interrupt, and use its shadow.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/module/module.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/thread/thread.h"
#include "probes/core/life.h"
#include "probes/port/port.h"
#include "probes/port/port_held.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"

extern const uintptr_t noretprobe_start[], noretprobe_end[];

static struct mutex giving =
    MUTEX_INIT(giving);          /* held while a thread.probe or its data is made */
static bool wanted, data_wanted; /* PLAT_PROBES to write */

/* ---- for hits and backtraces ---- */

struct shadow_wanted {
    uintptr_t at;
    const struct shadow *found;
};

static bool is_not_on(const struct shadow *s, struct shadow_wanted *w)
{
    if (s && shadow_covers(s, w->at))
        w->found = s;
    return !w->found;
}

static bool is_not_of(struct thread *t, void *wanted)
{
    return is_not_on(t->probe, wanted);
}

const struct shadow *plat_shadow_of(uintptr_t at)
{
    struct shadow_wanted w = { .at = at };

    for (unsigned id = 0; id < cpu_count() && !w.found; id++) {
        const struct percpu *p = percpu_of(id);

        if (p && p->probe && READ_ONCE(p->current) &&
            is_not_on(READ_ONCE(plat_probe_cpu(id)->plat.nmi_shadow), &w))
            is_not_on(READ_ONCE(p->current)->probe, &w);
    }
    return w.found;
}

const struct shadow *port_shadow_of(uintptr_t at)
{
    struct shadow_wanted w = { .at = at, .found = plat_shadow_of(at) };

    if (!w.found && (cpu_context() == CTX_HELD || stop_machine_running()))
        port_threads(is_not_of, &w);
    return w.found;
}

bool plat_switches_stack(uintptr_t addr)
{
    for (const uintptr_t *fn = noretprobe_start; fn < noretprobe_end; fn++)
        if (*fn == addr)
            return true;
    return module_is_noretprobe(addr);
}

/* ---- make shadows ---- */

static int give_locked(struct thread *t)
{
    struct shadow *s = t->probe;

    if (!s) {
        s = shadow_new((uintptr_t)t->stack_top, t->stack_len);
        if (!s)
            return -ENOMEM;
        __atomic_store_n(&t->probe, s, __ATOMIC_RELEASE);
    }
    return READ_ONCE(data_wanted) ? shadow_add_data(s) : 0;
}

static int give_shadow(struct thread *t)
{
    int err;

    mutex_lock(&giving);
    err = give_locked(t);
    mutex_unlock(&giving);
    return err;
}

static void give_to_each(struct thread *t, void *arg)
{
    int *err = arg;

    *err = give_shadow(t) ? -ENOMEM : *err;
}

static int give_cpu(unsigned id)
{
    struct plat_cpu *cpu = &plat_probe_cpu(id)->plat;
    struct shadow *s = cpu->nmi_shadow;

    if (!s) {
        s = shadow_new(cpu->nmi_stack_base + NMI_STACK_LEN, NMI_STACK_LEN);
        if (!s)
            return -ENOMEM;
        __atomic_store_n(&cpu->nmi_shadow, s, __ATOMIC_RELEASE);
    }
    return data_wanted ? shadow_add_data(s) : 0;
}

/* Each CPU keeps a pointer to the shadow of its current thread. The CPU may have read the
 * pointer before the shadow was made, so this function reads it again.
 */
static void look_again(void *unused)
{
    (void)unused;
    this_cpu()->thread_probe = thread_current()->probe;
}

/* No new thread is missed. This function first sets `wanted`, and then walks the list of
 * threads. kernel_clone() first puts the new thread into the list, and then looks at
 * `wanted`. So a thread that is created meanwhile is found in the list, or its creator sees
 * `wanted`.
 */
int plat_shadow_make(bool with_data)
{
    bool before = wanted, data_before = data_wanted;
    int err = 0;

    if (before && data_before >= with_data)
        return 0;
    __atomic_store_n(&data_wanted, data_wanted | with_data, __ATOMIC_SEQ_CST);
    __atomic_store_n(&wanted, true, __ATOMIC_SEQ_CST);
    for (unsigned id = 0; id < cpu_count() && !err; id++)
        err = give_cpu(id);
    if (!err)
        thread_for_each(give_to_each, &err);
    smp_call_all(look_again, NULL);
    if (err) {
        __atomic_store_n(&wanted, before, __ATOMIC_SEQ_CST);
        __atomic_store_n(&data_wanted, data_before, __ATOMIC_SEQ_CST);
    }
    return err;
}

/* If there is no memory for the shadow, the thread runs without one, and its calls of
 * probed functions are counted as missed.
 */
static void thread_born(struct thread *t)
{
    if (READ_ONCE(wanted))
        give_shadow(t);
}

static void thread_buried(struct thread *t, bool is_listed)
{
    struct shadow *s = t->probe;

    if (s && is_listed)
        shadow_unwind(s, 0);
    else
        shadow_free(s);
}

/* ---- a walk over all shadows ---- */

struct visit {
    void (*fn)(struct shadow *shadow, void *arg);
    void *arg;
};

static void visit_thread(struct thread *t, void *arg)
{
    const struct visit *visit = arg;
    struct shadow *s = __atomic_load_n(&t->probe, __ATOMIC_ACQUIRE);

    if (s)
        visit->fn(s, visit->arg);
}

void plat_shadow_for_each(void (*fn)(struct shadow *shadow, void *arg), void *arg)
{
    struct visit visit = { fn, arg };

    for (unsigned id = 0; id < cpu_count(); id++)
        if (plat_probe_cpu(id)->plat.nmi_shadow)
            fn(plat_probe_cpu(id)->plat.nmi_shadow, arg);
    thread_for_each(visit_thread, &visit);
}

INIT void port_shadow_init(void)
{
    thread_birth_hook = thread_born;
    thread_burial_hook = thread_buried;
}
