/* cache.h - each CPU's memory of the sites that it has hit last, in front of the registry.
 *
 * It holds copies of what the registry said, and needs no invalidation while a site is
 * there: it is only ever asked for an address that has just trapped. Inline, since it is
 * the first thing that every hit does.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/core/registry.h"

NOKPROBE_INLINE size_t cache_index(uintptr_t addr)
{
    return (addr ^ (addr >> 6)) % PROBE_CACHE_LEN;
}

/* cache_add - keep in entry @i of the cache that @site, which the registry has found, belongs
 * to the address @key.  Return: is there a site?
 */
NOKPROBE_INLINE bool cache_add(struct probe_cpu *cpu, size_t i, uintptr_t key,
                               struct site *site, bool in_nmi)
{
    if (site && !in_nmi) {
        cpu->cache[i].addr = key;
        cpu->cache[i].site = site;
    }
    return site != NULL;
}

/* cache_find - the site that an int3 at @addr belongs to: armed there, or behind the copy in
 * its step slot. NMIs go past the cache: they may have come in the middle of an update.
 * @in_nmi: is the hit in NMI context?
 * Context: trap, on @cpu.  Return: false when there is none.
 */
NOKPROBE_INLINE bool cache_find(struct probe_cpu *cpu, uintptr_t addr, bool in_nmi,
                                struct site **site)
{
    size_t i = cache_index(addr);

    *site = cpu->cache[i].site;
    if (likely(!in_nmi && cpu->cache[i].addr == addr))
        return true;
    if (!in_nmi)
        probe_count(&cpu->cache_misses);
    *site = registry_find(addr);
    if (!*site)
        *site = step_site(addr);
    return cache_add(cpu, i, addr, *site, in_nmi);
}

/* cache_find_step - the site whose step, if it was by TF, has just led to @ip. Its entry
 * has the index of an int3 at @ip, but another key: a program that steps itself may come to
 * any address, also to one whose site is about to be freed. Only inside the slot of a step
 * is the site certain to stay.
 * Context: as above.  Return: false when it was not a step of the engine's.
 */
NOKPROBE_INLINE bool cache_find_step(struct probe_cpu *cpu, uintptr_t ip, bool in_nmi,
                                     struct site **site)
{
    size_t i = cache_index(ip);

    *site = cpu->cache[i].site;
    if (likely(!in_nmi && cpu->cache[i].addr == ~ip))
        return true;
    *site = step_site(ip);
    return cache_add(cpu, i, ~ip, *site, in_nmi);
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
        cache_forget_at(cpu, (uintptr_t)site_step_slot(site) + site->len, site);
    }
}
