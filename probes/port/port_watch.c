/* port_watch.c - the kernel's implementation of platform_watch.h, by debug registers. */
#include "kernel/base/compiler.h"
#include "kernel/cpu/debug_reg.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/backtrace.h"
#include "kernel/memmap.h"
#include "probes/core/insn_slot.h"
#include "probes/core/registry.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"
#include "probes/port/port.h"
#include "probes/region/region.h"
#include "probes/watch/platform_watch.h"
#include "probes/watch/watch_parts.h"

extern const char image_text_start[], image_text_end[];

_Static_assert(WATCH_SLOTS == DEBUG_REGS, "a slot for each register");

/* ---- the registers ---- */

COLD int plat_watch_take(const char *owner)
{
    return debug_reg_take(owner, NULL);
}

void plat_watch_give(unsigned reg)
{
    debug_reg_give(reg);
}

const char *plat_watch_owner(unsigned reg)
{
    return debug_reg_owner(reg);
}

COLD void plat_watch_set(unsigned reg, uintptr_t addr, unsigned kind, size_t len)
{
    static const enum debug_reg_kind kinds[WATCH_KINDS] = {
        [WATCH_WRITE] = DEBUG_REG_WRITE,
        [WATCH_ACCESS] = DEBUG_REG_ACCESS,
        [WATCH_EXECUTE] = DEBUG_REG_EXECUTE,
    };

    debug_reg_put(reg, addr, kinds[kind], len);
    debug_regs_load_all();
}

void plat_watch_move(unsigned reg, uintptr_t addr)
{
    debug_reg_move(reg, addr);
    debug_regs_load_soon();
}

uintptr_t plat_watch_addr(unsigned reg)
{
    return debug_reg_addr(reg);
}

/* ---- traps ---- */

unsigned plat_watch_bits(unsigned long dr6)
{
    return debug_reg_hits(dr6);
}
NOKPROBE(plat_watch_bits);

bool plat_watch_is_inner(const struct pt_regs *regs)
{
    return debug_regs_at_entry(regs);
}
NOKPROBE(plat_watch_is_inner);

void plat_watch_tell(struct pt_regs *regs, unsigned bits, bool miss)
{
    debug_regs_tell(regs, bits, miss);
}
NOKPROBE(plat_watch_tell);

void plat_watch_rest(unsigned bits)
{
    debug_regs_rest(bits);
}
NOKPROBE(plat_watch_rest);

uintptr_t plat_watch_ip(const struct pt_regs *regs)
{
    uintptr_t ip = regs->ip;
    size_t off;
    const struct site *site = insn_slot_owner(ip, &off);

    /* At the entry of a cell the program's call has pushed its return address. */
    if ((ip >= (uintptr_t)image_text_start && ip < (uintptr_t)image_text_end) ||
        (site && ip < detour_start(site, ip - off) && ip != (uintptr_t)site_detour(site)))
        return 0;
    backtrace_collect(regs, &ip, 1);
    return ip;
}

/* ---- addresses ---- */

COLD bool plat_watch_is_own(uintptr_t addr, size_t len)
{
    return debug_reg_is_own(addr, len);
}

bool plat_watch_is_kernel(uintptr_t addr)
{
    return addr >= DIRECT_MAP_BASE;
}

/* Two things let a CPU run the instruction without coming to @addr, and are taken away: the
 * jump of a region around @addr, which becomes a breakpoint; and a link from the detour of
 * the instruction in front to the detour of the jump at @addr. To remove the link, the jump
 * at @addr becomes a breakpoint; later it may become a jump again, without the link.
 */
COLD void plat_watch_execute(uintptr_t addr)
{
    struct site *site;

    if (!addr) {
        optimize_retry();
        return;
    }
    unoptimize_region(addr); /* this may free sites */
    site = registry_find(addr);
    if (site && link_into(addr))
        unoptimize_around(&site, 1);
}

INIT void port_watch_init(void)
{
    /* Only entry.asm calls this; it passes the CPU's area as an untyped pointer. */
    trap_set_direct(TRAP_DB, (trap_direct_t)watch_debug_handler);
}
