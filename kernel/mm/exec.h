/* exec.h - maps executable memory beside the image, and writes executable memory: this is
 * the only way to do so.
 *
 * Executable memory lies in [-4 GiB, 0), in reach of a rel32 from kernel text. An
 * executable page is never writable; nor is its frame, through the direct map.
 */
#pragma once

#include "kernel/memmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* exec_init - Context: boot. It is called by paging_init(). */
void exec_init(void);

/* exec_alloc - allocate executable pages in a detour arena, filled with int3.
 * @len: bytes, 1 and up; rounded up to pages
 *
 * Context: thread, interrupts on; boot; held. It shoots down.
 * Locks: takes the exec lock.
 * Return:  page-aligned address; NULL without memory, or if the arenas are full.
 */
void *exec_alloc(size_t len);

/* exec_free - free memory of exec_alloc(). No CPU may be in it, or return into it.
 * @p: from exec_alloc(), or NULL   @len: as for exec_alloc()
 *
 * Context: as exec_alloc().
 */
void exec_free(void *p, size_t len);

/* exec_map_at - make the content of @frame executable at @page.
 * @page:   multiple of 4 KiB in [-4 GiB, 0), outside image and detour arenas
 * @frame:  from frame_alloc(). The caller fills it through the direct map before it is
 *          executable anywhere. From now on it is read-only in the direct map, until the
 *          last page that shows it is unmapped. After that the caller frees it.
 *
 * Context: as exec_alloc(). It shoots down only for the first mapping of a frame.
 * Return:  0; -EBUSY @page is mapped; -EINVAL not such a page; -ENOMEM.
 */
int exec_map_at(uintptr_t page, uint64_t frame);

/* exec_remap - show @frame at a page of exec_map_at() instead of the frame there, in one
 * step: a CPU that executes there finds the old or the new content, never a hole. On
 * return no CPU finds the old content any more. Context: as exec_alloc().
 * Return:  0; -ENOENT @page is not mapped by exec_map_at(); -ENOMEM.
 */
int exec_remap(uintptr_t page, uint64_t frame);

/* exec_unmap - undo exec_map_at().
 * exec_unmap_all - undo it for @count pages, with two shootdowns in all.
 * @pages: pages of exec_map_at(), each once
 *
 * Context: as exec_alloc().
 */
void exec_unmap_all(const uintptr_t *pages, size_t count);

static inline void exec_unmap(uintptr_t page)
{
    exec_unmap_all(&page, 1);
}

/* exec_contains - is @addr in executable memory, but neither in image text nor in the
 * module window? Context: any.
 */
bool exec_contains(uintptr_t addr);

struct exec_stats {
    size_t arena_pages;      /* of both arenas */
    size_t arena_free_pages; /* of these, the free pages */
    size_t pad_pages;        /* pages of exec_map_at() */
    size_t pad_frames;       /* different frames they show */
};

/* exec_stats_get - Context: thread. */
void exec_stats_get(struct exec_stats *out);

/* text_poke_alias_write - change bytes of image text or executable memory.
 * @addr:  where the bytes are executed   @len: 1..4096
 *
 * The CPU writes through its poke alias, two pages of its own that are mapped only for this
 * write, and reads the bytes back. 1, 2, 4 or 8 bytes at a multiple of @len are stored at
 * once; for others nothing is promised about when and in which order CPUs see them.
 *
 * Context: thread or boot or held, interrupts on or off. No other thread writes or unmaps
 *          these bytes meanwhile.
 * Return:  0; -EFAULT a byte is not in an executable page, nothing is written;
 *          -EINVAL @len.
 * Source:  the practice of Linux's text_poke(), which maps a temporary mm.
 */
int text_poke_alias_write(void *addr, const void *bytes, size_t len);
