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

/* cache_find - the site that an int3 at @addr belongs to: armed there, or behind the copy in
 * its step slot; NULL when there is none. NMIs go past the cache: they may have come in the
 * middle of an update.
 * @in_nmi: is the hit in NMI context?
 * Context: trap, on @cpu.
 */
NOKPROBE_INLINE struct site *cache_find(struct probe_cpu *cpu, uintptr_t addr,
                                        bool in_nmi)
{
    size_t i = cache_index(addr);
    struct site *site;

    if (likely(!in_nmi && cpu->cache[i].addr == addr))
        return cpu->cache[i].site;
    site = registry_find(addr);
    if (!site)
        site = step_site(addr);
    if (in_nmi)
        return site;
    probe_count(&cpu->cache_misses);
    if (site) {
        cpu->cache[i].addr = addr;
        cpu->cache[i].site = site;
    }
    return site;
}

static inline void cache_forget_at(struct probe_cpu *cpu, uintptr_t addr,
                                   const struct site *site)
{
    size_t i = cache_index(addr);

    if (READ_ONCE(cpu->cache[i].site) == site)
        WRITE_ONCE(cpu->cache[i].addr, 0);
}

/* cache_forget - no CPU remembers @site any more, nor can run into it.
 * Locks: PLAT_PROBES held.
 */
static inline void cache_forget(const struct site *site)
{
    for (unsigned id = 0; id < plat_cpu_count(); id++) {
        struct probe_cpu *cpu = plat_probe_cpu(id);

        if (!cpu)
            continue;
        cache_forget_at(cpu, site->addr, site);
        cache_forget_at(cpu, (uintptr_t)site->step_slot + site->len, site);
    }
}
