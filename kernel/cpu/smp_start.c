/* smp_start.c - starts the other CPUs, one after the other, with boot/ap_start.asm.
 *
 *   1. copy the trampoline to a page below 1 MiB; make tables that map it and the kernel
 *   2. send INIT to all other CPUs, and wait 10 ms: then each of them waits for a start
 *      address
 *   3. for each CPU: make its area and its idle thread, on the stack of which the CPU
 *      starts; send the start IPI, and a second start IPI after 200 us; wait until the
 *      CPU is online
 *   4. free the page and the tables
 *
 * A busy host delivers an IPI late, so step 3 repeats the start IPI; a CPU that runs
 * already ignores it. A CPU that is not online after GIVE_UP_NS is reported and left out;
 * its area and its thread serve the next CPU. When memory runs short, no more CPUs are
 * started.
 *
 * Only one CPU at a time is between its start IPI and percpu_set_online(). So single
 * variables, the ap_start_* of ap_start.asm, hold what it needs to know.
 *
 * Source: SDM vol. 3A, "Typical BSP Initialization Sequence" and "Typical AP Initialization
 *         Sequence" of "MP Initialization"; "Issuing IPIs" for INIT and the start IPI.
 */
#include "kernel/base/compiler.h"
#include "kernel/cpu/debug_reg.h"
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

#define INIT_SETTLE_NS UINT64_C(10000000)
#define SECOND_NS UINT64_C(200000)  /* from the first start IPI to the second */
#define RETRY_NS UINT64_C(10000000) /* from the second to the third, and so on */
#define GIVE_UP_NS UINT64_C(5000000000)

/* Frames that a CPU takes, and frames that boot and the first commands need later. */
#define CPU_FRAMES 24
#define LATER_FRAMES(cpus) (256 + 4 * (cpus))

/* boot/ap_start.asm */
extern const uint8_t ap_trampoline_template[], ap_trampoline_template_end[];
extern const uint32_t ap_trampoline_fixups_table[], ap_trampoline_fixups_table_end[];
extern uint32_t ap_start_cr3, ap_start_cr0, ap_start_efer;
extern uint64_t ap_start_stack;

static struct percpu *ap_percpu; /* of the CPU that is being started, or did not start */

/* The CPU that is being started sets it when it begins, and CPU 0 when it gives that CPU up.
 * The first of the two wins, so a CPU that counts as online is never reset.
 */
static bool ap_is_decided;

/* ---- on the new CPU -------------------------------------------------------------------- */

/* ap_main - run a further CPU: the first C code, on the stack of its idle thread. The CPU
 * may have cached page table entries that changed before it was online, and no shootdown
 * came here then. So it flushes its whole TLB once it is online.
 */
_Noreturn void ap_main(void);
void ap_main(void)
{
    if (__atomic_exchange_n(&ap_is_decided, true, __ATOMIC_SEQ_CST))
        for (;;)
            hlt(); /* given up: INIT comes */
    percpu_load(ap_percpu);
    features_init_cpu();
    memory_types_init_cpu();
    write_cr3(paging_cr3());
    lapic_init_cpu();
    ASSERT(lapic_id() == this_cpu()->apic_id);
    sched_adopt_cpu();
    percpu_set_online();
    debug_regs_load();
    paging_flush_local(0, PAGING_FLUSH_ALL);
    preempt_enable_no_resched();
    sched_idle();
}

/* ---- on CPU 0 -------------------------------------------------------------------------- */

/* trampoline_write - copy the template to its page, and fill in the page's addresses. */
static INIT void trampoline_write(uint64_t phys)
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

/* trampoline_make - make the trampoline and its tables, and set the ap_start_* variables.
 * Return: its page; FRAME_NONE without memory.
 */
static INIT uint64_t trampoline_make(void)
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

static INIT void trampoline_free(uint64_t phys)
{
    paging_ap_tables_free();
    frame_free(phys);
}

static INIT bool is_ours_to_start(uint32_t apic_id)
{
    return apic_id != percpu_of(0)->apic_id;
}

static INIT void init_all(const struct madt_info *info)
{
    for (unsigned i = 0; i < info->cpu_count; i++)
        if (is_ours_to_start(info->cpus[i]))
            lapic_send(info->cpus[i], LAPIC_INIT);
    clock_spin_ns(INIT_SETTLE_NS);
}

/* came_online - wait until @count CPUs are online, for @ns at most. Return: are they? */
static ALWAYS_INLINE INIT bool came_online(unsigned count, uint64_t ns)
{
    struct clock_wait wait = { .last = clock_ns() };

    while (cpu_count() < count) {
        if (clock_waited(&wait, ns))
            return false;
        pause();
    }
    return true;
}

/* start_and_wait - send start IPIs, and wait until the CPU is online. A CPU that is given
 * up is reset by INIT: else it could start later, and run on the stack of the next CPU. A
 * CPU that begins in the last moment is waited for.
 * Return: is it online?
 */
static INIT bool start_and_wait(const struct percpu *cpu, uint64_t trampoline)
{
    uint64_t patience = SECOND_NS;
    unsigned tries = 0;

    ap_is_decided = false;
    do {
        lapic_send(cpu->apic_id, LAPIC_STARTUP | (unsigned)(trampoline / PAGE_SIZE));
        if (came_online(cpu->id + 1, patience))
            return true;
        patience = RETRY_NS;
    } while (++tries <= GIVE_UP_NS / RETRY_NS);
    if (__atomic_exchange_n(&ap_is_decided, true, __ATOMIC_SEQ_CST)) {
        while (!came_online(cpu->id + 1, GIVE_UP_NS))
            ;
        return true;
    }
    lapic_send(cpu->apic_id, LAPIC_INIT);
    return false;
}

/* memory_suffices - is there memory for CPU @id, and for the parts of the kernel that boot
 * starts later? Without it boot would have to panic then.
 */
static INIT bool memory_suffices(unsigned id)
{
    struct frame_stats stats;

    frame_stats_get(&stats);
    return stats.free >= CPU_FRAMES + LATER_FRAMES(id + 1);
}

/* next_prepare - make the area and the idle thread for the next CPU, unless a CPU that
 * did not start has left them. Return: false without memory.
 */
static INIT bool next_prepare(void)
{
    unsigned id = cpu_count();
    struct thread *idle;

    if (ap_percpu && ap_percpu->id == id)
        return true;
    ap_percpu = memory_suffices(id) ? percpu_add(id) : NULL;
    idle = ap_percpu ? thread_create_idle(id) : NULL;
    if (!idle) {
        log_error("smp: no memory for CPU %u and those after it", id);
        return false;
    }
    ap_start_stack = (uintptr_t)idle->stack_top;
    return true;
}

static INIT void start_one(uint32_t apic_id, uint64_t trampoline)
{
    ap_percpu->apic_id = apic_id;
    if (!start_and_wait(ap_percpu, trampoline))
        log_error(
            "smp: the CPU with APIC id %u has not started in %llu ms; it is left out",
            apic_id, (unsigned long long)GIVE_UP_NS / 1000000);
}

static INIT void start_all(const struct madt_info *info, uint64_t trampoline)
{
    init_all(info);
    for (unsigned i = 0; i < info->cpu_count && cpu_count() < MAX_CPUS; i++) {
        if (!is_ours_to_start(info->cpus[i]))
            continue;
        if (!next_prepare())
            break;
        start_one(info->cpus[i], trampoline);
    }
}

INIT void smp_start(const struct madt_info *info)
{
    uint64_t start_ns = clock_ns();
    uint64_t trampoline = trampoline_make();

    if (trampoline == FRAME_NONE) {
        log_error("smp: no memory below 1 MiB to start other CPUs from");
        return;
    }
    start_all(info, trampoline);
    trampoline_free(trampoline);
    if (info->cpus_ignored)
        log_warn("smp: %u more CPUs are left out: sonde has room for %u",
                 info->cpus_ignored, MAX_CPUS);
    log_info("smp: %u CPUs online after %llu us", cpu_count(),
             (unsigned long long)(clock_ns() - start_ns) / 1000);
}
