/* gdb_step.c - makes steps by the trap flag, TF.
 *
 * TF is set in the image of the thread. So before the trap after the instruction comes,
 * the step may be interrupted, and the thread may move to another CPU. Interrupt handlers
 * run without TF: a step never ends in one. At a probed instruction the engine lets a
 * step look as without a probe: it runs the handlers, and raises the trap at the next
 * original instruction.
 *
 * While a CPU makes a step with @alone, it takes no interrupts, since an interrupt could lead
 * to another thread. They wait by the priority of tasks, CR8. So IF stays the program's: for
 * the instruction, and for the handlers of probes. After the instruction the stub corrects
 * what the program sees of TF:
 *
 *   pushf       the pushed word has no TF
 *   popf, iret  TF is as the instruction has loaded it
 *
 * hlt is skipped, not executed, if no interrupt can end it.
 *
 * To find the kind of the instruction the original bytes are read: the text may have a
 * probe.
 *
 * A step is cancelled if the kernel stops for another reason first. That may be before the
 * instruction is executed, or after it; see `state`. An NMI, which lets the CPU stand for
 * another owner, may cancel a step between any two instructions of this file. So the state
 * changes by one atomic exchange, and only the CPU of the thread uses a step that is
 * BEHIND.
 *
 * If another thread has caused the stop, the debugger may want to go on with the step. So
 * it has to see the thread in the program, and not in code on top of it. A CPU that is in
 * such code does not stand at once: the trap of the step comes soon (gdb_stop.c). If the
 * thread has lost its CPU in an interrupt, the debugger sees the image below the
 * interrupt. TF stays set in the program until the thread has executed an instruction, or a
 * new step takes up the old one.
 */
#include "probes/gdb/gdb_step.h"

#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/extable.h"
#include "kernel/thread/thread.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/gdb/gdb_regs.h"
#include "probes/gdb/gdb_stepping.h"
#include "probes/gdb/gdb_stop.h"

#define STEPS_MAX 17
#define CR8_ALL 15 /* no interrupt has a higher priority */

enum step_kind { OTHER, PUSHF, LOADS /* the flags: popf, iret */, HLT };

enum step_state {
    FREE,
    UNDER_WAY, /* one step at most: the debugger waits for it */
    LEFT_OVER, /* the debugger does not wait any more, but TF is set: the trap will come */
    BEHIND,    /* the trap has come, and it is not decided yet how the thread goes on */
    CANCELLED, /* that is decided: the thread goes on without a stop */
};

static struct gdb_step {
    enum step_state state; /* atomic */
    struct thread *thread;
    uintptr_t start, end;
    bool alone;
    uintptr_t ip; /* of the instruction */
    uintptr_t sp; /* of the thread, in front of it */
    bool in_copy; /* the thread is in code of the engine that leads to the instruction */
    enum step_kind kind;
    struct pt_regs *trap; /* while BEHIND: the image of the trap */
    bool asked;           /* while BEHIND: the debugger waits for the step */
} steps[STEPS_MAX];

/* gdb_step_move - change the state of @s, if it is @from. */
static bool gdb_step_move(struct gdb_step *s, enum step_state from, enum step_state to)
{
    return __atomic_compare_exchange_n(&s->state, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static void release(struct gdb_step *s)
{
    __atomic_store_n(&s->state, FREE, __ATOMIC_SEQ_CST);
}

/* gdb_step_find - find a step of @t in state @state. @t: NULL: of any thread */
static struct gdb_step *gdb_step_find(enum step_state state, const struct thread *t)
{
    for (unsigned i = 0; i < STEPS_MAX; i++)
        if (READ_ONCE(steps[i].state) == state && (!t || steps[i].thread == t))
            return &steps[i];
    return NULL;
}

/* gdb_step_innermost - find the step of @t whose trap comes first: TF is set in its image,
 * and the images of others lie above it on the stack.
 */
static struct gdb_step *gdb_step_innermost(const struct thread *t)
{
    struct gdb_step *s = NULL;

    for (unsigned i = 0; i < STEPS_MAX; i++) {
        enum step_state state = READ_ONCE(steps[i].state);

        if ((state == UNDER_WAY || state == LEFT_OVER) && steps[i].thread == t &&
            (!s || steps[i].sp < s->sp))
            s = &steps[i];
    }
    return s;
}

/* left_over_in - find the step that @t has left over in @regs, which is its image. Code on
 * top of a step has an image of its own, below that step on the stack: TF is the program's
 * there, or the engine's.
 */
static struct gdb_step *left_over_in(const struct thread *t, const struct pt_regs *regs)
{
    struct gdb_step *s = gdb_step_innermost(t);

    if (!s || s->state != LEFT_OVER || !(regs->flags & FLAGS_TF) ||
        s->sp >= regs->sp + sizeof(*regs))
        return NULL;
    return s;
}

/* ---- the instruction ---- */

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || (byte & 0xf0) == 0x40;
}

static enum step_kind kind_at(uintptr_t ip)
{
    uint8_t bytes[15];
    size_t len = gdb_memory_read(bytes, ip, sizeof(bytes)), i = 0;

    while (i < len && is_prefix(bytes[i]))
        i++;
    if (i == len)
        return OTHER;
    switch (bytes[i]) {
    case 0x9c:
        return PUSHF;
    case 0x9d:
    case 0xcf:
        return LOADS;
    case 0xf4:
        return HLT;
    default:
        return OTHER;
    }
}

/* ---- before and after the instruction ---- */

static void gdb_step_prepare(struct gdb_step *s, struct pt_regs *regs)
{
    size_t off;
    const struct site *site = insn_slot_owner(regs->ip, &off);

    s->ip = gdb_stop_ip(regs);
    s->in_copy =
        regs->ip != s->ip && !(site && copy_start(site, regs->ip - off) == regs->ip);
    s->sp = regs->sp;
    s->kind = kind_at(s->ip);
    regs->flags |= FLAGS_TF;
}

bool gdb_step_pushes(uintptr_t ip)
{
    return kind_at(ip) == PUSHF;
}

void gdb_step_fix_pushed(const struct pt_regs *regs)
{
    uint64_t word;

    if (copy_nofault(&word, (const void *)regs->sp, sizeof(word)))
        return;
    word &= ~FLAGS_TF;
    copy_nofault((void *)regs->sp, &word, sizeof(word));
}

/* put_right - give the program the flags that it would have without the step. An instruction
 * that loads the flags may have loaded TF: then the program steps itself from there on.
 * @executed: the instruction has been executed
 */
static void put_right(const struct gdb_step *s, struct pt_regs *regs, bool executed)
{
    if (!executed || s->kind != LOADS)
        regs->flags &= ~FLAGS_TF;
    if (executed && s->kind == PUSHF)
        gdb_step_fix_pushed(regs);
}

void gdb_step_irqs(bool runs)
{
    const struct gdb_step *s = runs ? gdb_step_find(UNDER_WAY, thread_current()) : NULL;
    struct gdb_cpu *me = gdb_cpu(cpu_id());
    bool mask = s && s->alone;

    if (me->masked == mask)
        return;
    me->masked = mask;
    write_cr8(mask ? CR8_ALL : 0);
}

/* ---- the trap ---- */

/* put_right_below - a step may lead back into the image of a step that is left over: then
 * @s has loaded flags with TF. Put these right, too.
 */
static void put_right_below(const struct gdb_step *s, struct pt_regs *regs)
{
    struct gdb_step *below = s->kind == LOADS ? left_over_in(s->thread, regs) : NULL;

    if (!below)
        return;
    put_right(below, regs, gdb_stop_ip(regs) != below->ip);
    regs->flags &= ~FLAGS_TF;
    release(below);
}

/* step_is_before - has the step only left the copy of the instruction before, by the jump
 * behind that copy? Then TF stays set, and the next trap is that of the step.
 */
static bool step_is_before(struct gdb_step *s, const struct pt_regs *regs)
{
    if (!s || !s->in_copy || gdb_stop_ip(regs) != s->ip)
        return false;
    s->in_copy = regs->ip != s->ip;
    return true;
}

struct gdb_step *gdb_step_end(struct pt_regs *regs)
{
    const struct thread *t = thread_current();
    struct gdb_step *s;
    bool waits;

    if (!(regs->dr6 & DR6_BS))
        return NULL;
    s = gdb_step_innermost(t);
    if (step_is_before(s, regs)) {
        regs->dr6 &= ~(unsigned long)DR6_BS;
        return NULL;
    }
    waits = s && gdb_step_move(s, UNDER_WAY, BEHIND);
    if (!s || !(waits || gdb_step_move(s, LEFT_OVER, BEHIND))) {
        if (gdb_stepping_trap(regs))
            regs->dr6 &= ~(unsigned long)DR6_BS;
        gdb_step_irqs(true);
        return NULL;
    }
    regs->dr6 &= ~(unsigned long)DR6_BS;
    put_right_below(s, regs);
    put_right(s, regs, true);
    s->trap = regs;
    s->asked = waits;
    return s;
}

static bool is_behind(void *arg)
{
    const struct gdb_step *s = arg;

    return READ_ONCE(s->state) == BEHIND;
}

static bool steps_on(struct gdb_step *s, const struct pt_regs *regs)
{
    return s->asked && regs->ip - s->start < s->end - s->start && !gdb_is_stopping() &&
           gdb_step_move(s, BEHIND, UNDER_WAY);
}

/* A stop for another CPU that has not found this one standing finds it at the end: until then
 * the trap has kept it from that.
 */
void gdb_step_go_on(struct gdb_step *s, struct pt_regs *regs, bool stopped)
{
    if (!s)
        return;
    if (!stopped && steps_on(s, regs)) {
        gdb_step_prepare(s, regs);
        return;
    }
    if (!stopped && is_behind(s))
        gdb_stop(regs, s->asked ? GDB_WHY_STEP : GDB_WHY_NONE, is_behind, s);
    if (!gdb_step_move(s, BEHIND, FREE))
        gdb_step_move(s, CANCELLED, FREE);
    if (gdb_is_stopping())
        gdb_stop(regs, GDB_WHY_NONE, NULL, NULL);
    gdb_step_irqs(true);
}

bool gdb_step_trap(struct pt_regs *regs)
{
    bool was_step = regs->dr6 & DR6_BS;

    gdb_step_go_on(gdb_step_end(regs), regs, false);
    return was_step && !(regs->dr6 & DR6_BS);
}

void gdb_step_lost(struct pt_regs *regs, uintptr_t sp)
{
    const struct thread *t = thread_current();
    struct gdb_step *s;

    while ((s = gdb_step_innermost(t)) && s->sp - sp < regs->sp - sp) {
        if (!gdb_step_move(s, UNDER_WAY, BEHIND)) {
            gdb_step_move(s, LEFT_OVER, FREE);
            continue;
        }
        s->end = s->start; /* it stops, wherever the thread goes on */
        s->trap = regs;
        s->asked = true;
        gdb_step_go_on(s, regs, false);
    }
}

/* ---- start and cancel ---- */

/* program_of - return the image of the program if @t stands in it, or has lost its CPU in an
 * interrupt of it. If the thread has a step, TF is set there.
 */
static struct pt_regs *program_of(const struct thread *t)
{
    int cpu = gdb_cpu_of(t);

    return cpu < 0 ? t->preempted_regs : gdb_cpu((unsigned)cpu)->regs;
}

static struct gdb_step *left_over_of(const struct thread *t)
{
    const struct pt_regs *regs = program_of(t);

    return regs ? left_over_in(t, regs) : NULL;
}

struct pt_regs *gdb_step_image(const struct thread *t)
{
    return left_over_of(t) ? program_of(t) : NULL;
}

void gdb_step_drop(const struct thread *t)
{
    struct gdb_step *s = left_over_of(t);
    struct pt_regs *regs = program_of(t);

    if (!s)
        return;
    put_right(s, regs, gdb_stop_ip(regs) != s->ip);
    release(s);
}

/* take_up - let the step that @t has left over end as a step to outside of [@start, @end). */
static bool take_up(struct thread *t, uintptr_t start, uintptr_t end)
{
    struct gdb_step *s = left_over_of(t);

    if (!s || s->alone)
        return false;
    s->start = start;
    s->end = end;
    return gdb_step_move(s, LEFT_OVER, UNDER_WAY);
}

/* trap_is_theirs - does the program or the engine take the trap behind the instruction, or
 * keep TF?
 */
static bool trap_is_theirs(const struct pt_regs *regs)
{
    size_t off;
    const struct site *site = insn_slot_owner(regs->ip, &off);

    return regs->flags & FLAGS_TF || gdb_stop_in_detour(regs) ||
           (site && regs->ip - off == (uintptr_t)site_step_slot(site));
}

const char *gdb_step_start(struct thread *t, uintptr_t start, uintptr_t end, bool alone,
                           bool *done)
{
    int cpu = gdb_cpu_of(t);
    struct gdb_step *s;
    struct pt_regs *regs;

    *done = false;
    if (!alone && take_up(t, start, end))
        return NULL;
    if (cpu < 0)
        return "the thread is not on a CPU: it cannot be stepped";
    gdb_step_drop(t);
    s = gdb_step_find(FREE, NULL);
    if (gdb_cpu((unsigned)cpu)->inside_nmi)
        return "the code of an NMI cannot be stepped: set a breakpoint and continue";
    if (!s)
        return "the ends of 17 earlier steps are still to come: continue";
    regs = gdb_cpu((unsigned)cpu)->regs;
    if (trap_is_theirs(regs))
        return "the program or the engine steps here: set a breakpoint and continue";
    *done = alone && kind_at(gdb_stop_ip(regs)) == HLT && gdb_stop_ip(regs) == regs->ip;
    if (*done) {
        regs->ip++;
        return NULL;
    }
    s->thread = t;
    s->start = start;
    s->end = end;
    s->alone = alone;
    gdb_step_prepare(s, regs);
    __atomic_store_n(&s->state, UNDER_WAY, __ATOMIC_SEQ_CST);
    return NULL;
}

/* cancel_behind - cancel @s, which is BEHIND. If the thread stands there for the stop of
 * another thread, it goes on with a step that is left over.
 */
static void cancel_behind(struct gdb_step *s, const struct thread *stopped)
{
    if (s->thread == stopped || program_of(s->thread) != s->trap) {
        s->state = CANCELLED;
        return;
    }
    gdb_step_prepare(s, s->trap);
    s->state = LEFT_OVER;
}

/* If the thread itself has stopped where TF is set, the trap is not needed. This is mostly
 * before the instruction; but a stop behind an access may come without the trap of the step.
 */
void gdb_step_cancel(const struct thread *stopped)
{
    for (unsigned i = 0; i < STEPS_MAX; i++)
        if (steps[i].state == BEHIND)
            cancel_behind(&steps[i], stopped);
        else if (steps[i].state == UNDER_WAY)
            steps[i].state = LEFT_OVER;
    gdb_step_drop(stopped);
}
