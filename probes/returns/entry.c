/* entry.c - stage 1 of jprobes and return probes: checks that a function begins there. */
#include "probes/returns/entry.h"

#include "kernel/base/err.h"
#include "probes/core/life.h"
#include "probes/returns/platform_returns.h"

static void see_pop(const struct insn *insn, void *arg)
{
    *(bool *)arg |= insn->pop;
}

/* check_return - may a return probe be at the function @sym? An entry of the shadow is found
 * by its slot, which is right below the stack pointer after the `ret`. But a `ret` with an
 * operand adds the operand to the stack pointer.
 */
static int check_return(const struct plat_symbol *sym, struct probe_reject *why)
{
    bool pops = false;

    if (plat_switches_stack(sym->start))
        return probe_refuse(why, PROBE_SWITCHES_STACK, sym->start);
    if (boundary_for_each(sym, see_pop, &pops) == -ENOMEM)
        return probe_refuse(why, PROBE_NO_MEMORY, sym->start);
    return pops ? probe_refuse(why, PROBE_POPS_ARGUMENTS, sym->start) : 0;
}

int entry_check(const struct kprobe *p, uintptr_t addr, struct probe_reject *why)
{
    struct plat_symbol sym;

    if (p->kind == KPROBE_KIND_PROBE)
        return 0;
    if (plat_symbol_at(addr, &sym))
        return probe_refuse(why, PROBE_NO_FUNCTION, addr);
    if (sym.start != addr)
        return probe_refuse(why, PROBE_NOT_ENTRY, addr);
    return p->kind == KPROBE_KIND_RETURN ? check_return(&sym, why) : 0;
}
