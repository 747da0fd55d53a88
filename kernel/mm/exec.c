/* exec.c - maps executable memory in [-4 GiB, 0): detour arenas, and chosen pages.
 *
 * Owns all mappings there but the image. Each frame is first filled, then made read-only
 * in the direct map on all CPUs, then mapped executable; to free it, these steps are
 * undone in reverse order. So no CPU ever finds a frame writable at one address and
 * executable at another.
 */
#include "kernel/mm/exec.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/area.h"
#include "kernel/mm/exec_frame.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/paging_ops.h"
#include "kernel/mm/window.h"
#include "kernel/sync/mutex.h"

#include <string.h>

#define INT3 0xcc
#define ARENA_PAGES (ARENA_LEN / PAGE_SIZE)

static struct {
    struct mutex lock;     /* all changes of mappings in the range, but the image's */
    struct area arenas[2]; /* below and above the image */
    size_t pad_pages;      /* [lock] */
} exec = { .lock = MUTEX_INIT(exec.lock) };

INIT void exec_init(void)
{
    area_init(&exec.arenas[0], ARENA_LOW_START, ARENA_PAGES);
    area_init(&exec.arenas[1], arena_high_start(), ARENA_PAGES);
    window_init();
}

static struct area *arena_of(uintptr_t va)
{
    for (unsigned i = 0; i < 2; i++) {
        if (va - exec.arenas[i].start < ARENA_LEN)
            return &exec.arenas[i];
    }
    return NULL;
}

/* Allocates frames with int3 in every byte, and without a writable mapping. The frames
 * are in one piece, so that one shootdown is enough.
 */
static uint64_t frames_get(size_t count)
{
    uint64_t phys = frame_alloc_run(count);

    if (phys == FRAME_NONE)
        return FRAME_NONE;
    memset(phys_to_virt(phys), INT3, count * PAGE_SIZE);
    if (page_protect_range((uintptr_t)phys_to_virt(phys), count, PROT_R)) {
        /* The pages behind the page that failed have not changed. */
        page_protect_range((uintptr_t)phys_to_virt(phys), count, PROT_W);
        frame_free_run(phys, count);
        return FRAME_NONE;
    }
    return phys;
}

static void frames_put(uint64_t phys, size_t count)
{
    BUG_ON(page_protect_range((uintptr_t)phys_to_virt(phys), count, PROT_W));
    frame_free_run(phys, count);
}

static bool frames_map(uintptr_t va, uint64_t phys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (page_map(va + i * PAGE_SIZE, phys + i * PAGE_SIZE, PROT_X)) {
            page_unmap_range(va, i, NULL);
            return false;
        }
    }
    return true;
}

static bool arena_fill(uintptr_t va, size_t count)
{
    uint64_t phys = frames_get(count);

    if (phys == FRAME_NONE)
        return false;
    if (frames_map(va, phys, count))
        return true;
    frames_put(phys, count);
    return false;
}

static uintptr_t arena_get(size_t count)
{
    uintptr_t va = area_get(&exec.arenas[0], count);

    return va ? va : area_get(&exec.arenas[1], count);
}

void *exec_alloc(size_t len)
{
    size_t count = area_pages(len);
    uintptr_t va;

    mutex_lock(&exec.lock);
    va = arena_get(count);
    if (va && !arena_fill(va, count)) {
        area_put(arena_of(va), va, count);
        va = 0;
    }
    mutex_unlock(&exec.lock);
    return (void *)va;
}

void exec_free(void *p, size_t len)
{
    uintptr_t va = (uintptr_t)p;
    size_t count = area_pages(len);
    struct page_info info;

    if (!p)
        return;
    BUG_ON(!arena_of(va) || !page_lookup(va, &info));
    mutex_lock(&exec.lock);
    page_unmap_range(va, count, NULL);
    frames_put(info.phys, count);
    area_put(arena_of(va), va, count);
    mutex_unlock(&exec.lock);
}

/* From the 2 MiB below the image, which are never mapped, to the end of the image. */
static bool in_image(uintptr_t va)
{
    return va >= KERNEL_VMA && va < module_window_start();
}

static bool can_be_chosen(uintptr_t page)
{
    return is_aligned(page, PAGE_SIZE) && page >= REACH_START && !in_image(page) &&
           !arena_of(page);
}

static int map_at_locked(uintptr_t page, uint64_t frame)
{
    struct page_info info;
    int err;

    if (page_lookup(page, &info))
        return -EBUSY;
    err = exec_frame_get(frame);
    if (err)
        return err;
    err = page_map(page, frame, PROT_X);
    if (err) {
        exec_frame_put(frame);
        paging_flush((uintptr_t)phys_to_virt(frame), 1);
        return err;
    }
    exec.pad_pages++;
    return 0;
}

int exec_map_at(uintptr_t page, uint64_t frame)
{
    int err;

    if (!can_be_chosen(page) || !is_aligned(frame, PAGE_SIZE))
        return -EINVAL;
    mutex_lock(&exec.lock);
    err = map_at_locked(page, frame);
    mutex_unlock(&exec.lock);
    return err;
}

static int remap_locked(uintptr_t page, uint64_t frame)
{
    struct page_info old;
    int err;

    if (!page_lookup(page, &old))
        return -ENOENT;
    err = exec_frame_get(frame);
    if (err)
        return err;
    BUG_ON(page_replace(page, frame));
    exec_frame_put(old.phys);
    paging_flush((uintptr_t)phys_to_virt(old.phys), 1);
    return 0;
}

int exec_remap(uintptr_t page, uint64_t frame)
{
    int err;

    if (!can_be_chosen(page) || !is_aligned(frame, PAGE_SIZE))
        return -ENOENT;
    mutex_lock(&exec.lock);
    err = remap_locked(page, frame);
    mutex_unlock(&exec.lock);
    return err;
}

/* Two flushes for any number of pages: after the first, no CPU executes the frames
 * through these pages; after the second, all CPUs can write the frames that no page shows
 * any more.
 */
void exec_unmap_all(const uintptr_t *pages, size_t count)
{
    size_t flush_pages = count > 1 ? PAGING_FLUSH_ALL : count;
    uint64_t phys = 0;

    if (!count)
        return;
    mutex_lock(&exec.lock);
    for (size_t i = 0; i < count; i++)
        BUG_ON(!can_be_chosen(pages[i]) || !page_hide(pages[i]));
    paging_flush(pages[0], flush_pages);
    for (size_t i = 0; i < count; i++) {
        phys = page_forget(pages[i]);
        exec_frame_put(phys);
    }
    paging_flush((uintptr_t)phys_to_virt(phys), flush_pages);
    exec.pad_pages -= count;
    mutex_unlock(&exec.lock);
}

bool exec_contains(uintptr_t addr)
{
    struct page_info info;

    if (addr < REACH_START || in_image(addr) || window_contains(addr))
        return false;
    return page_lookup(addr, &info) && info.prot & PROT_X;
}

void exec_stats_get(struct exec_stats *out)
{
    mutex_lock(&exec.lock);
    out->arena_pages = 2 * ARENA_PAGES;
    out->arena_free_pages =
        area_free_pages(&exec.arenas[0]) + area_free_pages(&exec.arenas[1]);
    out->pad_pages = exec.pad_pages;
    out->pad_frames = exec_frame_count();
    mutex_unlock(&exec.lock);
}
