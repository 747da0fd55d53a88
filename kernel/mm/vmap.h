/* vmap.h - memory and devices mapped at addresses of their own, with a hole behind each
 * mapping, so that running over its end faults.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* vmap_init - Context: boot; called by paging_init(). */
void vmap_init(void);

/* vmap_alloc - zeroed memory, in one piece to us, in single frames physically.
 * @len:   bytes, 1 and up; rounded up to pages
 * @prot:  PROT_W or PROT_R, see paging.h
 *
 * Context: boot, thread.  Locks: takes the vmap lock.
 * Return:  page-aligned address; NULL without memory or addresses.
 */
void *vmap_alloc(size_t len, unsigned prot);

/* vmap_free - Context: thread, interrupts on (shoots down); boot.
 * @p: from vmap_alloc(), or NULL   @len: as then
 */
void vmap_free(void *p, size_t len);

/* vmap_device - a device's registers, uncached, R+W; stays for ever.
 * @phys: any alignment
 *
 * Return: where @phys is seen; NULL without memory or addresses.
 */
void *vmap_device(uint64_t phys, size_t len);
