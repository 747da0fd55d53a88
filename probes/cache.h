/* cache.h - each CPU's memory of the sites that it has hit last, in front of the registry.
 *
 * It holds copies of what the registry said, and needs no invalidation while a site is
 * there: it is only ever asked for an address that has just trapped. Inline, since it is
 * the first thing that every hit does.
 */
#pragma once

#include "probes/life.h"
#include "probes/registry.h"

NOKPROBE_INLINE size_t cache_index(uintptr_t addr)
{
    return (addr ^ (addr >> 6)) % PROBE_CACHE_LEN;
}

/* cache_find - the site of exactly @addr, NULL when there is none. NMIs go past the cache:
 * they may have come in the middle of an update.
 * Context: trap, on @cpu.
 */
NOKPROBE_INLINE struct site *cache_find(struct probe_cpu *cpu, uintptr_t addr)
{
    size_t i = cache_index(addr);
    struct site *site;

    if (unlikely(probe_in_nmi(cpu)))
        return registry_find(addr);
    if (likely(cpu->cache[i].addr == addr))
        return cpu->cache[i].site;
    probe_count(&cpu->cache_misses);
    site = registry_find(addr);
    if (site) {
        cpu->cache[i].addr = addr;
        cpu->cache[i].site = site;
    }
    return site;
}

/* cache_forget - no CPU remembers @site any more, nor can run into it.
 * Locks: PLAT_PROBES held.
 */
static inline void cache_forget(const struct site *site)
{
    size_t i = cache_index(site->addr);

    for (unsigned id = 0; id < plat_cpu_count(); id++) {
        struct probe_cpu *cpu = plat_probe_cpu(id);

        if (cpu && READ_ONCE(cpu->cache[i].site) == site)
            WRITE_ONCE(cpu->cache[i].addr, 0);
    }
}
