/* explore_gdb_step.c - the debugger steps the program on CPU 0, and meanwhile CPU 1, and
 * an interrupt of CPU 0, come to a breakpoint. That stop cancels the step, wherever it is.
 * The debugger may step the interrupt, too.
 */
#include "probes/gdb/gdb_step.h"

#include "kernel/cpu/msr.h"
#include "kernel/thread/thread.h"
#include "probes/gdb/gdb_memory.h"
#include "probes/returns/platform_returns.h"
#include "tests/explore/two_stops.h"

#include <string.h>

#define START 0x1000
#define ABOVE 0x2000

/* The image of the program on CPU 0: that of an NMI if no trap is under way. */
static struct pt_regs program = { .ip = START, .flags = FLAGS_FIXED | FLAGS_IF };
static struct pt_regs handler, above = { .ip = ABOVE }; /* with interrupts off */
static uint64_t stack[64];
static uint64_t *const word_above = &stack[8]; /* of the interrupt, like flags with TF */
static struct pt_regs other = { .flags = FLAGS_FIXED | FLAGS_IF };
static struct pt_regs *interrupted = &program;
static bool is_stepping; /* the debugger waits for the step */
static bool alone;       /* which keeps interrupts away */
static bool irq_came;
static uintptr_t executed;

/* Every instruction is a nop of one byte, but for the first one of the program, a pushf. */
size_t gdb_memory_read(void *out, uintptr_t addr, size_t len)
{
    memset(out, addr == START ? 0x9c : 0x90, len);
    return len;
}

int copy_nofault(void *dst, const void *src, size_t len)
{
    memcpy(dst, src, len);
    return 0;
}

static void no_step_from(uintptr_t ip)
{
    struct pt_regs *regs = gdb_cpu(0)->regs;
    uintptr_t before = regs->ip;
    bool done;

    regs->ip = ip;
    explore_check(gdb_step_start(percpu_of(0)->current, 0, 0, false, &done),
                  "no step begins where TF would be kept");
    regs->ip = before;
}

static void begin_step(bool by_itself)
{
    bool done;

    no_step_from(TWO_STOPS_DETOUR);
    no_step_from((uintptr_t)kretprobe_trampoline + 5);
    executed = 0;
    alone = by_itself;
    is_stepping = !gdb_step_start(percpu_of(0)->current, 0, 0, alone, &done);
    explore_check(is_stepping, "a step begins");
}

/* talk - the debugger steps at its first stop of CPU 0, and lets all go. */
static void talk(unsigned cpu)
{
    gdb_step_cancel(percpu_of(cpu)->current);
    if (gdb_cpu(cpu)->why == GDB_WHY_STEP) {
        explore_check(is_stepping, "a step ends that is under way");
        explore_check(executed == 1, "and that is one instruction");
        explore_seen("the step ends");
        is_stepping = false;
    } else if (is_stepping) {
        explore_seen("the step is cancelled");
        is_stepping = false;
    } else if (gdb_cpu(0)->regs == &program && cpu == 0) {
        begin_step(explore_choose(2));
    }
    if (gdb_cpu(0)->regs == &above && gdb_cpu(cpu)->why == GDB_WHY_BREAK && cpu == 0)
        begin_step(false);
    gdb_release(GDB_ALL_CPUS);
}

/* execute - one instruction. If it began with TF, the processor is in the handler of #DB
 * before an NMI can come.
 */
static void execute(struct pt_regs *regs)
{
    bool traps;

    explore_together(true);
    traps = regs->flags & FLAGS_TF;
    if (regs->ip == START) {
        regs->sp -= sizeof(uint64_t);
        *(uint64_t *)regs->sp = regs->flags;
    }
    regs->ip++;
    executed++;
    if (traps)
        interrupted = &handler;
    explore_together(false);
    if (!traps)
        return;
    if (regs == &program)
        explore_irqs(false);
    regs->dr6 = DR6_BS;
    explore_check(gdb_step_trap(regs), "a trap by TF is one of a step");
    if (regs == &program)
        explore_irqs(true);
    interrupted = regs;
    two_stops_again();
}

static void cpu0(void)
{
    interrupted = &handler;
    explore_irqs(false);
    gdb_stop(&program, GDB_WHY_BREAK, NULL, NULL);
    explore_irqs(true);
    interrupted = &program;
    two_stops_again();
    execute(&program);
    execute(&program);
    execute(&program);
}

/* irq - an interrupt of CPU 0 comes to a breakpoint, on top of the step. */
static bool irq_comes(void)
{
    return !irq_came && is_stepping && interrupted == &program &&
           program.flags & FLAGS_IF && !gdb_cpu(0)->masked;
}

static void irq(void)
{
    irq_came = true;
    explore_check(!alone, "an interrupt waits for the end of a step alone");
    interrupted = &above;
    gdb_stop(&above, GDB_WHY_BREAK, NULL, NULL);
    execute(&above);
    execute(&above);
    interrupted = &program;
    two_stops_again();
}

static void cpu1(void)
{
    gdb_stop(&other, GDB_WHY_BREAK, NULL, NULL);
}

static void nmi(void)
{
    two_stops_nmi(explore_cpu() ? &other : interrupted);
}

static void start(void)
{
    static struct thread threads[2];

    cpus_online = 2;
    gdb_stop_init(talk);
    program.sp = (uintptr_t)(stack + 64);
    above.sp = (uintptr_t)word_above;
    *word_above = FLAGS_TF;
    percpu_of(0)->current = &threads[0];
    percpu_of(1)->current = &threads[1];
}

static void end(void)
{
    explore_check(!(program.flags & FLAGS_TF), "TF does not stay");
    explore_check(!(stack[63] & FLAGS_TF), "no TF is pushed");
    explore_check(*word_above == FLAGS_TF, "a word of the interrupt stays as it was");
    explore_check(program.flags & FLAGS_IF, "IF is as it was");
    explore_check(!gdb_cpu(0)->masked, "interrupts come again");
    explore_check(!is_stepping, "the debugger does not wait for a step");
    explore_check(program.ip == START + 3, "the program has executed all");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "cpu0", cpu0, 0, EXPLORE_THREAD },
                { "irq0", irq, 0, EXPLORE_IRQ, irq_comes },
                { "nmi0", nmi, 0, EXPLORE_NMI, two_stops_sent_0 },
                { "cpu1", cpu1, 1, EXPLORE_THREAD },
                { "nmi1", nmi, 1, EXPLORE_NMI, two_stops_sent_1 } },
    .outcomes = { "the step ends", "the step is cancelled" },
    .preemptions = 1,
};
