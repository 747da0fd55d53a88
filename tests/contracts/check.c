/* check.c - checks the contracts of functions at their entry: make CHECK=contracts.
 *
 * The code here runs in all contexts, also before a hit is entered: it takes no lock, and
 * what it calls on that way cannot carry a probe.
 */
#include "kernel/base/bits.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/panic.h"
#include "kernel/fs/vfs_node.h"
#include "kernel/memmap.h"
#include "kernel/sync/stop_machine.h"
#include "kernel/thread/sched.h"
#include "probes/core/platform.h"
#include "tests/contracts/contracts.h"

#include <stdio.h>

#define INTERRUPTS                                                                       \
    (BIT(CONTRACT_INTERRUPTS_ON) | BIT(CONTRACT_INTERRUPTS_OFF) |                        \
     BIT(CONTRACT_INTERRUPTS_ANY))

static bool booted, is_over;
/* By enum contract_lock. Most are static. mutex_held() could carry a probe. */
static const struct mutex *mutexes[CONTRACT_SCHED];

/* contract_places - the contexts that the CPU is in, as bits: there may be several. */
static ALWAYS_INLINE unsigned contract_places(const struct contract *rule)
{
    static const uint8_t of[] = { [CTX_IRQ] = BIT(CONTRACT_IRQ),
                                  [CTX_NMI] = BIT(CONTRACT_NMI),
                                  [CTX_HELD] = BIT(CONTRACT_HELD) };
    enum cpu_context context = cpu_context();
    unsigned places = of[context];
    bool hit = hit_is_active();

    /* By a jump, a CPU comes to a hit with the interrupts of the program. */
    if (preempt_is_off() || !irqs_enabled())
        places |= BIT(CONTRACT_TRAP);
    if (context == CTX_THREAD && !hit)
        places |= BIT(CONTRACT_THREAD);
    if ((context == CTX_THREAD && !booted) || !this_cpu()->online)
        places |= BIT(CONTRACT_BOOT);
    if (rule->asks_stopped && !irqs_enabled())
        places |= BIT(CONTRACT_STOPPED) * stop_machine_running();
    return places;
}

/* contract_state - the conditions that hold, as bits. */
static ALWAYS_INLINE unsigned contract_state(void)
{
    bool on = irqs_enabled(), stays = preempt_is_off() || !on;

    return BIT(on ? CONTRACT_INTERRUPTS_ON : CONTRACT_INTERRUPTS_OFF) |
           BIT(stays ? CONTRACT_PREEMPTION_OFF : CONTRACT_PREEMPTIBLE) |
           BIT(CONTRACT_ALL_ONLINE) | BIT(CONTRACT_ONE_CPU) |
           BIT(CONTRACT_INTERRUPTS_ANY) | BIT(CONTRACT_NO_HANDLER) * !hit_is_active();
}

static ALWAYS_INLINE bool contract_is_kept(const struct contract *rule, unsigned places,
                                           unsigned state)
{
    for (size_t i = 0; i < ARRAY_LEN(rule->alternatives) && rule->alternatives[i].in;
         i++) {
        unsigned in = places & rule->alternatives[i].in;
        unsigned when = rule->alternatives[i].when;

        /* A thread has interrupts on unless the block says otherwise. */
        if (in == BIT(CONTRACT_THREAD) && !(when & INTERRUPTS))
            when |= BIT(CONTRACT_INTERRUPTS_ON);
        if (in && !(when & ~state))
            return true;
    }
    return false;
}

static ALWAYS_INLINE bool contract_has(enum contract_lock lock)
{
    if (lock == CONTRACT_SCHED)
        return spin_held(&sched_lock);
    return READ_ONCE(mutexes[lock]->owner) == percpu_current();
}

/* contract_lock_is_wrong - tell whether a lock is not held that must be, or the reverse.
 * While a debugger holds the machine, or at boot, no lock is needed.
 */
static ALWAYS_INLINE bool contract_lock_is_wrong(const struct contract *rule)
{
    if (!booted || cpu_context() == CTX_HELD)
        return false;
    for (enum contract_lock lock = 0; lock <= CONTRACT_SCHED; lock++)
        if (((rule->held | rule->free) & BIT(lock)) &&
            contract_has(lock) != !!(rule->held & BIT(lock)))
            return true;
    return rule->waits && (preempt_is_off() || !irqs_enabled());
}

/* ---- the order of mutexes ---- */

#define ORDER_MAX 64

/* The image's mutexes that were taken so far. Mutexes of modules and of the heap come and go,
 * so they have no place in the order.
 */
static struct ordered {
    const struct mutex *mutex;
    uint64_t inner; /* bits of those that a thread has taken while it held this one */
} order[ORDER_MAX];

static ALWAYS_INLINE bool order_has(const struct mutex *m)
{
    return (uintptr_t)m >= (uintptr_t)_sdata && (uintptr_t)m < (uintptr_t)_ebss;
}

/* order_place - return the place of @m in the table; ORDER_MAX: the table is full. */
static ALWAYS_INLINE unsigned order_place(const struct mutex *m)
{
    for (unsigned i = 0; i < ORDER_MAX; i++) {
        const struct mutex *there = NULL;

        if (__atomic_compare_exchange_n(&order[i].mutex, &there, m, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
            there == m)
            return i;
    }
    return ORDER_MAX;
}

/* order_leads - was @inner taken inside of @outer, or inside of another one that was? */
static ALWAYS_INLINE bool order_leads(unsigned outer, unsigned inner)
{
    uint64_t all = READ_ONCE(order[outer].inner), before;

    do {
        before = all;
        for (uint64_t left = before; left; left &= left - 1)
            all |= READ_ONCE(order[__builtin_ctzll(left)].inner);
    } while (all != before);
    return all & BIT(inner);
}

/* order_broken_by - note that the current thread takes @m inside of those that it holds.
 * Return: one of these that was taken inside of @m before: two threads could wait for each
 * other; NULL: there is none.
 */
static ALWAYS_INLINE const struct mutex *order_broken_by(const struct mutex *m)
{
    const struct held_lock *held = thread_current()->mutexes;

    if (!booted || cpu_context() == CTX_HELD || !order_has(m))
        return NULL;
    for (; held; held = held->outer) {
        const struct mutex *outer = CONTAINER_OF(held, struct mutex, held);
        unsigned from, to = order_place(m);

        if (!order_has(outer))
            continue;
        from = order_place(outer);
        if (from == ORDER_MAX || to == ORDER_MAX || order_leads(to, from))
            return outer;
        __atomic_fetch_or(&order[from].inner, BIT(to), __ATOMIC_RELAXED);
    }
    return NULL;
}

/* ---- a contract is broken ---- */

static ALWAYS_INLINE const struct contract_range *contract_out_of_range(
    const struct contract *rule, const uint64_t *arguments)
{
    for (size_t i = 0; i < ARRAY_LEN(rule->ranges) && rule->ranges[i].name; i++) {
        const struct contract_range *r = &rule->ranges[i];
        int64_t value = (int32_t)arguments[r->number];

        if (value < r->first || value > r->last)
            return r;
    }
    return NULL;
}

static _Noreturn void contract_broken(const struct contract *rule, uintptr_t caller,
                                      unsigned places, unsigned state, const char *what)
{
    static const char *const names[] = { "boot", "thread", "irq",     "trap",
                                         "nmi",  "held",   "stopped", "panic" };
    char in[64];
    size_t len = 0;
    struct ksym sym;
    bool known = !ksyms_at(caller, &sym);

    is_over = true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (places & BIT(i))
            len += (size_t)scnprintf(in + len, sizeof(in) - len, " %s", names[i]);
    panic("contract: %s() called by %s+0x%zx: %s.\n%s\nNow:%s, interrupts %s, "
          "preemption %s, hit: %s, PLAT_PROBES %s, PLAT_TEXT %s",
          rule->name, known ? sym.name : "?", known ? sym.offset : caller, what,
          rule->words, in, state & BIT(CONTRACT_INTERRUPTS_ON) ? "on" : "off",
          preempt_is_off() ? "off" : "on", hit_is_active() ? "active" : "none",
          booted && contract_has(CONTRACT_PLAT_PROBES) ? "held" : "free",
          booted && contract_has(CONTRACT_PLAT_TEXT) ? "held" : "free");
}

/* contract_is_test - tests break contracts on purpose. Their text is behind this file's. */
static ALWAYS_INLINE bool contract_is_test(uintptr_t caller)
{
    return caller > (uintptr_t)contract_check && caller < (uintptr_t)_etext;
}

void contract_check(unsigned number, uintptr_t caller, const uint64_t arguments[6])
{
    const struct contract *rule = &contract_rules[number];
    unsigned places, state;

    if (is_over || contract_is_test(caller))
        return;
    if (rule->moment == CONTRACT_BOOT_ENDS)
        booted = true;
    if (rule->moment == CONTRACT_CHECKS_END)
        is_over = true;
    places = contract_places(rule);
    state = contract_state();
    if (!contract_is_kept(rule, places, state))
        contract_broken(rule, caller, places, state, "its context is wrong");
    else if ((rule->held | rule->free | rule->waits) && contract_lock_is_wrong(rule))
        contract_broken(rule, caller, places, state,
                        "a lock is wrong, or it cannot wait");
    else if (rule->moment == CONTRACT_TAKES_MUTEX &&
             order_broken_by((const struct mutex *)arguments[0]))
        contract_broken(rule, caller, places, state,
                        "a mutex is held that comes behind this one elsewhere");
    else if (rule->moment == CONTRACT_WAITS_FOR_HOST && thread_current()->mutexes)
        contract_broken(rule, caller, places, state, "a mutex is held");
    else if (contract_out_of_range(rule, arguments))
        contract_broken(rule, caller, places, state, "an argument is out of its range");
}
NOKPROBE(contract_check);
NOKPROBE(stop_machine_running); /* the check calls it */

/* contract_mutex - find the variable @name. One of the same name has type b. */
static const struct mutex *contract_mutex(const char *name)
{
    struct ksym sym;
    size_t iter = 0;

    while (ksyms_next(name, &iter, &sym))
        if (sym.type == 'd')
            return (const struct mutex *)sym.start;
    panic("contracts: there is no %s", name);
}

static void __attribute__((constructor)) contract_locks_find(void)
{
    const struct mutex *locks = contract_mutex("locks"); /* probes/port/port_held.c */

    mutexes[CONTRACT_PLAT_PROBES] = &locks[PLAT_PROBES];
    mutexes[CONTRACT_PLAT_TEXT] = &locks[PLAT_TEXT];
    mutexes[CONTRACT_TRACE] = contract_mutex("trace_mutex");
    mutexes[CONTRACT_VFS] = &vfs_mutex;
}
