/* registry.h - from an address to its site, for hits on any CPU at any moment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* registry_insert - publish @site. Locks: PLAT_PROBES held.  Return: 0; -ENOMEM. */
int registry_insert(struct site *site);
/* registry_remove - from now on registry_find() does not find @site. The caller has
 * disarmed the site and waited, so that no CPU can run into its address. Hits of other
 * addresses may still read @site while they search the table. So the caller frees @site
 * only after plat_sync_cores(), which returns when all these hits have ended.
 * Locks: PLAT_PROBES held.
 */
void registry_remove(struct site *site);

/* registry_replace - from now on registry_find() finds @new instead of @old; both have
 * the same address. CPUs may run into that address all the time, and some of them still
 * find @old until the caller has called plat_sync_cores(). Behind that, the caller calls
 * cache_forget(), so that no CPU's cache remembers @old any more, and frees @old after
 * quiescence.
 * Locks: PLAT_PROBES held.
 */
void registry_replace(struct site *old, struct site *new);

/* registry_find - the site of exactly @addr, NULL when there is none.
 * Context: any, preemption off or PLAT_PROBES held.  Locks: none; entries are published
 * whole, and freed after quiescence.
 */
struct site *registry_find(uintptr_t addr);
size_t registry_count(void);
/* registry_bytes - memory the table takes. */
size_t registry_bytes(void);
/* registry_for_each - in no order. Locks: PLAT_PROBES held; @fn must not change it. */
void registry_for_each(void (*fn)(struct site *site, void *arg), void *arg);
/* registry_mark - @site is one of those that registry_for_each_marked() is for. A site that
 * is not in the registry is not marked. registry_replace() keeps the mark.
 * registry_for_each_marked - call @fn for each marked site, in no order. @fn must not change
 * the registry. If it returns false, the site loses its mark.
 * Locks: PLAT_PROBES held.
 */
void registry_mark(const struct site *site);
void registry_for_each_marked(bool (*fn)(struct site *site, void *arg), void *arg);
/* registry_exit - free the table when it is empty. Locks: PLAT_PROBES held. */
void registry_exit(void);
