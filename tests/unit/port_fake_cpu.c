/* port_fake_cpu.c - port_fake's CPUs: their data, the functions that wait for all CPUs,
 * traps and stacks.
 */
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

#define STACK_WORDS 1024

static struct {
    struct plat_depths depths;
    struct probe_cpu cpu;
} ALIGNED(16) cpus[FAKE_CPUS];
static uint64_t stack[STACK_WORDS], nmi_stack[STACK_WORDS];
static struct shadow *const no_shadow;
static uint64_t counters[FAKE_CPUS][FAKE_COUNTERS];

void fake_cpus_start(void)
{
    memset(cpus, 0, sizeof(cpus));
    for (size_t i = 0; i < FAKE_CPUS; i++)
        cpus[i].cpu.plat = (struct plat_cpu){
            .shadow = &no_shadow,
            .counters = counters[i],
            .stack_base = &fake.stack_base,
        };
}

void fake_check_may_sleep(const char *fn)
{
    if (fake.irqs_off || fake.is_stopped)
        fake_breach(fn, "called with interrupts off");
    if (fake.context != PLAT_THREAD || cpus[fake.this_cpu].cpu.depth)
        fake_breach(fn, "called outside thread context");
}

void fake_check_may_lock(const char *fn)
{
    if (fake.context != PLAT_HELD)
        fake_check_may_sleep(fn);
}

enum plat_context plat_context(void)
{
    if (fake.context == PLAT_HELD)
        return PLAT_HELD;
    if (FAKE_DEPTHS.nmi)
        return PLAT_NMI;
    return cpus[fake.this_cpu].cpu.depth ? PLAT_TRAP : fake.context;
}

int plat_wait_check(const char *verb UNUSED)
{
    return plat_context() == PLAT_THREAD ? 0 : -EDEADLK;
}

unsigned plat_cpu_count(void)
{
    return fake.cpus;
}

struct probe_cpu *plat_probe_cpu(unsigned cpu)
{
    return &cpus[cpu].cpu;
}

struct probe_cpu *plat_this_cpu(void)
{
    return fake.early ? NULL : &cpus[fake.this_cpu].cpu;
}

unsigned long plat_irq_save(void)
{
    fake.irq_saves++;
    return fake.irqs_off++;
}

void plat_irq_restore(unsigned long flags)
{
    if (flags != --fake.irqs_off)
        fake_breach(__func__, "not the state that was saved last");
}

/* ---- all CPUs together ---- */

void plat_sync_cores(void)
{
    if (!fake.is_stopped)
        fake_check_may_lock(__func__);
    fake_note("sync");
    fake.syncs++;
    if (fake.on_sync)
        fake.on_sync();
}

uint64_t plat_sync_count(unsigned cpu)
{
    return fake.deaf && cpu >= fake.deaf ? 0 : fake.syncs;
}

uint64_t plat_sync_ns(unsigned cpu)
{
    return cpu && cpu == fake.halted_cpu ? 0 : fake.ns + cpu;
}

void plat_stop_machine(void (*fn)(void *arg), void *arg)
{
    fake_check_may_sleep(__func__);
    if (fake.is_stopped)
        fake_breach(__func__, "the machine is stopped already");
    fake_note("stop");
    fake.stops++;
    fake.is_stopped = true;
    if (fake.on_stop)
        fake.on_stop();
    fn(arg);
    fake.is_stopped = false;
    fake_note("go");
}

uintptr_t plat_stopped_ip(unsigned cpu)
{
    if (!fake.is_stopped)
        fake_breach(__func__, "the machine is not stopped");
    return fake.stopped_ip[cpu];
}

void plat_quiesce(void)
{
    void (*hook)(void) = fake.on_quiesce;

    fake_check_may_sleep(__func__);
    if (plat_lock_held(PLAT_TEXT))
        fake_breach(__func__, "waits with PLAT_TEXT held");
    fake_note("quiesce");
    fake.quiesces++;
    fake.on_quiesce = NULL;
    if (hook)
        hook();
}

/* ---- stacks ---- */

uint64_t *fake_stack(void)
{
    return &stack[STACK_WORDS / 2];
}

size_t fake_stack_area(unsigned which, uintptr_t *top)
{
    *top = (uintptr_t)((which ? nmi_stack : stack) + STACK_WORDS);
    return sizeof(stack);
}

struct pt_regs fake_regs(void)
{
    struct pt_regs regs;
    unsigned long *words_of = (unsigned long *)&regs;

    for (size_t i = 0; i < sizeof(regs) / sizeof(*words_of); i++)
        words_of[i] = 0x1111111100000000ul * (i % 15 + 1) / 16 + i;
    regs.sp = (uintptr_t)fake_stack();
    regs.flags = FLAGS_FIXED | FLAGS_IF;
    regs.orig_ax = 0;
    return regs;
}

/* ---- traps ---- */

#define ESCAPED ((uintptr_t)0xe5caed)

/* A trap that a CPU is in. The list has the innermost trap first. An escape goes back to
 * the trap with the image that it names.
 */
struct trap {
    struct trap *outer;
    struct pt_regs *regs;
    jmp_buf here;
};

static struct trap *traps;

/* go_on - resume the image @regs. If plat_escape() has changed it, go back into the trap
 * that it names, in the middle of the engine.
 */
static void go_on(const struct pt_regs *regs)
{
    if (regs->ip != ESCAPED)
        return;
    while (traps->regs != (struct pt_regs *)regs->sp)
        traps = traps->outer;
    longjmp(traps->here, 1);
}

bool fake_take(struct pt_regs *regs,
               bool (*handler)(struct pt_regs *, struct probe_cpu *))
{
    struct trap trap = { .outer = traps, .regs = regs };
    struct probe_cpu *cpu = plat_this_cpu();
    volatile bool taken = true;

    if (cpu) {
        fake.stack_base = (uintptr_t)regs - fake.stack_left;
        cpu->plat.nmi_stack_base = fake.stack_base;
    }
    traps = &trap;
    if (setjmp(trap.here))
        kprobe_resume(regs, cpu);
    else
        taken = handler(regs, cpu);
    traps = trap.outer;
    go_on(regs);
    return taken;
}

bool fake_int3(struct pt_regs *regs, uintptr_t addr)
{
    regs->ip = addr + 1;
    return fake_take(regs, kprobe_int3_handler);
}

static bool fault(struct pt_regs *regs, struct probe_cpu *cpu UNUSED)
{
    return kprobe_fault_handler(regs);
}

bool fake_fault(struct pt_regs *regs, unsigned vector, uintptr_t ip)
{
    regs->ip = ip;
    regs->vector = vector;
    return fake_take(regs, fault);
}

void plat_escape(struct pt_regs *fault, struct pt_regs *regs)
{
    fault->ip = ESCAPED;
    fault->sp = (uintptr_t)regs;
}

/* plat_raise_fault - as in the kernel, a fault is offered to the engine first. */
void plat_raise_fault(struct pt_regs *regs, uintptr_t addr, bool by_stack)
{
    fake.raised++;
    fake.raised_at = addr;
    fake.raised_ip = regs->ip;
    fake.raised_by_stack = by_stack;
    regs->vector = 14;
    regs->error_code = 0;
    kprobe_fault_handler(regs);
}

void plat_raise_again(struct pt_regs *regs UNUSED)
{
    fake.raised_again++;
}

void plat_raise_step(struct pt_regs *regs)
{
    fake.raised_steps++;
    fake.raised_ip = regs->ip;
}
