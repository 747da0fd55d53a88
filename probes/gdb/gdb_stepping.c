/* gdb_stepping.c - makes the steps of `while-stepping`: after a hit a thread executes some
 * instructions one by one, and collects a frame after each of them. No CPU stops for it.
 *
 *   1. The hit takes an entry for its stack, and sets TF in the image. The trap after each
 *      instruction collects, and sets TF again. The last one takes TF off, and frees the
 *      entry. In the middle of a switch, the current thread is not that of the stack.
 *   2. Interrupts run without TF. The thread may lose its CPU there: its image has TF, so
 *      its next trap may come on another CPU.
 *   3. A hit in an interrupt or an NMI makes no steps, and a thread that makes steps begins
 *      no others. Both are counted.
 *   4. A thread that gives its CPU up would take TF to the next thread. So the steps end in
 *      front of switch_to(), and that is counted, too.
 *   5. When the trace ends, the entry stays without its tracepoint, since its thread may
 *      have TF set. The next trap of the thread frees it. If the thread has lost TF in a
 *      fault, its next hit uses the entry.
 *   6. schedule_irq() runs at the end of an interrupt, on top of a program that may have TF
 *      set. A hit there uses the entry of the program. So a trap may find no entry: then TF
 *      is taken off, and the steps that are missing are counted.
 */
#include "probes/gdb/gdb_stepping.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "kernel/thread/thread.h"
#include "probes/gdb/gdb_step.h"
#include "probes/gdb/gdb_stop.h"

#define STEPPINGS_MAX 64

static struct stepping {
    uintptr_t top;             /* atomic; of the stack; 0: the entry is free */
    size_t len;                /* of the stack, in bytes */
    struct gdb_tracepoint *tp; /* atomic; NULL: the steps are over */
    uint64_t left;             /* steps that are still to be made */
    uintptr_t ip;              /* of the instruction that is executed next */
    bool in_copy;              /* it is in code of the engine that leads to it */
    bool pushes;               /* it pushes the flags */
} steppings[STEPPINGS_MAX];

static bool has_stepped; /* since boot */

static struct stepping *stepping_at(uintptr_t sp)
{
    for (unsigned i = 0; i < STEPPINGS_MAX; i++) {
        uintptr_t top = __atomic_load_n(&steppings[i].top, __ATOMIC_ACQUIRE);

        if (top && top - sp < steppings[i].len)
            return &steppings[i];
    }
    return NULL;
}

static struct stepping *stepping_claim(const struct thread *t)
{
    for (unsigned i = 0; i < STEPPINGS_MAX; i++) {
        uintptr_t none = 0;

        if (__atomic_compare_exchange_n(&steppings[i].top, &none, (uintptr_t)t->stack_top,
                                        false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            steppings[i].len = t->stack_len;
            return &steppings[i];
        }
    }
    return NULL;
}

/* step_from - let the thread execute the instruction at @ip, and then trap. */
static void step_from(struct stepping *s, struct pt_regs *regs, uintptr_t ip)
{
    s->ip = ip;
    s->in_copy = regs->ip != ip;
    s->pushes = gdb_step_pushes(ip);
    regs->flags |= FLAGS_TF;
}

/* gives_cpu_up - is @ip in switch_to(), which ends where thread_entry() begins? */
static bool gives_cpu_up(uintptr_t ip)
{
    return ip - (uintptr_t)switch_to < (uintptr_t)thread_entry - (uintptr_t)switch_to;
}

void gdb_stepping_begin(struct gdb_tracepoint *tp, struct pt_regs *regs)
{
    const struct thread *t = thread_current();
    struct stepping *s = NULL;

    if (cpu_context() == CTX_THREAD && !(regs->flags & FLAGS_TF) &&
        (uintptr_t)t->stack_top - regs->sp < t->stack_len && !gives_cpu_up(tp->addr)) {
        s = stepping_at(regs->sp); /* TF is not set: its steps are over */
        s = s ? s : stepping_claim(t);
    }
    if (!s) {
        gdb_collect_loss(GDB_LOST_STEPS);
        return;
    }
    has_stepped = true;
    s->left = tp->steps;
    WRITE_ONCE(s->tp, tp);
    step_from(s, regs, tp->addr);
    s->in_copy =
        false; /* the first trap comes behind the instruction, or a round of it */
}

/* goes_on - a step of @s has been made: collect. Return: is there another one? */
static bool goes_on(struct stepping *s, const struct pt_regs *regs, uintptr_t ip)
{
    struct gdb_tracepoint *tp = READ_ONCE(s->tp);

    if (!tp || !READ_ONCE(gdb_trace_state.runs))
        return false;
    gdb_collect_step(tp, regs, ip);
    if (!--s->left)
        return false;
    if (!gives_cpu_up(ip))
        return true;
    gdb_collect_loss(GDB_LOST_STEPS);
    return false;
}

bool gdb_stepping_trap(struct pt_regs *regs)
{
    struct stepping *s = stepping_at(regs->sp);
    uintptr_t ip = gdb_stop_ip(regs);

    if (!s) { /* 6 at the top of the file */
        if (!has_stepped)
            return false;
        gdb_collect_loss(GDB_LOST_STEPS);
        regs->flags &= ~FLAGS_TF;
        return true;
    }
    if (s->in_copy && ip == s->ip) { /* a copy has led to the instruction */
        s->in_copy = regs->ip != ip;
        return true;
    }
    if (s->pushes)
        gdb_step_fix_pushed(regs);
    if (goes_on(s, regs, ip)) {
        step_from(s, regs, ip);
    } else {
        regs->flags &= ~FLAGS_TF;
        __atomic_store_n(&s->top, 0, __ATOMIC_RELEASE);
    }
    return true;
}

void gdb_stepping_forget(void)
{
    for (unsigned i = 0; i < STEPPINGS_MAX; i++)
        WRITE_ONCE(steppings[i].tp, NULL);
}
