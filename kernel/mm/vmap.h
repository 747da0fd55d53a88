/* vmap.h - maps memory and devices at addresses of their own. A hole lies behind each
 * mapping, so that an access behind its end faults.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* vmap_init - Context: boot. It is called by paging_init(). */
void vmap_init(void);

/* vmap_alloc - allocate zeroed memory: one piece of addresses, single frames.
 * @len:   bytes, 1 and up; rounded up to pages
 * @prot:  PROT_W or PROT_R, see paging.h
 *
 * Context: boot or thread.  Locks: takes the vmap lock.
 * Return:  page-aligned address; NULL without memory or addresses.
 */
void *vmap_alloc(size_t len, unsigned prot);

/* vmap_free - free memory of vmap_alloc().
 * @p: from vmap_alloc(), or NULL   @len: as for vmap_alloc()
 *
 * Context: thread, interrupts on; boot. It shoots down.
 */
void vmap_free(void *p, size_t len);

/* vmap_device - map a device's registers for ever, uncached, R+W.
 * @phys: any alignment
 *
 * Return: the address that maps @phys; NULL without memory or addresses.
 */
void *vmap_device(uint64_t phys, size_t len);
