/* explore_debug_reg.c - a CPU loads its debug registers and comes to a #DB, while an NMI
 * gives one of them another address, as the kernel's stub for gdb does.
 */
#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"

#define FIRST 0x1000
#define OTHER 0x2000
#define LAST 0x3000

/* The entry code of a #DB, by the addresses of its steps. */
const uint8_t entry_stubs[256][16], db_entry[64];
const uintptr_t db_entry_read = (uintptr_t)db_entry + 16,
                db_entry_cleared = (uintptr_t)db_entry + 32;

static uint64_t changes; /* of register 0, by the NMI */

/* ---- what the tested file calls, and what no actor here comes to ---- */

void lapic_send(uint32_t apic_id UNUSED, uint32_t command UNUSED)
{
}

void lapic_eoi(void)
{
}

void smp_call_all(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

void irq_set_handler(unsigned vector UNUSED, const char *name UNUSED,
                     irq_handler_t fn UNUSED)
{
}

bool trap_is_own(uintptr_t addr UNUSED, size_t len UNUSED)
{
    return false;
}

/* ---- actors ---- */

static void start(void)
{
    debug_reg_take("test", NULL);
    debug_reg_put(0, OTHER, DEBUG_REG_WRITE, 2);
    debug_regs_load();
    debug_reg_put(0, FIRST, DEBUG_REG_WRITE, 4);
    debug_reg_take("test", NULL);
    debug_reg_put(1, OTHER, DEBUG_REG_WRITE, 4);
}

/* db - the processor notes a hit in DR6, and the entry code saves what db_entry does. */
static void db(void)
{
    const struct percpu *cpu = this_cpu();
    uint64_t before;
    unsigned long dr6;
    unsigned hits;

    if (!(read_dr7() & 2))
        return;
    machine_self()->dr[6] |= 1;
    before = changes;
    dr6 = 0;
    for (unsigned i = 0; i < DEBUG_REGS; i++)
        dr6 |= (unsigned long)READ_ONCE(cpu->debug_changes[i]) << (32 + 8 * i);
    dr6 |= (uint32_t)read_dr6();
    write_dr6(0xffff0ff0);
    if (changes != before)
        explore_seen("a register changes before its hit is looked at");
    before = changes == before ? before : UINT64_MAX;
    hits = debug_reg_hits(dr6);
    explore_check(!(hits & 1) || before != UINT64_MAX,
                  "a hit of a register that has changed since is none");
    explore_check(hits & 1 || changes, "a hit of a register that stays is one");
    if (hits & 1)
        explore_seen("a hit");
}

static void thread(void)
{
    bool is_loaded;
    uint64_t before;

    debug_regs_load();
    do {
        before = changes;
        is_loaded = machine[0].dr[0] == debug_reg_addr(0);
    } while (before != changes);
    explore_check(is_loaded, "when a CPU has loaded, it has what the table says");
    db();
}

static void nmi(void)
{
    changes++;
    debug_reg_put(0, LAST, DEBUG_REG_ACCESS, 8);
    debug_regs_load();
    if (explore_choose(2)) {
        debug_reg_put(0, FIRST, DEBUG_REG_WRITE, 4);
        debug_regs_load();
    }
}

static void end(void)
{
    uint64_t dr7 = machine[0].dr[7];

    explore_check(machine[0].dr[0] == debug_reg_addr(0), "DR0 has the last address");
    explore_check(machine[0].dr[1] == debug_reg_addr(1), "and so has DR1");
    explore_check(dr7 & 2, "the register is on");
    explore_check((dr7 >> 16 & 15) == (debug_reg_addr(0) == LAST ? 11 : 13),
                  "its kind and length are those of the address");
}

const struct scenario scenario = {
    .start = start,
    .end = end,
    .actors = { { "thread", thread, 0, EXPLORE_THREAD }, { "nmi", nmi, 0, EXPLORE_NMI } },
    .outcomes = { "a hit", "a register changes before its hit is looked at" },
};
