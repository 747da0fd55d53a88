/* port_fake_rooms.c - the functions of port_fake that only the rooms above the core
 * use.
 */
#include "probes/jump/optimize.h"
#include "probes/program/platform_program.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/return_point.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_phases.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

#define PLACES_MAX 16

static uint32_t targets[PLACES_MAX]; /* by address; the last one lies outside of text */
static size_t target_count;
static struct plat_opaque opaques[PLACES_MAX]; /* by address */
static size_t opaque_count;
static uintptr_t compiled[PLACES_MAX];
static size_t compiled_count;

/* ---- start and end ---- */

void fake_rooms_start(void)
{
    target_count = 1;
    targets[0] = UINT32_MAX;
    opaque_count = compiled_count = 0;
    optimize_set_method(OPTIMIZE_OFF); /* tests of jumps switch them on */
    fake_pads_start();
    text_phases_watch(NULL);
    text_engine_set(text_engines[0]);
}

void fake_watch_phases(void (*fn)(const struct text_phase *p))
{
    plat_lock(PLAT_TEXT);
    text_phases_watch(fn);
    plat_unlock(PLAT_TEXT);
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

/* ---- what is known of text ---- */

static uintptr_t text_start(void)
{
    uintptr_t start, end;

    fake_extent(&start, &end);
    return start;
}

void fake_target(uintptr_t addr)
{
    uint32_t off = (uint32_t)(addr - text_start());
    size_t i = target_count++;

    if (target_count > PLACES_MAX)
        abort();
    for (; i && targets[i - 1] > off; i--)
        targets[i] = targets[i - 1];
    targets[i] = off;
}

void fake_opaque(uintptr_t start, uintptr_t end)
{
    uint32_t off = (uint32_t)(start - text_start());
    size_t i = opaque_count++;

    if (opaque_count > PLACES_MAX)
        abort();
    for (; i && opaques[i - 1].start > off; i--)
        opaques[i] = opaques[i - 1];
    opaques[i] = (struct plat_opaque){ off, (uint32_t)(end - text_start()) };
}

void fake_no_targets(void)
{
    target_count = opaque_count = 0;
}

void plat_targets(uintptr_t addr __attribute__((unused)), struct plat_targets *out)
{
    *out = (struct plat_targets){
        .base = text_start(),
        .offsets = targets,
        .count = target_count,
        .opaque = opaques,
        .opaque_count = opaque_count,
    };
}

void fake_compiled(uintptr_t start)
{
    if (compiled_count == PLACES_MAX)
        abort();
    compiled[compiled_count++] = start;
}

bool plat_is_compiled(uintptr_t addr)
{
    for (size_t i = 0; i < compiled_count; i++)
        if (compiled[i] == addr)
            return true;
    return false;
}

/* ---- jumps ---- */

int plat_text_store(uintptr_t addr, const void *bytes, size_t len)
{
    return plat_text_write(addr, bytes, len);
}

uintptr_t plat_detour(enum plat_detour which)
{
    return fake.detours_far ? 0x1000 : fake_text_end() - 64 * (uintptr_t)(which + 1);
}

bool plat_is_detour(uintptr_t addr)
{
    return addr >= fake_text_end() - (uintptr_t)(64 * PLAT_DETOURS) &&
           addr < fake_text_end();
}

const struct plat_pattern *plat_detour_specialized(enum plat_specialized which UNUSED,
                                                   bool flags_live UNUSED)
{
    return fake.specialized;
}

int32_t plat_counter_disp(size_t i)
{
    return (int32_t)(0x1000 + 8 * i);
}

int32_t plat_fact_disp(enum plat_fact which)
{
    return 0x100 + 4 * (int32_t)which;
}

uint32_t plat_fact(enum plat_fact which)
{
    return 1 + (uint32_t)which;
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
