/* trap.c - calls the handlers of a vector; entry.asm calls the functions here.
 *
 * Owns the IDT and the handler tables, which are filled at boot and only read later. A trap
 * that no handler takes, and that has no fix-up, is a panic with its registers.
 */
#include "kernel/cpu/trap.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/marker.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/stack.h"

#include <stddef.h>

#define GATE_INTERRUPT 0x8e
#define SEL_CODE 0x08

struct gate {
    uint16_t offset_low, selector;
    uint8_t ist, type;
    uint16_t offset_mid;
    uint32_t offset_high, reserved;
} PACKED;

extern const uint8_t entry_stubs[256][16];

static struct gate idt[256] ALIGNED(16);
static trap_handler_t trap_handlers[TRAP_COUNT][TRAP_HANDLERS_MAX];
static struct {
    irq_handler_t fn;
    const char *name;
} irq_handlers[256];

static bool not_a_hit(struct pt_regs *regs, void *probe)
{
    (void)regs;
    (void)probe;
    return false;
}

static bool not_direct(struct pt_regs *regs)
{
    (void)regs;
    return false;
}

/* Read by entry.asm. */
trap_direct_t trap_bp_handler = not_a_hit;
trap_direct_t trap_db_handler = not_a_hit;
bool (*trap_fault_handler)(struct pt_regs *regs) = not_direct;
void (*trap_resume_handler)(struct pt_regs *regs, void *probe);
uint8_t trap_nmis_serialise;

static uint8_t ist_of(unsigned vector)
{
    switch (vector) {
    case TRAP_NMI:
        return 1;
    case TRAP_DF:
        return 2;
    case TRAP_MC:
        return 3;
    default:
        return 0;
    }
}

INIT void trap_init(void)
{
    for (unsigned v = 0; v < 256; v++) {
        uintptr_t stub = (uintptr_t)entry_stubs[v];

        idt[v] = (struct gate){
            .offset_low = (uint16_t)stub,
            .offset_mid = (uint16_t)(stub >> 16),
            .offset_high = (uint32_t)(stub >> 32),
            .selector = SEL_CODE,
            .ist = ist_of(v),
            .type = GATE_INTERRUPT,
        };
    }
}

void trap_load_idt(void)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } PACKED idtr = { sizeof(idt) - 1, (uintptr_t)idt };

    __asm__ volatile("lidt %0" ::"m"(idtr));
}

void trap_set_direct(unsigned vector, trap_direct_t fn)
{
    if (vector == TRAP_BP)
        trap_bp_handler = fn;
    else
        trap_db_handler = fn;
}

void (*trap_step_lost)(struct pt_regs *regs, uintptr_t sp);
void (*trap_goes_on)(struct pt_regs *regs);

void trap_serialise_nmis(bool on)
{
    __atomic_store_n(&trap_nmis_serialise, on, __ATOMIC_SEQ_CST);
}

void trap_set_handler(unsigned vector, trap_handler_t fn)
{
    for (size_t i = 0; i < TRAP_HANDLERS_MAX; i++) {
        if (trap_handlers[vector][i])
            continue;
        trap_handlers[vector][i] = fn;
        return;
    }
    panic("vector %u has %d handlers already", vector, TRAP_HANDLERS_MAX);
}

void irq_set_handler(unsigned vector, const char *name, irq_handler_t fn)
{
    irq_handlers[vector].name = name;
    irq_handlers[vector].fn = fn;
}

uint64_t irq_count(unsigned cpu, unsigned vector)
{
    const struct percpu *p = percpu_of(cpu);

    return p && vector < 256 ? p->irq_counts[vector] : 0;
}

const char *irq_name(unsigned vector)
{
    return vector < 256 ? irq_handlers[vector].name : NULL;
}

const char *trap_name(unsigned vector)
{
    static const char *const names[TRAP_COUNT] = {
        [0] = "#DE divide error",   [1] = "#DB debug",          [2] = "NMI",
        [3] = "#BP breakpoint",     [4] = "#OF overflow",       [5] = "#BR bound",
        [6] = "#UD invalid opcode", [7] = "#NM no FPU",         [8] = "#DF double fault",
        [10] = "#TS invalid TSS",   [11] = "#NP no segment",    [12] = "#SS stack fault",
        [13] = "#GP protection",    [14] = "#PF page fault",    [16] = "#MF x87 error",
        [17] = "#AC alignment",     [18] = "#MC machine check", [19] = "#XM SIMD error",
        [21] = "#CP control",
    };

    if (vector < TRAP_COUNT && names[vector])
        return names[vector];
    return vector < TRAP_COUNT ? "reserved exception" : "interrupt";
}

static _Noreturn void trap_fatal(const struct pt_regs *regs)
{
    if (regs->vector == TRAP_PF)
        panic_regs(regs, "%s: %s at 0x%lx (error 0x%x)", trap_name(regs->vector),
                   regs->error_code & 2 ? "write" : "access", regs->cr2,
                   regs->error_code);
    if (regs->vector == TRAP_DB)
        panic_regs(regs, "%s: DR6 0x%x", trap_name(regs->vector), (uint32_t)regs->dr6);
    panic_regs(regs, "%s (error 0x%x)", trap_name(regs->vector), regs->error_code);
}

/* trap_dispatch - handle exceptions other than NMI, #DF and #MC; called by entry.asm. */
void trap_dispatch(struct pt_regs *regs);
void trap_dispatch(struct pt_regs *regs)
{
    trap_handler_t *fn = trap_handlers[regs->vector];
    uintptr_t sp = regs->sp;

    for (size_t i = 0; i < TRAP_HANDLERS_MAX && fn[i]; i++) {
        if (!fn[i](regs))
            continue;
        if (regs->sp > sp && trap_step_lost)
            trap_step_lost(regs, sp);
        if (regs->vector != TRAP_DB && trap_goes_on)
            trap_goes_on(regs);
        return;
    }
    MARK(fault, "vector %u ip 0x%lx", regs->vector, regs->ip);
    if (extable_fixup(regs))
        return;
    trap_fatal(regs);
}

static bool overlaps_object(uintptr_t addr, size_t len, const void *object, size_t size)
{
    return addr < (uintptr_t)object + size && (uintptr_t)object < addr + len;
}

bool trap_is_own(uintptr_t addr, size_t len)
{
    return overlaps_object(addr, len, idt, sizeof(idt)) ||
           overlaps_object(addr, len, &trap_bp_handler, sizeof(trap_bp_handler)) ||
           overlaps_object(addr, len, &trap_db_handler, sizeof(trap_db_handler)) ||
           overlaps_object(addr, len, &trap_fault_handler, sizeof(trap_fault_handler));
}

void trap_raise(struct pt_regs *regs)
{
    unsigned long irqs = irq_save();

    trap_dispatch(regs);
    irq_restore(irqs);
}

/* irq_dispatch - handle an interrupt; called by entry.asm, which has counted it. */
void irq_dispatch(struct pt_regs *regs);
void irq_dispatch(struct pt_regs *regs)
{
    irq_handler_t fn = irq_handlers[regs->vector].fn;

    if (!fn)
        panic_regs(regs, "interrupt on vector 0x%x, which has no handler", regs->vector);
    fn(regs);
}
NOKPROBE(irq_dispatch);

/* nmi_dispatch - handle an NMI; called by entry.asm. All handlers run: two NMIs that come
 * close together may arrive as one.
 */
void nmi_dispatch(struct pt_regs *regs);
void nmi_dispatch(struct pt_regs *regs)
{
    trap_handler_t *fn = trap_handlers[TRAP_NMI];

    this_cpu()->irq_counts[TRAP_NMI]++;
    if (panic_nmi(regs))
        return;
    for (size_t i = 0; i < TRAP_HANDLERS_MAX && fn[i]; i++)
        fn[i](regs);
}

/* fatal_dispatch - handle #DF or #MC; called by entry.asm on a stack of its own. A thread
 * that uses up its stack causes a double fault: the page fault at the guard page has no
 * room for its frame.
 */
void fatal_dispatch(struct pt_regs *regs);
void fatal_dispatch(struct pt_regs *regs)
{
    uintptr_t base;

    if (regs->vector == TRAP_DF && stack_guard_hit(regs->cr2, &base))
        panic_regs(regs, "stack overflow: the stack that begins at 0x%lx is full", base);
    trap_fatal(regs);
}
