/* frame.c - allocates physical memory in frames of 4 KiB.
 *
 * Owns all RAM that boot left free. The lowest free frame is allocated first: early boot
 * can reach only the first 4 GiB.
 */
#include "kernel/mm/frame.h"

#include "kernel/base/compiler.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/free_set.h"
#include "kernel/sync/spinlock.h"

#include <string.h>

#define FRAME_SHIFT 12
#define FIRST_MIB_FRAMES (MiB >> FRAME_SHIFT)

/* The set of free frames, by frame number. Frames of the first MiB are handed out last,
 * because the other CPUs start from one of them.
 */
static struct {
    struct spinlock lock;
    struct free_set set; /* [lock] */
    size_t total;        /* [lock] */
} frames = { .lock = SPINLOCK_INIT };

/* .boot at 1 MiB, which linker.ld keeps below 64 KiB. Boot has used it before there was
 * an allocator, and it never becomes free.
 */
static const struct boot_range boot_range = { MiB, MiB + 64 * KiB, BOOT_RESERVED };

static INIT uint64_t image_end(void)
{
    return align_up(virt_to_phys(_end), PAGE_SIZE);
}

/* How many frames lie below @end, and in the direct map. */
static INIT size_t frame_up_to(uint64_t end)
{
    return (end < DIRECT_MAP_MAX ? end : DIRECT_MAP_MAX) >> FRAME_SHIFT;
}

static INIT size_t count_up_to_last(const struct boot_info *info)
{
    uint64_t end = 0;

    for (unsigned i = 0; i < info->range_count; i++) {
        if (info->ranges[i].type == BOOT_RAM)
            end = info->ranges[i].end;
    }
    return frame_up_to(end);
}

/* Finds @len bytes of RAM behind the image that the early direct map shows. */
static INIT uint64_t storage_place(const struct boot_info *info, size_t len)
{
    for (unsigned i = 0; i < info->range_count; i++) {
        const struct boot_range *r = &info->ranges[i];
        uint64_t start = align_up(r->start, PAGE_SIZE);
        uint64_t end = r->end;

        if (start < image_end())
            start = image_end();
        if (end > 4 * GiB)
            end = 4 * GiB;
        if (r->type == BOOT_RAM && start < end && end - start >= len)
            return start;
    }
    panic("frame: no %zu bytes of RAM for the frame map", len);
}

static INIT void range_add(const struct boot_range *r)
{
    size_t first = align_up(r->start, PAGE_SIZE) >> FRAME_SHIFT;
    size_t end = frame_up_to(r->end);

    if (r->type == BOOT_RAM && first < end)
        free_set_add(&frames.set, first, end - first);
}

static INIT void frame_range_remove(uint64_t start, uint64_t end)
{
    size_t first = start >> FRAME_SHIFT;
    size_t last = align_up(end, PAGE_SIZE) >> FRAME_SHIFT;

    if (last > frames.set.count)
        last = frames.set.count;
    if (first < last)
        free_set_remove(&frames.set, first, last - first);
}

INIT void frame_init(const struct boot_info *info)
{
    size_t count = count_up_to_last(info);
    size_t len = free_set_storage(count);
    uint64_t storage = storage_place(info, len);

    free_set_init(&frames.set, count, phys_to_virt(storage));
    for (unsigned i = 0; i < info->range_count; i++)
        range_add(&info->ranges[i]);
    frame_range_remove(0, PAGE_SIZE); /* so that no frame is NULL or a real-mode vector */
    frame_range_remove(boot_range.start, boot_range.end);
    frame_range_remove(virt_to_phys(_text), image_end());
    frame_range_remove(storage, storage + len);
    frames.total = frames.set.free;
    log_info("frame: %zu MiB of RAM free", frames.total >> 8);
}

/* Takes @count frames from @first on out of the set; FREE_SET_NONE gives FRAME_NONE. */
static uint64_t take_locked(size_t first, size_t count)
{
    if (first == FREE_SET_NONE)
        return FRAME_NONE;
    free_set_remove(&frames.set, first, count);
    return (uint64_t)first << FRAME_SHIFT;
}

static uint64_t zeroed(uint64_t phys, size_t count)
{
    if (phys != FRAME_NONE)
        memset(phys_to_virt(phys), 0, count * PAGE_SIZE);
    return phys;
}

uint64_t frame_alloc(void)
{
    return frame_alloc_run_aligned(1, 1);
}

uint64_t frame_alloc_low(uint64_t limit)
{
    size_t from = limit > MiB ? FIRST_MIB_FRAMES : 0;
    unsigned long flags;
    uint64_t phys;
    size_t found;

    spin_lock_irqsave(&frames.lock, &flags);
    found = free_set_find(&frames.set, from);
    if (found != FREE_SET_NONE && (found + 1) << FRAME_SHIFT > limit)
        found = FREE_SET_NONE;
    phys = take_locked(found, 1);
    spin_unlock_irqrestore(&frames.lock, flags);
    return zeroed(phys, 1);
}

uint64_t frame_alloc_run_aligned(size_t count, size_t align)
{
    unsigned long flags;
    uint64_t phys;
    size_t found;

    spin_lock_irqsave(&frames.lock, &flags);
    found = free_set_find_run(&frames.set, FIRST_MIB_FRAMES, count, align);
    if (found == FREE_SET_NONE)
        found = free_set_find_run(&frames.set, 0, count, align);
    phys = take_locked(found, count);
    spin_unlock_irqrestore(&frames.lock, flags);
    return zeroed(phys, count);
}

void frame_free_run(uint64_t phys, size_t count)
{
    size_t first = phys >> FRAME_SHIFT;
    unsigned long flags;

    if (!is_aligned(phys, PAGE_SIZE) || first >= frames.set.count ||
        count > frames.set.count - first) {
        panic("frame: %#lx, %zu frames: not RAM", phys, count);
    }
    spin_lock_irqsave(&frames.lock, &flags);
    if (free_set_has_any(&frames.set, first, count))
        panic("frame: %#lx, %zu frames: free already", phys, count);
    free_set_add(&frames.set, first, count);
    spin_unlock_irqrestore(&frames.lock, flags);
}

void frame_free(uint64_t phys)
{
    frame_free_run(phys, 1);
}

void frame_give(uint64_t phys, size_t count)
{
    unsigned long flags;

    frame_free_run(phys, count);
    spin_lock_irqsave(&frames.lock, &flags);
    frames.total += count;
    spin_unlock_irqrestore(&frames.lock, flags);
}

void frame_stats_get(struct frame_stats *out)
{
    unsigned long flags;

    spin_lock_irqsave(&frames.lock, &flags);
    out->total = frames.total;
    out->free = frames.set.free;
    spin_unlock_irqrestore(&frames.lock, flags);
}
