/* port_kernel.c - the kernel's implementation of platform.h. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/wait_check.h"
#include "kernel/time/clock.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/port/port.h"
#include "probes/port/port_held.h"

#include <stdarg.h>
#include <stdio.h>

extern const uintptr_t nokprobe_start[], nokprobe_end[];
extern const uint8_t kprobes_text[], kprobes_text_end[];
extern const struct nokprobe_range nokprobe_ranges_start[], nokprobe_ranges_end[];
extern const char entry_text_start[], entry_text_end[];
extern const char probes_text_start[], probes_text_end[];
extern const char trap_resume_hit[]; /* entry.asm */

/* ---- executable memory ---- */

void *plat_exec_alloc(size_t len)
{
    if (unlikely(port_uses_reserve()))
        return len == PAGE_SIZE ? port_held_page() : NULL;
    return exec_alloc(len);
}

void plat_exec_free(void *p, size_t len)
{
    if (unlikely(port_uses_reserve()))
        port_held_free_page(p);
    else
        exec_free(p, len);
}

void plat_exec_window(uintptr_t *start, size_t *len)
{
    *start = ARENA_LOW_START;
    *len = arena_high_start() + ARENA_LEN - ARENA_LOW_START;
}

bool plat_exec_contains(uintptr_t addr)
{
    return exec_contains(addr);
}

/* ---- time, place, locks ---- */

void plat_quiesce(void)
{
    quiesce();
}

static enum plat_context context_of(const struct percpu *cpu)
{
    const struct probe_cpu *probe = cpu->probe;

    if (cpu->held)
        return PLAT_HELD;
    if (cpu->nmi_depth)
        return PLAT_NMI;
    if (probe && probe->depth)
        return PLAT_TRAP;
    return cpu->irq_depth ? PLAT_IRQ : PLAT_THREAD;
}

/* Interrupts are off: otherwise the thread could be moved, and would look at the data of a
 * CPU that it is no longer on.
 */
enum plat_context plat_context(void)
{
    unsigned long flags = irq_save();
    enum plat_context context = context_of(this_cpu());

    irq_restore(flags);
    return context;
}

int plat_wait_check(const char *verb)
{
    return wait_check(verb);
}

unsigned plat_cpu_count(void)
{
    return cpu_count();
}

struct probe_cpu *plat_probe_cpu(unsigned cpu)
{
    const struct percpu *p = percpu_of(cpu);

    return p ? p->probe : NULL;
}

HOT struct probe_cpu *plat_this_cpu(void)
{
    return this_cpu()->probe;
}
NOKPROBE(plat_this_cpu);

unsigned long plat_irq_save(void)
{
    return irq_save();
}
NOKPROBE(plat_irq_save);

void plat_irq_restore(unsigned long flags)
{
    irq_restore(flags);
}
NOKPROBE(plat_irq_restore);

void plat_preempt_enable(void)
{
    preempt_enable_no_resched();
}
NOKPROBE(plat_preempt_enable);

void plat_flags_as(unsigned long flags)
{
    __asm__ volatile("cld");
    if (irqs_enabled() == !!(flags & FLAGS_IF))
        return;
    if (flags & FLAGS_IF)
        sti();
    else
        cli();
}
NOKPROBE(plat_flags_as);

/* ---- memory and symbols ---- */

void *plat_alloc(size_t len)
{
    if (unlikely(port_uses_reserve()))
        return port_held_alloc(len);
    return kzalloc(len);
}

void plat_free(void *p)
{
    if (port_held_free(p))
        return;
    if (unlikely(port_uses_reserve()))
        port_held_free_late(p);
    else
        kfree(p);
}

bool plat_has_fixup(uintptr_t addr)
{
    return extable_find(addr);
}

bool plat_is_entry(uintptr_t addr)
{
    return addr >= (uintptr_t)entry_text_start && addr < (uintptr_t)entry_text_end;
}

bool plat_stops_at(uintptr_t addr)
{
    for (unsigned i = 0; i < DEBUG_REGS; i++)
        if (debug_reg_addr(i) == addr)
            return true;
    return false;
}
NOKPROBE(plat_stops_at);

bool plat_is_engine(uintptr_t addr)
{
    return addr >= (uintptr_t)probes_text_start && addr < (uintptr_t)probes_text_end;
}

const char port_marked_text[] = "its author has marked it";

/* take_marks - add the image's own marks (NOKPROBE), and the section .kprobes.text, to the
 * blacklist.
 */
static INIT int take_marks(void)
{
    const struct nokprobe_marks marks = {
        .functions = nokprobe_start,
        .function_count = (size_t)(nokprobe_end - nokprobe_start),
        .ranges = nokprobe_ranges_start,
        .range_count = (size_t)(nokprobe_ranges_end - nokprobe_ranges_start),
    };
    const struct nokprobe_range section = { (uintptr_t)kprobes_text,
                                            (uintptr_t)kprobes_text_end, NULL };
    int err = blacklist_add(&marks);

    if (err)
        return err;
    return blacklist_add(&(struct nokprobe_marks){
        .ranges = &section, .range_count = 1, .why = port_marked_text });
}

/* ---- handlers and faults ---- */

/* The image of the hit lies on the same stack, above all stack words of the handler. */
void plat_escape(struct pt_regs *fault, struct pt_regs *regs)
{
    fault->sp = (uintptr_t)regs;
    fault->ip = (uintptr_t)trap_resume_hit;
    fault->flags &= ~(FLAGS_DF | FLAGS_IF | FLAGS_TF | FLAGS_AC | FLAGS_NT | FLAGS_RF);
}

int plat_read(uint64_t *out, uintptr_t addr)
{
    return copy_nofault(out, (const void *)addr, sizeof(*out));
}
NOKPROBE(plat_read);

uintptr_t plat_seg_base(unsigned seg)
{
    return rdmsr(seg == INSN_SEG_FS ? MSR_FS_BASE : MSR_GS_BASE);
}
NOKPROBE(plat_seg_base);

static bool port_is_canonical(uintptr_t addr)
{
    return (uintptr_t)((intptr_t)(addr << 16) >> 16) == addr;
}

/* For an address that is not canonical a CPU raises #SS if the address is one of the stack,
 * else #GP, and it sets RF in the image of each fault. An emulator may do otherwise. CR2 has
 * the first byte that the engine could not read, which may lie behind @addr.
 */
static struct extable_fault of_the_stack;

static void learn_faults(void)
{
    touch_by_stack(UINT64_C(1) << 63);
    of_the_stack = extable_fault;
}

void plat_raise_fault(struct pt_regs *regs, uintptr_t addr, bool by_stack)
{
    unsigned long irqs = irq_save();
    uint64_t word;
    uintptr_t bad;

    /* An interrupt may have changed CR2 since the engine has tried to read. */
    plat_read(&word, addr);
    bad = read_cr2();
    regs->vector = port_is_canonical(addr) ? TRAP_PF
                   : by_stack              ? of_the_stack.vector
                                           : TRAP_GP;
    regs->error_code = 0;
    regs->flags |= of_the_stack.rf;
    if (regs->vector == TRAP_PF)
        regs->cr2 = bad - addr < sizeof(bad) ? bad : addr;
    trap_raise(regs);
    irq_restore(irqs);
}

void plat_raise_step(struct pt_regs *regs)
{
    regs->vector = TRAP_DB;
    regs->error_code = 0;
    /* The upper half has counts of changes, which tell whether a register was hit. */
    regs->dr6 = (regs->dr6 & ~(unsigned long)UINT32_MAX) | DR6_BS;
    trap_raise(regs);
}

void plat_raise_again(struct pt_regs *regs)
{
    trap_raise(regs);
}

uint64_t plat_clock_ns(void)
{
    return clock_ns();
}

void plat_log(const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vscnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    log_info("%s", text);
}

void plat_bug(const char *what, uintptr_t where)
{
    panic("probes: %s (at 0x%lx)", what, where);
}

/* ---- at boot ---- */

_Static_assert(sizeof(struct probe_cpu) <= PERCPU_ROOM_LEN,
               "detour.asm finds it from GS");
_Static_assert(offsetof(struct probe_cpu, depth) == 0, "what PERCPU_ROOM_OFF promises");

#define DEPTHS_OFF(field)                                                                \
    (PERCPU_ROOM_OFF - sizeof(struct plat_depths) + offsetof(struct plat_depths, field))
_Static_assert(DEPTHS_OFF(preempt) == offsetof(struct percpu, preempt_count) &&
                   DEPTHS_OFF(irq) == offsetof(struct percpu, irq_depth) &&
                   DEPTHS_OFF(nmi) == offsetof(struct percpu, nmi_depth),
               "the kernel's fields are a struct plat_depths");

static void give_areas(void)
{
    for (unsigned i = 0; i < cpu_count(); i++) {
        struct percpu *cpu = percpu_of(i);
        struct probe_cpu *area = percpu_room(cpu);

        area->plat = (struct plat_cpu){
            .shadow = (struct shadow *const *)&cpu->thread_probe,
            .counters = percpu_counter(i, 0),
            .stack_base = &cpu->stack_base,
            .nmi_stack_base = cpu->nmi_stack_base,
        };
        cpu->probe = area;
    }
}

static void take_traps(void)
{
    /* Only entry.asm calls these; it passes the CPU's area as an untyped pointer. */
    trap_resume_handler = (void (*)(struct pt_regs *, void *))kprobe_resume;
    trap_set_direct(TRAP_BP, (trap_direct_t)kprobe_int3_handler);
    trap_set_direct(TRAP_DB, (trap_direct_t)kprobe_debug_handler);
}

INIT int port_core_init(bool (*inside)(uintptr_t ip))
{
    int err = port_text_init();

    give_areas();
    if (!err)
        err = insn_slot_init();
    if (!err)
        err = take_marks();
    if (err)
        return err;
    learn_faults();
    quiesce_set_inside(inside);
    take_traps();
    return 0;
}
