/* misbehave.c - what handlers do: things that a handler must not do, and things that it
 * may do but seldom does.
 *
 * A handler chooses one of the classes of its probe. Things that no kernel could survive
 * are left out: in an NMI no handler takes a lock or enables interrupts.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/spinlock.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "tests/stress/stress.h"

#include <string.h>

struct stress_faults stress_faults;

/* ---- faults ---- */

#define DEPTH_MAX 5

static NOINLINE void fault_below(unsigned depth, unsigned kind, uint64_t flags)
{
    if (depth)
        fault_below(depth - 1, kind, flags);
    else
        stress_fault(kind, flags);
    barrier(); /* prevents a tail call */
}

/* fault - cause a fault. It returns only if a fault handler deals with the fault. */
static void fault(uint64_t chance, uint64_t flags)
{
    stress_count(&stress_faults.begun);
    fault_below((unsigned)(chance % (DEPTH_MAX + 1)),
                (unsigned)(chance / 8 % STRESS_FAULT_KINDS), flags);
    stress_count(&stress_faults.dealt);
}

static void fault_plainly(uint64_t chance)
{
    fault(chance, 0);
}

static void fault_called(uint64_t chance)
{
    stress_count(&stress_faults.begun);
    stress_call_bad(chance);
}

static void fault_preempt(uint64_t chance)
{
    unsigned times = (unsigned)(1 + chance / 64 % 3);

    for (unsigned i = 0; i < times; i++)
        preempt_disable();
    fault(chance, 0);
    for (unsigned i = 0; i < times; i++)
        preempt_enable_no_resched();
}

/* Each lock is taken only once, because a handler that is given up leaves it held. */
#define LOCKS 256
static struct spinlock locks[LOCKS];
static bool left[LOCKS];
static unsigned locks_taken;

static struct spinlock *lock_fresh(void)
{
    unsigned i = __atomic_fetch_add(&locks_taken, 1, __ATOMIC_RELAXED);

    if (i >= LOCKS)
        return NULL;
    WRITE_ONCE(left[i], true);
    return &locks[i];
}

static void lock_done(struct spinlock *lock)
{
    WRITE_ONCE(left[lock - locks], false);
}

static void fault_lock(uint64_t chance)
{
    struct spinlock *lock = lock_fresh();

    if (!lock)
        return;
    spin_lock(lock);
    fault(chance, 0);
    lock_done(lock);
    spin_release(lock);
    preempt_enable_no_resched();
}

static void fault_irqlock(uint64_t chance)
{
    struct spinlock *lock = lock_fresh();
    unsigned long flags;

    if (!lock)
        return;
    spin_lock_irqsave(lock, &flags);
    fault(chance, 0);
    lock_done(lock);
    spin_release(lock);
    irq_restore(flags);
    preempt_enable_no_resched();
}

static void fault_irqs(uint64_t chance)
{
    bool were_on = irqs_enabled();

    if (were_on)
        cli();
    else if (cpu_context() == CTX_THREAD)
        sti();
    fault(chance, 0);
    if (were_on)
        sti();
    else
        cli();
}

static void fault_flags(uint64_t chance)
{
    fault(chance, chance & 64 ? FLAGS_DF : FLAGS_AC);
}

/* ---- sleep ---- */

static struct mutex some_mutex = MUTEX_INIT(some_mutex);
static struct wait_queue never_woken = WAIT_QUEUE_INIT(never_woken);

static void go_to_sleep(uint64_t chance)
{
    const volatile bool never = false;

    stress_count(&stress_faults.begun);
    switch (chance % 4) {
    case 0:
        thread_yield();
        break;
    case 1:
        thread_sleep_ns(1000000);
        break;
    case 2:
        mutex_lock(&some_mutex);
        break;
    default:
        wait_event(&never_woken, never);
    }
    stress_differs("a handler has slept, by way", "", chance % 4, 0);
}

/* ---- what is allowed ---- */

#define US UINT64_C(1000)

static void loop(uint64_t chance)
{
    clock_spin_ns((UINT64_C(10) << chance % 7) * US); /* up to 640 us */
}

static void enable_interrupts(uint64_t chance)
{
    unsigned long flags = read_flags();

    sti();
    clock_spin_ns((UINT64_C(10) << chance % 6) * US);
    if (!(flags & FLAGS_IF))
        cli();
}

static void call(uint64_t chance)
{
    stress_call((enum stress_target)(chance % TARGETS_ANYWHERE),
                chance / 64 % STRESS_INPUTS);
}

static void refused(const char *what, int err)
{
    if (err != -EDEADLK)
        stress_differs("in a handler, the answer of", what, (uint64_t)(int64_t)err,
                       (uint64_t)(int64_t)-EDEADLK);
}

static void change_probes(uint64_t chance)
{
    static struct kprobe spare = { .addr = (uintptr_t)stress_idle };
    static struct kretprobe spare_return = { .kp.addr = (uintptr_t)stress_idle };

    switch (chance % 6) {
    case 0:
        refused("register_kprobe", register_kprobe(&spare));
        break;
    case 1:
        refused("unregister_kprobe", unregister_kprobe(&spare));
        break;
    case 2:
        refused("enable_kprobe", enable_kprobe(&spare));
        break;
    case 3:
        refused("register_kretprobe", register_kretprobe(&spare_return));
        break;
    case 4:
        refused("kprobes_switch", kprobes_switch(false));
        break;
    default:
        refused("optimize_switch", optimize_switch(false));
    }
}

void stress_set_flags(uint64_t flags);

/* leave - change state of the CPU, and leave it so. The engine must undo it at the end of
 * the hit.
 */
static void leave(uint64_t chance)
{
    switch (chance % 4) {
    case 0:
        preempt_disable();
        break;
    case 1:
        if (!irqs_enabled() && cpu_context() == CTX_THREAD)
            sti();
        else
            cli();
        break;
    case 2:
        stress_set_flags(FLAGS_AC);
        break;
    default:
        stress_set_flags(FLAGS_DF);
    }
}

static void send_nmi(uint64_t chance UNUSED)
{
    smp_send_nmi(cpu_id());
}

static void switch_soon(uint64_t chance UNUSED)
{
    WRITE_ONCE(this_cpu()->need_resched, true);
    smp_send_reschedule(cpu_id());
}

/* ---- classes ---- */

#define IN(context) BIT(CTX_##context)
#define ANYWHERE (IN(THREAD) | IN(IRQ) | IN(NMI))

static const struct {
    const char *name;
    void (*fn)(uint64_t chance); /* NULL: the handler does it itself, see slots.c */
    unsigned where;
} classes[STRESS_CLASSES] = {
    [STRESS_FAULT] = { "fault", fault_plainly, ANYWHERE },
    [STRESS_FAULT_CALLED] = { "called", fault_called, ANYWHERE },
    [STRESS_FAULT_PREEMPT] = { "preempt", fault_preempt, ANYWHERE },
    [STRESS_FAULT_LOCK] = { "lock", fault_lock, IN(THREAD) | IN(IRQ) },
    [STRESS_FAULT_IRQLOCK] = { "irqlock", fault_irqlock, IN(THREAD) | IN(IRQ) },
    [STRESS_FAULT_IRQS] = { "irqs", fault_irqs, ANYWHERE },
    [STRESS_FAULT_FLAGS] = { "flags", fault_flags, ANYWHERE },
    [STRESS_SLEEP] = { "sleep", go_to_sleep, ANYWHERE },
    [STRESS_LOOP] = { "loop", loop, ANYWHERE },
    [STRESS_STI] = { "sti", enable_interrupts, IN(THREAD) },
    [STRESS_CALL] = { "call", call, ANYWHERE },
    [STRESS_REGISTER] = { "register", change_probes, ANYWHERE },
    [STRESS_REDIRECT] = { "redirect", NULL, 0 },
    [STRESS_IMAGE] = { "image", NULL, 0 },
    [STRESS_LEFT] = { "left", leave, ANYWHERE },
    [STRESS_NMI] = { "nmi", send_nmi, IN(THREAD) | IN(IRQ) },
    [STRESS_RESCHED] = { "resched", switch_soon, IN(THREAD) | IN(IRQ) },
};

const char *stress_class_name(enum stress_class class)
{
    return classes[class].name;
}

uint32_t stress_classes_of(const char *list)
{
    uint32_t mask = 0;

    while (*list) {
        size_t len = strcspn(list, ","), c = 0;

        while (c < STRESS_CLASSES &&
               (strlen(classes[c].name) != len || memcmp(classes[c].name, list, len)))
            c++;
        if (c == STRESS_CLASSES)
            return 0;
        mask |= (uint32_t)BIT(c);
        list += len + (list[len] == ',');
    }
    return mask;
}

/* one_of - return the number of a random bit of @mask, which is not 0. */
static unsigned one_of(uint32_t mask, uint64_t chance)
{
    unsigned i = (unsigned)(chance % STRESS_CLASSES);

    while (!(mask & BIT(i)))
        i = (i + 1) % STRESS_CLASSES;
    return i;
}

void stress_misbehave(uint32_t mask, uint64_t chance)
{
    unsigned class;

    if (!mask)
        return;
    class = one_of(mask, chance >> 8);
    if (classes[class].where & BIT(cpu_context()))
        classes[class].fn(chance >> 16);
}

/* ---- before and after a round ---- */

void stress_misbehave_reset(void)
{
    stress_faults = (struct stress_faults){ 0 };
    memset(locks, 0, sizeof(locks));
    memset(left, 0, sizeof(left));
    locks_taken = 0;
}

void stress_locks_check(void)
{
    for (size_t i = 0; i < LOCKS; i++) {
        if ((locks[i].holder != 0) != left[i])
            stress_differs("a lock that is held by", "", locks[i].holder, left[i]);
        stress_faults.locks += left[i];
        if (left[i] && !locks[i].held.left_by)
            stress_differs("a lock that was left is not named", "", i, 0);
    }
    if (!mutex_trylock(&some_mutex))
        stress_differs("the mutex is held", "", 1, 0);
    else
        mutex_unlock(&some_mutex);
    if (!list_empty(&never_woken.waiters))
        stress_differs("a thread waits", "", 1, 0);
}
