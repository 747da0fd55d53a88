/* entry.c - stage 1 of jprobes and return probes: checks that a function begins there. */
#include "probes/returns/entry.h"

#include "probes/core/life.h"

int entry_resolve(const struct kprobe *p, uintptr_t *addr, struct probe_reject *why)
{
    struct plat_symbol sym;
    int err = register_resolve(p, addr, why);

    if (err)
        return err;
    if (plat_symbol_at(*addr, &sym))
        return probe_refuse(why, PROBE_NO_FUNCTION, *addr);
    return sym.start == *addr ? 0 : probe_refuse(why, PROBE_NOT_ENTRY, *addr);
}
