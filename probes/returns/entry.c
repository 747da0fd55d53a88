/* entry.c - stage 1 of jprobes and return probes: checks that a function begins there. */
#include "probes/returns/entry.h"

#include "probes/core/life.h"
#include "probes/returns/platform_returns.h"

int entry_check(const struct kprobe *p, uintptr_t addr, struct probe_reject *why)
{
    struct plat_symbol sym;

    if (p->kind == KPROBE_KIND_PROBE)
        return 0;
    if (plat_symbol_at(addr, &sym))
        return probe_refuse(why, PROBE_NO_FUNCTION, addr);
    if (sym.start != addr)
        return probe_refuse(why, PROBE_NOT_ENTRY, addr);
    if (p->kind == KPROBE_KIND_RETURN && plat_switches_stack(addr))
        return probe_refuse(why, PROBE_SWITCHES_STACK, addr);
    return 0;
}
