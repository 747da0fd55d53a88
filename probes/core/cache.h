/* cache.h - keeps, for each CPU, the sites that it has hit last, so that most hits need
 * not search the registry.
 *
 * A CPU asks its cache only for an address at which it has just trapped. As long as CPUs
 * can trap at an address because of a site, this site is the right answer. When they no
 * longer can, registry_remove() removes the site from all caches. The functions that hits
 * call are inline, since a look at the cache is the first thing that every hit does.
 */
#pragma once

#include "probes/core/life.h"
#include "probes/core/registry.h"

NOKPROBE_INLINE size_t cache_index(uintptr_t addr)
{
    return (addr ^ (addr >> 6)) % PROBE_CACHE_LEN;
}

/* cache_add - remember in entry @i of the cache that @key leads to @site, which the
 * registry has found. Nothing is remembered in an NMI, or if @site is NULL.
 * Return: is @site not NULL?
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

/* cache_find - find the site that the int3 at @addr belongs to. The int3 is either the
 * site's breakpoint, or the end of the copy in its step slot. A hit in an NMI does not
 * use the cache: the NMI may have interrupted an update of it.
 * @in_nmi: is the hit in NMI context?
 * Context: trap. The CPU is @cpu.  Return: false when there is none.
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

/* cache_find_step - find the site that a step belongs to: the CPU has single-stepped (TF)
 * to @ip. The cache remembers such a step under the key ~@ip, in the entry that an int3
 * at @ip would use. The key @ip would be wrong: a program that steps itself may reach the
 * address of any breakpoint, and that site may be about to be freed. The key ~@ip is
 * stored only for an address at the end of a step slot, and while a CPU is in the slot
 * the site is not freed.
 * Context: trap. The CPU is @cpu.  Return: false: the step was not one of the engine's.
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

/* cache_forget - remove @site from the caches of all CPUs. The caller makes sure that no
 * hit can find @site any more. Locks: PLAT_PROBES held.
 */
void cache_forget(const struct site *site);
