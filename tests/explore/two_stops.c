/* two_stops.c - what gdb_stop.c needs of the kernel. */
#include "tests/explore/two_stops.h"

#include "kernel/cpu/lapic.h"
#include "kernel/cpu/smp.h"
#include "kernel/debug/backtrace.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/paging.h"
#include "kernel/time/clock.h"
#include "probes/core/extend.h"
#include "probes/core/insn_slot.h"
#include "probes/core/platform.h"
#include "probes/gdb/gdb_collect.h"
#include "probes/gdb/gdb_line.h"
#include "probes/jump/detour.h"
#include "probes/jump/platform_jump.h"
#include "probes/returns/platform_returns.h"

#include <string.h>

uint64_t two_stops_late;
bool (*two_stops_poll)(void);
static bool sent[MACHINE_CPUS];
static unsigned underway[MACHINE_CPUS]; /* that were sent before the last one came */
static uint64_t now;

void smp_send_nmi(unsigned cpu)
{
    WRITE_ONCE(sent[cpu], true);
    underway[cpu]++;
    explore_check(!two_stops_late || underway[cpu] <= 2,
                  "one NMI is enough, and one of an owner that insists");
}

bool two_stops_sent_0(void)
{
    return sent[0];
}

bool two_stops_sent_1(void)
{
    return sent[1];
}

void two_stops_nmi(struct pt_regs *regs)
{
    WRITE_ONCE(sent[explore_cpu()], false);
    underway[explore_cpu()] = 0;
    gdb_stop_nmi(regs);
}

void two_stops_again(void)
{
    if (gdb_is_stopping())
        WRITE_ONCE(sent[explore_cpu()], true);
}

void smp_end_halt(unsigned cpu UNUSED)
{
}

/* There are no regions. */
void ext_resume(const struct site *site UNUSED, struct pt_regs *regs UNUSED)
{
}

void lapic_halt(void)
{
    spin_without_pause(1);
}

uint64_t clock_ns(void)
{
    if (two_stops_late)
        now += two_stops_late;
    return now;
}

void smp_hold(void)
{
}

void smp_unhold(bool all_go UNUSED)
{
}

uintptr_t backtrace_original(uintptr_t addr, const uintptr_t *slot UNUSED,
                             uintptr_t sp UNUSED)
{
    return addr;
}

struct site *insn_slot_owner(uintptr_t addr UNUSED, size_t *off UNUSED)
{
    return NULL;
}

const char kretprobe_trampoline[1] = { 0 };

/* A detour lies at the end of memory. */
bool plat_is_detour(uintptr_t addr)
{
    return addr >= TWO_STOPS_DETOUR;
}

uintptr_t detour_start(const struct site *site UNUSED, uintptr_t cell)
{
    return cell;
}

bool gdb_collect_defers(void)
{
    return false;
}

bool gdb_line_attached(void)
{
    return true;
}

bool gdb_line_poll(void)
{
    return two_stops_poll && two_stops_poll();
}

void debug_regs_load(void)
{
}

void paging_flush_local(uintptr_t start UNUSED, size_t len UNUSED)
{
}
