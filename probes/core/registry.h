/* registry.h - finds the site of an address, for hits on any CPU at any moment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* registry_insert - publish @site. Locks: PLAT_PROBES held.  Return: 0; -ENOMEM. */
int registry_insert(struct site *site);
/* registry_remove - let registry_find() no longer find @site. The caller has disarmed the
 * site and waited, so that no CPU can run into its address. Hits of other addresses may
 * still read @site while they search the table. So the caller frees @site only after
 * plat_sync_cores(), which returns when all these searches have ended.
 * Locks: PLAT_PROBES held.
 */
void registry_remove(struct site *site);

/* registry_replace - let registry_find() find @new instead of @old; both have the same
 * address. CPUs may run into that address all the time, and may find @old until the
 * caller has called plat_sync_cores(). After that, the caller calls cache_forget(), so
 * that no CPU's cache remembers @old any more, and frees @old after quiescence.
 * Locks: PLAT_PROBES held.
 */
void registry_replace(struct site *old, struct site *new);

/* registry_find - return the site at exactly @addr; NULL: there is none.
 * Context: any. Interrupts are off or PLAT_PROBES is held until the caller does not need
 *          the site any more.
 *          Only a hit of that site may keep it longer: it is freed after quiescence.
 */
struct site *registry_find(uintptr_t addr);
/* registry_count - return the number of sites. */
extern size_t registry_sites;
static inline size_t registry_count(void)
{
    return registry_sites;
}
/* registry_bytes - return the memory that the table takes. */
size_t registry_bytes(void);
/* registry_for_each - call @fn for each site, in no order. @fn must not change the
 * registry. Locks: PLAT_PROBES held.
 */
void registry_for_each(void (*fn)(struct site *site, void *arg), void *arg);
/* registry_mark - let registry_for_each_marked() visit @site. Nothing is done for a site
 * that is not in the registry. registry_replace() keeps the mark.
 * registry_for_each_marked - call @fn for each marked site, in no order. @fn must not
 * change the registry. If it returns false, the site loses its mark.
 * Locks: PLAT_PROBES held.
 */
void registry_mark(const struct site *site);
void registry_for_each_marked(bool (*fn)(struct site *site, void *arg), void *arg);
/* registry_exit - free the table when it is empty. Locks: PLAT_PROBES held. */
void registry_exit(void);
