/* gdb_step.c - makes steps by the trap flag, TF.
 *
 * TF is set in the image of the thread. So before the trap after the instruction comes,
 * the step may be interrupted, and the thread may move to another CPU. Interrupt handlers
 * run without TF: a step never ends in one. At a probed instruction the engine lets a
 * step look as without a probe: it runs the handlers, and raises the trap at the next
 * original instruction.
 *
 * A step with @alone is made with interrupts off, since an interrupt could lead to
 * another thread. After the instruction the stub corrects what the program sees of IF and
 * TF:
 *
 *   pushf       the pushed word has the program's IF, and no TF
 *   cli, sti    IF is as the instruction sets it
 *   popf, iret  IF is as the instruction has loaded it
 *   hlt         is skipped, not executed: an interrupt could have ended it at once
 *   all others  IF is as it was
 *
 * To find the kind of the instruction the original bytes are read: the text may have a
 * probe.
 */
#include "probes/gdb/gdb_step.h"

#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/extable.h"
#include "kernel/thread/thread.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/gdb/gdb_regs.h"
#include "probes/gdb/gdb_stop.h"

#define STALE_MAX 16

enum kind { OTHER, PUSHF, POPF, CLI, STI, IRET, HLT };

/* The one step that is under way. */
static struct {
    struct thread *thread; /* NULL: no step is under way */
    uintptr_t start, end;
    bool alone;
    bool had_if; /* with alone: the program's IF before the instruction */
    enum kind kind;
} step;

/* Threads with a TF left over in an image: their step was cancelled while an interrupt
 * was on top of it. Their next trap clears TF. NULL: free.
 */
static struct thread *stale[STALE_MAX];

/* ---- the instruction ---- */

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || (byte & 0xf0) == 0x40;
}

static enum kind kind_at(uintptr_t ip)
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
        return POPF;
    case 0xcf:
        return IRET;
    case 0xf4:
        return HLT;
    case 0xfa:
        return CLI;
    case 0xfb:
        return STI;
    default:
        return OTHER;
    }
}

/* ---- before and after the instruction ---- */

static void prepare(struct pt_regs *regs)
{
    step.kind = kind_at(gdb_regs_ip(regs));
    step.had_if = regs->flags & FLAGS_IF;
    regs->flags |= FLAGS_TF;
    if (step.alone)
        regs->flags &= ~FLAGS_IF;
}

static void fix_pushed(const struct pt_regs *regs)
{
    uint64_t word;

    if (copy_nofault(&word, (const void *)regs->sp, sizeof(word)))
        return;
    word &= ~FLAGS_TF;
    if (step.alone && step.had_if)
        word |= FLAGS_IF;
    copy_nofault((void *)regs->sp, &word, sizeof(word));
}

static bool if_behind(const struct pt_regs *regs)
{
    switch (step.kind) {
    case CLI:
        return false;
    case STI:
        return true;
    case POPF:
    case IRET:
        return regs->flags & FLAGS_IF;
    default:
        return step.had_if;
    }
}

static void put_right(struct pt_regs *regs)
{
    regs->flags &= ~FLAGS_TF;
    if (step.kind == PUSHF)
        fix_pushed(regs);
    if (!step.alone)
        return;
    if (if_behind(regs))
        regs->flags |= FLAGS_IF;
    else
        regs->flags &= ~FLAGS_IF;
}

/* ---- the trap ---- */

static bool was_stale(const struct thread *t)
{
    for (unsigned i = 0; i < STALE_MAX; i++)
        if (stale[i] == t) {
            stale[i] = NULL;
            return true;
        }
    return false;
}

bool gdb_step_trap(struct pt_regs *regs)
{
    struct thread *t = thread_current();

    if (!(regs->dr6 & DR6_BS))
        return false;
    if (step.thread != t) {
        if (!was_stale(t))
            return false;
        regs->flags &= ~FLAGS_TF;
        return true;
    }
    put_right(regs);
    if (regs->ip - step.start < step.end - step.start && !gdb_is_stopping()) {
        prepare(regs);
        return true;
    }
    step.thread = NULL;
    gdb_stop(regs, GDB_WHY_STEP, NULL, NULL);
    return true;
}

/* ---- start and cancel ---- */

const char *gdb_step_start(struct thread *t, uintptr_t start, uintptr_t end, bool alone,
                           bool *done)
{
    int cpu = gdb_cpu_of(t);
    struct pt_regs *regs;

    if (cpu < 0)
        return "the thread is not on a CPU: it cannot be stepped";
    if (gdb_cpu((unsigned)cpu)->inside_nmi)
        return "the code of an NMI cannot be stepped: set a breakpoint and continue";
    regs = gdb_cpu((unsigned)cpu)->regs;
    *done = alone && kind_at(gdb_regs_ip(regs)) == HLT && gdb_regs_ip(regs) == regs->ip;
    if (*done) {
        regs->ip++;
        return NULL;
    }
    step.thread = t;
    step.start = start;
    step.end = end;
    step.alone = alone;
    prepare(regs);
    return NULL;
}

void gdb_step_cancel(void)
{
    struct thread *t = step.thread;
    int cpu = t ? gdb_cpu_of(t) : -1;
    struct pt_regs *regs = cpu < 0 ? NULL : gdb_cpu((unsigned)cpu)->regs;

    step.thread = NULL;
    if (!t)
        return;
    if (regs && regs->flags & FLAGS_TF) {
        put_right(regs);
        return;
    }
    for (unsigned i = 0; i < STALE_MAX; i++)
        if (!stale[i]) {
            stale[i] = t;
            return;
        }
}
