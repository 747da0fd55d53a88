/* frame.h - allocates physical memory in frames of 4 KiB.
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

/* frame_init - make all RAM free but the image, boot modules, frame 0, and memory for the
 * bookkeeping: a little more than 1 bit per frame.
 * Context: boot. Until paging_init(), only RAM below 4 GiB can be reached; the lowest
 *          free frames are allocated first, so they can be reached.
 */
void frame_init(const struct boot_info *info);

/* frame_alloc - allocate a zeroed frame: the lowest free frame above 1 MiB, or, if none is
 * free there, the lowest of all.
 * frame_alloc_low - allocate a zeroed frame below @limit. With @limit <= 1 MiB the frame
 * is in the first MiB, where real mode code must be, else above.
 * frame_alloc_run - allocate @count zeroed frames in one piece.
 * frame_alloc_run_aligned - do as frame_alloc_run(), but the number of the first frame is
 * a multiple of @align.
 * @limit:  physical address that the frame ends at or below
 * @count:  1 and up   @align: a power of two
 *
 * Context: thread or boot or held, interrupts on or off.  Locks: takes the frame lock.
 * Return:  physical address; FRAME_NONE when there is no such memory.
 */
uint64_t frame_alloc(void);
uint64_t frame_alloc_low(uint64_t limit);
uint64_t frame_alloc_run_aligned(size_t count, size_t align);

static inline uint64_t frame_alloc_run(size_t count)
{
    return frame_alloc_run_aligned(count, 1);
}

/* frame_free, frame_free_run - free frames, in any pieces, not only in the pieces in
 * which they were allocated. A frame that is free already causes a panic that names the
 * frame.
 *
 * Only the direct map may map the frames now, and it must map them writable.
 *
 * Context, Locks: as frame_alloc().
 */
void frame_free(uint64_t phys);
void frame_free_run(uint64_t phys, size_t count);

/* frame_give - make frames free that were in use since boot, such as frames of the image.
 * Context, Locks: as frame_alloc().
 */
void frame_give(uint64_t phys, size_t count);

/* frame_stats_get - Context: as frame_alloc(). */
void frame_stats_get(struct frame_stats *out);

/* phys_to_virt - get the address at which the direct map shows @phys. Context: any. */
static inline void *phys_to_virt(uint64_t phys)
{
    return (void *)(uintptr_t)(phys + DIRECT_MAP_BASE);
}

/* virt_to_phys - get the physical address of @p, which lies in the direct map or in the
 * image. Other memory is not contiguous: see page_lookup(). Context: any.
 */
static inline uint64_t virt_to_phys(const void *p)
{
    uintptr_t va = (uintptr_t)p;

    return va >= IMAGE_START ? va - KERNEL_VMA : va - DIRECT_MAP_BASE;
}
