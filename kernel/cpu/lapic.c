/* lapic.c - drives the executing CPU's local APIC, in either of its two modes.
 *
 * Owns the choice between xAPIC and x2APIC, made once on CPU 0 for all CPUs, and the
 * measured rate of the timer.
 *
 * Source: SDM vol. 3A, "Advanced Programmable Interrupt Controller (APIC)".
 */
#include "kernel/cpu/lapic.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/vmap.h"
#include "kernel/time/clock.h"

#include <stddef.h>

/* Register offsets; in x2APIC mode MSR_X2APIC + offset / 16. */
#define REG_ID 0x20u
#define REG_TPR 0x80u
#define REG_PPR 0xa0u
#define REG_EOI 0xb0u
#define REG_SPURIOUS 0xf0u
#define REG_ERROR 0x280u
#define REG_ICR 0x300u
#define REG_ICR_HIGH 0x310u /* xAPIC only: the destination, in bits 24..31 */
#define REG_LVT_TIMER 0x320u
#define REG_LVT_LINT0 0x350u
#define REG_LVT_LINT1 0x360u
#define REG_LVT_ERROR 0x370u
#define REG_TIMER_START 0x380u
#define REG_TIMER_NOW 0x390u
#define REG_TIMER_DIVIDE 0x3e0u
#define REGS_LEN 0x400u

#define BASE_ENABLE BIT(11)
#define BASE_X2APIC BIT(10)
#define SPURIOUS_ENABLE 0x100u
#define LVT_MASKED 0x10000u
#define LVT_PERIODIC 0x20000u
#define LVT_NMI 0x400u
#define DIVIDE_BY_16 0x3u

#define ICR_PENDING 0x1000u

#define XAPIC_ID_MAX 254u
#define FEATURE_X2APIC BIT(21) /* ecx of leaf 1 */

#define SENT_NS UINT64_C(100000000) /* an IPI that takes longer to leave is given up */

#define MEASURE_NS UINT64_C(2000000)
#define MEASURE_SLACK_NS 10000u
#define MEASURE_TIMES 5

/* All immutable after lapic_init(), the rate after the first lapic_timer_init(). */
bool lapic_x2apic;
static volatile uint8_t *regs; /* xAPIC */
static uint64_t timer_hz;      /* counts per second, with DIVIDE_BY_16 */

static ALWAYS_INLINE uint32_t lapic_read(uint32_t reg)
{
    if (lapic_x2apic)
        return (uint32_t)rdmsr(MSR_X2APIC + reg / 16);
    return *(volatile uint32_t *)(regs + reg);
}

static ALWAYS_INLINE void lapic_write(uint32_t reg, uint32_t value)
{
    if (lapic_x2apic)
        wrmsr(MSR_X2APIC + reg / 16, value);
    else
        *(volatile uint32_t *)(regs + reg) = value;
}

/* ---- switching on ---------------------------------------------------------------------- */

static INIT bool needs_x2apic(const struct madt_info *info)
{
    for (unsigned i = 0; i < info->cpu_count; i++)
        if (info->cpus[i] > XAPIC_ID_MAX)
            return true;
    return false;
}

static bool has_x2apic(void)
{
    uint32_t out[4];

    cpuid(1, 0, out);
    return out[2] & FEATURE_X2APIC;
}

static INIT void mode_choose(const struct madt_info *info)
{
    lapic_x2apic =
        (rdmsr(MSR_APIC_BASE) & BASE_X2APIC) || (needs_x2apic(info) && has_x2apic());
    if (lapic_x2apic)
        return;
    regs = vmap_device(info->lapic_phys, REGS_LEN);
    if (!regs)
        panic("no memory to map the local APIC");
}

static void stand_irq(struct pt_regs *interrupted)
{
    (void)interrupted; /* the interrupt itself has ended the halt */
    lapic_eoi();
}

static void spurious_irq(struct pt_regs *interrupted)
{
    (void)interrupted; /* and no EOI: no interrupt is in service */
}

/* An APIC can enter x2APIC mode only from xAPIC mode. LINT1 is set after the APIC was
 * enabled: a disabled APIC keeps each LVT entry masked, and ignores attempts to unmask
 * one.
 *
 * Source: SDM vol. 3A, "Local APIC State After It Has Been Software Disabled".
 */
COLD void lapic_init_cpu(void)
{
    wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | BASE_ENABLE);
    if (lapic_x2apic)
        wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | BASE_X2APIC);
    lapic_write(REG_SPURIOUS, SPURIOUS_ENABLE | VECTOR_SPURIOUS);
    lapic_write(REG_TPR, 0);
    lapic_write(REG_LVT_TIMER, LVT_MASKED);
    lapic_write(REG_LVT_LINT0, LVT_MASKED); /* the 8259s, which are masked themselves */
    lapic_write(REG_LVT_LINT1, LVT_NMI);
    lapic_write(REG_LVT_ERROR, LVT_MASKED);
    lapic_write(REG_ERROR, 0);
}

INIT void lapic_init(const struct madt_info *info)
{
    mode_choose(info);
    irq_set_handler(VECTOR_SPURIOUS, "spurious", spurious_irq);
    irq_set_handler(VECTOR_STAND, "stand", stand_irq);
    lapic_init_cpu();
    this_cpu()->apic_id = lapic_id();
    log_info("lapic: %s, id %u", lapic_x2apic ? "x2APIC" : "xAPIC", lapic_id());
}

uint32_t lapic_id(void)
{
    return lapic_x2apic ? lapic_read(REG_ID) : lapic_read(REG_ID) >> 24;
}

void lapic_eoi(void)
{
    lapic_write(REG_EOI, 0);
}
NOKPROBE(lapic_eoi);

/* The NMI may have interrupted the handler of VECTOR_STAND: then this interrupt could not
 * come, and the CPU must not halt.
 */
void lapic_halt(void)
{
    lapic_write(REG_TPR, VECTOR_STAND - 1);
    if (lapic_read(REG_PPR) < VECTOR_STAND) {
        sti();
        hlt();
        cli();
    }
    lapic_write(REG_TPR, 0);
}

/* ---- IPIs ------------------------------------------------------------------------------ */

/* wait_sent - wait until the previous IPI has left the APIC. This takes less than a
 * microsecond; after SENT_NS the IPI counts as lost, and the next IPI replaces it. The
 * function that waits for an answer to the IPI has a time limit of its own, and reports
 * the CPU that does not answer.
 */
static void wait_sent(void)
{
    uint64_t end = clock_ns() + SENT_NS;

    while (lapic_read(REG_ICR) & ICR_PENDING && clock_ns() < end)
        pause();
}

/* send_xapic - send an IPI in xAPIC mode. The destination has a register of its own, so
 * sending takes two writes. An NMI that sends an IPI between the two writes restores the
 * destination.
 */
static void send_xapic(uint32_t apic_id, uint32_t command)
{
    unsigned long flags = irq_save();
    uint32_t high;

    wait_sent();
    high = lapic_read(REG_ICR_HIGH);
    lapic_write(REG_ICR_HIGH, apic_id << 24);
    lapic_write(REG_ICR, command);
    lapic_write(REG_ICR_HIGH, high);
    irq_restore(flags);
}

/* send_x2apic - send an IPI in x2APIC mode. WRMSR to an APIC register does not serialise:
 * without the fences, the IPI may be sent before earlier stores are visible, such as
 * the call that the IPI is about. In xAPIC mode a store sends the IPI, and stores do not
 * overtake other stores.
 *
 * Source: SDM vol. 3A, "MSR Access in x2APIC Mode".
 */
static void send_x2apic(uint32_t apic_id, uint32_t command)
{
    mfence();
    lfence();
    wrmsr(MSR_X2APIC + REG_ICR / 16, (uint64_t)apic_id << 32 | command);
}

void lapic_send(uint32_t apic_id, uint32_t command)
{
    if (lapic_x2apic)
        send_x2apic(apic_id, command);
    else
        send_xapic(apic_id, command);
}

/* ---- the timer ------------------------------------------------------------------------- */

struct measurement {
    uint64_t counts, ns;
    uint64_t slack_ns; /* what the measurement took beyond MEASURE_NS */
};

static COLD struct measurement timer_measure(void)
{
    uint64_t before_start = clock_ns(), start, end;
    uint32_t left;

    lapic_write(REG_TIMER_START, UINT32_MAX);
    start = clock_ns();
    clock_spin_ns(MEASURE_NS);
    left = lapic_read(REG_TIMER_NOW);
    end = clock_ns();
    lapic_write(REG_TIMER_START, 0);
    return (struct measurement){
        .counts = UINT32_MAX - left,
        .ns = end - start,
        .slack_ns = end - before_start - MEASURE_NS,
    };
}

/* timer_rate - measure the rate of the timer. A host that takes the CPU away at the wrong
 * moment spoils a measurement, and then its slack is large. So of several measurements,
 * the one with the smallest slack counts.
 */
static COLD uint64_t timer_rate(void)
{
    struct measurement best = timer_measure();

    for (unsigned n = 1; n < MEASURE_TIMES && best.slack_ns > MEASURE_SLACK_NS; n++) {
        struct measurement m = timer_measure();

        if (m.slack_ns < best.slack_ns)
            best = m;
    }
    return best.counts * UINT64_C(1000000000) / best.ns;
}

COLD void lapic_timer_init(unsigned hz)
{
    lapic_write(REG_TIMER_DIVIDE, DIVIDE_BY_16);
    if (!timer_hz) {
        timer_hz = timer_rate();
        log_info("lapic: timer at %llu kHz", (unsigned long long)timer_hz / 1000);
    }
    lapic_write(REG_LVT_TIMER, LVT_PERIODIC | VECTOR_TIMER);
    lapic_write(REG_TIMER_START, (uint32_t)(timer_hz / hz));
}

void lapic_timer_stop(void)
{
    lapic_write(REG_LVT_TIMER, LVT_MASKED);
    lapic_write(REG_TIMER_START, 0);
}
