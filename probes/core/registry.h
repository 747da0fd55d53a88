/* registry.h - from an address to its site, for hits on any CPU at any moment. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct site;

/* registry_insert - publish @site. Locks: PLAT_PROBES held.  Return: 0; -ENOMEM. */
int registry_insert(struct site *site);
/* registry_remove - from now on it is not found. No CPU may be able to run into the site's
 * address: disarm and wait first. Hits of other addresses may still be looking at it on
 * their way along the table, so it is freed only after plat_sync_cores(), which every
 * such hit has to end for.
 * Locks: PLAT_PROBES held.
 */
void registry_remove(struct site *site);

/* registry_replace - let @new, of the same address, be found in the place of @old. CPUs may
 * run into that address all the time: until plat_sync_cores() some of them still find @old.
 * registry_forget - then; no CPU remembers @old any more. It is freed after quiescence.
 * Locks: PLAT_PROBES held.
 */
void registry_replace(struct site *old, struct site *new);
void registry_forget(const struct site *old);

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
/* registry_exit - free the table when it is empty. Locks: PLAT_PROBES held. */
void registry_exit(void);
