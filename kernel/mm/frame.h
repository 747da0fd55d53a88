/* frame.h - physical memory in frames of 4 KiB.
 *
 * A frame is named by its physical address. The kernel reaches every frame of RAM, and
 * the firmware's tables below 4 GiB, through the direct map.
 */
#pragma once

#include "kernel/base/boot_info.h"
#include "kernel/memmap.h"

#include <stddef.h>
#include <stdint.h>

#define FRAME_NONE (~UINT64_C(0))

struct frame_stats {
    size_t total; /* frames handed to the allocator */
    size_t free;  /* of these, not in use now */
};

/* frame_init - take all RAM that is not in use: not the image, not boot modules, not
 * frame 0. The bookkeeping, 1 bit and a little per frame, is taken from that RAM too.
 *
 * Context: boot; until paging_init() only RAM below 4 GiB is reachable, and lower frames
 *          are handed out first.
 */
void frame_init(const struct boot_info *info);

/* frame_alloc - one frame of zeroes, the lowest free one above 1 MiB.
 * frame_alloc_low - the same below @limit; with @limit <= 1 MiB from the first MiB, which
 *                   the other calls leave alone (real mode code must be there).
 * frame_alloc_run - @count frames of zeroes in one piece.
 * frame_alloc_run_aligned - the same; the first is a multiple of @align frames.
 * @limit:  physical address that the frame ends at or below
 * @count:  1 and up   @align: a power of two
 *
 * Context: thread, boot, or with interrupts off; not irq, trap or nmi.
 * Locks:   takes the frame lock.
 * Return:  physical address; FRAME_NONE when there is no such memory.
 */
uint64_t frame_alloc(void);
uint64_t frame_alloc_low(uint64_t limit);
uint64_t frame_alloc_run(size_t count);
uint64_t frame_alloc_run_aligned(size_t count, size_t align);

/* frame_free, frame_free_run - give frames back; in any pieces, not only those in which
 * they were allocated. A frame that is free already is a panic that names it.
 *
 * Nothing may map the frames any more but the direct map, writable.
 *
 * Context and Locks: as frame_alloc().
 */
void frame_free(uint64_t phys);
void frame_free_run(uint64_t phys, size_t count);

/* frame_give - frames that boot has kept, as the image's, are free from now on.
 * Context and Locks: as frame_alloc().
 */
void frame_give(uint64_t phys, size_t count);

/* frame_stats_get - Context: as frame_alloc(). */
void frame_stats_get(struct frame_stats *out);

/* phys_to_virt - where the direct map shows @phys. Context: any. */
static inline void *phys_to_virt(uint64_t phys)
{
    return (void *)(uintptr_t)(phys + DIRECT_MAP_BASE);
}

/* virt_to_phys - the other way. @p: in the direct map or in the image; nothing else is
 * contiguous, see page_lookup(). Context: any.
 */
static inline uint64_t virt_to_phys(const void *p)
{
    uintptr_t va = (uintptr_t)p;

    return va >= IMAGE_START ? va - KERNEL_VMA : va - DIRECT_MAP_BASE;
}
