/* smp_start.c - brings up the other CPUs, one after the other, from boot/ap_start.asm.
 *
 *   1. a page below 1 MiB gets the trampoline; tables map it beside the kernel
 *   2. INIT to all of them; they wait for a start address now
 *   3. for each: its area and its idle thread, on whose stack it will start; the start
 *      IPI; wait until it counts itself in
 *   4. page and tables are given back
 *
 * Only one CPU at a time is between its start IPI and the count, so what it needs to know
 * stands in single variables, the ap_start_* of ap_start.asm.
 */
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "kernel/thread/sched.h"
#include "kernel/time/clock.h"

#include <string.h>

#define INIT_SETTLE_NS UINT64_C(1000000)
#define RETRY_NS UINT64_C(2000000) /* no sign of life: the start IPI again */
#define GIVE_UP_NS UINT64_C(5000000000)

/* boot/ap_start.asm */
extern const uint8_t ap_trampoline_template[], ap_trampoline_template_end[];
extern const uint32_t ap_trampoline_fixups_table[], ap_trampoline_fixups_table_end[];
extern uint32_t ap_start_cr3, ap_start_cr0, ap_start_efer;
extern uint64_t ap_start_stack;

static struct percpu *ap_percpu; /* of the CPU that is being started */

/* ---- on the new CPU -------------------------------------------------------------------- */

/* ap_main - the first C code of a further CPU, on the stack of its idle thread. Page tables
 * that were changed after it had cached them, and before it was counted in, were not shot
 * down here: so it forgets everything once it is.
 */
_Noreturn void ap_main(void);
void ap_main(void)
{
    percpu_load(ap_percpu);
    features_init_cpu();
    write_cr3(paging_cr3());
    lapic_init_cpu();
    ASSERT(lapic_id() == this_cpu()->apic_id);
    sched_adopt_cpu();
    percpu_set_online();
    paging_flush_local(0, PAGING_FLUSH_ALL);
    preempt_enable_no_resched();
    sched_idle();
}

/* ---- on CPU 0 -------------------------------------------------------------------------- */

/* trampoline_write - the template with its own addresses filled in. */
static void trampoline_write(uint64_t phys)
{
    uint8_t *page = phys_to_virt(phys);
    size_t len = (size_t)(ap_trampoline_template_end - ap_trampoline_template);
    const uint32_t *fixup = ap_trampoline_fixups_table;

    ASSERT(len <= PAGE_SIZE);
    memcpy(page, ap_trampoline_template, len);
    for (; fixup < ap_trampoline_fixups_table_end; fixup++) {
        uint32_t value;

        memcpy(&value, page + *fixup, sizeof(value));
        value += (uint32_t)phys;
        memcpy(page + *fixup, &value, sizeof(value));
    }
}

/* trampoline_make - Return: its page; FRAME_NONE without memory. */
static uint64_t trampoline_make(void)
{
    uint64_t phys = frame_alloc_low(MiB);
    uint64_t tables;

    if (phys == FRAME_NONE)
        return FRAME_NONE;
    trampoline_write(phys);
    tables = paging_ap_tables(phys);
    if (tables == FRAME_NONE) {
        frame_free(phys);
        return FRAME_NONE;
    }
    ap_start_cr3 = (uint32_t)tables;
    ap_start_cr0 = (uint32_t)read_cr0();
    ap_start_efer = (uint32_t)(rdmsr(MSR_EFER) & (EFER_LME | EFER_NXE));
    return phys;
}

static void trampoline_free(uint64_t phys)
{
    paging_ap_tables_free();
    frame_free(phys);
}

static bool is_ours_to_start(const struct madt_cpu *cpu)
{
    return cpu->enabled && cpu->apic_id != percpu_of(0)->apic_id;
}

static void init_all(const struct madt_info *info)
{
    for (unsigned i = 0; i < info->cpu_count; i++)
        if (is_ours_to_start(&info->cpus[i]))
            lapic_send_init(info->cpus[i].apic_id);
    clock_spin_ns(INIT_SETTLE_NS);
}

/* came_online - wait until there are @count CPUs, for @ns at most. */
static bool came_online(unsigned count, uint64_t ns)
{
    uint64_t end = clock_ns() + ns;

    while (cpu_count() < count) {
        if (clock_ns() >= end)
            return false;
        pause();
    }
    return true;
}

/* start_and_wait - a CPU that has started ignores further start IPIs. One that is given up
 * is put back into its reset, lest it wakes up later and runs on the next one's stack.
 */
static bool start_and_wait(const struct percpu *cpu, uint64_t trampoline)
{
    uint64_t end = clock_ns() + GIVE_UP_NS;

    while (clock_ns() < end) {
        lapic_send_startup(cpu->apic_id, (unsigned)(trampoline / PAGE_SIZE));
        if (came_online(cpu->id + 1, RETRY_NS))
            return true;
    }
    lapic_send_init(cpu->apic_id);
    return false;
}

static bool start_one(uint32_t apic_id, uint64_t trampoline)
{
    unsigned id = cpu_count();
    struct percpu *cpu = percpu_add(id, apic_id);
    struct thread *idle = thread_create_idle(id);

    if (!cpu || !idle) {
        log_error("smp: no memory for CPU %u", id);
        return false;
    }
    ap_percpu = cpu;
    ap_start_stack = (uintptr_t)idle->stack_top;
    if (start_and_wait(cpu, trampoline))
        return true;
    log_error("smp: the CPU with APIC id %u does not start", apic_id);
    return false;
}

static void start_all(const struct madt_info *info, uint64_t trampoline)
{
    init_all(info);
    for (unsigned i = 0; i < info->cpu_count && cpu_count() < MAX_CPUS; i++)
        if (is_ours_to_start(&info->cpus[i]))
            if (!start_one(info->cpus[i].apic_id, trampoline))
                break;
}

void smp_start(const struct madt_info *info)
{
    uint64_t start_ns = clock_ns();
    uint64_t trampoline = trampoline_make();

    if (trampoline == FRAME_NONE) {
        log_error("smp: no memory below 1 MiB to start other CPUs from");
        return;
    }
    start_all(info, trampoline);
    trampoline_free(trampoline);
    log_info("smp: %u CPUs online after %llu us", cpu_count(),
             (unsigned long long)(clock_ns() - start_ns) / 1000);
}
