/* port_fake_rooms.c - the platform over arrays, as the rooms above the core see it. */
#include "probes/core/life.h"
#include "probes/explain/totals.h"
#include "probes/jump/optimize.h"
#include "probes/jump/platform_jump.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/return_point.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

/* ---- start and end ---- */

void fake_rooms_start(void)
{
    optimize_set_method(OPTIMIZE_OFF); /* what is about jumps asks for them */
    fake_pads_start();
}

void fake_rooms_end(void)
{
    fake_shadow_end();
}

struct probe_totals fake_totals(void)
{
    struct probe_totals totals;

    account_totals(&totals);
    return totals;
}

/* ---- jumps ---- */

uintptr_t plat_detour(enum plat_detour which)
{
    return fake.detours_far ? 0x1000 : fake_text_end() - 64 * (uintptr_t)(which + 1);
}

bool plat_is_detour(uintptr_t addr)
{
    return addr >= fake_text_end() - (uintptr_t)(64 * PLAT_DETOURS) &&
           addr < fake_text_end();
}

const struct plat_pattern *plat_detour_specialized(enum plat_own which, bool flags_live)
{
    (void)which;
    (void)flags_live;
    return fake.own;
}

int32_t plat_counter_disp(size_t i)
{
    return (int32_t)(0x1000 + 8 * i);
}

void plat_optimize_soon(void)
{
    fake.kicks++;
}

/* ---- returns ---- */

static bool returned(struct pt_regs *regs, struct probe_cpu *cpu)
{
    kretprobe_return(regs, cpu);
    return true;
}

bool fake_return(struct pt_regs *regs)
{
    regs->ip = *(const uintptr_t *)regs->sp;
    regs->sp += sizeof(uintptr_t);
    return return_point_is(regs->ip) && fake_take(regs, returned);
}
