/* exec.h - executable memory besides the image, and the only way to write any of it.
 *
 * All of it lies in [-4 GiB, 0), in reach of a rel32 from kernel text. Nothing here is
 * ever writable where it is executable, nor in the direct map while it is executable.
 *
 *   exec_alloc     pages of the detour arenas, wherever there is room
 *   exec_map_at    chosen pages: landing pads, whose address is dictated by bytes of
 *                  instructions, and module text. Several pages may show one frame.
 */
#pragma once

#include "kernel/memmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* exec_init - Context: boot; called by paging_init(). */
void exec_init(void);

/* exec_alloc - executable pages in a detour arena, filled with int3.
 * @len: bytes, 1 and up; rounded up to pages
 *
 * Context: thread, interrupts on (shoots down); boot.  Locks: takes the exec lock.
 * Return:  page-aligned address; NULL without memory or with full arenas.
 */
void *exec_alloc(size_t len);

/* exec_free - no CPU may be in there or come back there.
 * @p: from exec_alloc(), or NULL   @len: as then
 *
 * Context: as exec_alloc().
 */
void exec_free(void *p, size_t len);

/* exec_map_at - make @frame's content executable at @page.
 * @page:   multiple of 4 KiB in [-4 GiB, 0), outside image and detour arenas
 * @frame:  from frame_alloc(), filled through the direct map while it is not mapped
 *          executable anywhere; from now on it is read-only there, until the last of its
 *          pages is unmapped. It stays the caller's to free, after that.
 *
 * Context: as exec_alloc(); shoots down only for the first mapping of a frame.
 * Return:  0; -EBUSY @page is mapped; -EINVAL not such a page; -ENOMEM.
 */
int exec_map_at(uintptr_t page, uint64_t frame);

/* exec_remap - show @frame at a page of exec_map_at() instead of the frame there, in one
 * step: a CPU that executes there finds the old or the new content, never a hole. On
 * return no CPU finds the old one.
 *
 * Context: as exec_alloc().
 * Return:  0; -ENOENT @page is not mapped by exec_map_at(); -ENOMEM.
 */
int exec_remap(uintptr_t page, uint64_t frame);

/* exec_unmap - undo exec_map_at(). exec_unmap_all - the same for many, one shootdown.
 * @pages: @count pages of exec_map_at(), each once
 *
 * Context: as exec_alloc().
 */
void exec_unmap(uintptr_t page);
void exec_unmap_all(const uintptr_t *pages, size_t count);

/* exec_pad_is_free - may a landing pad be put at @page? It must be outside the module window
 * too. Context: any; true only until a page is mapped there.
 */
bool exec_pad_is_free(uintptr_t page);

/* exec_contains - is @addr executable memory that is neither image text nor in the window of
 * loaded code? Context: any.
 */
bool exec_contains(uintptr_t addr);

struct exec_stats {
    size_t arena_pages;      /* of both arenas */
    size_t arena_free_pages; /* of these, not handed out */
    size_t pad_pages;        /* pages of exec_map_at() */
    size_t pad_frames;       /* different frames they show */
};

/* exec_stats_get - Context: thread. */
void exec_stats_get(struct exec_stats *out);

/* text_poke_alias_write - change bytes of image text or executable memory.
 * @addr:  where they are executed   @len: 1..4096
 *
 * The bytes go through this CPU's poke alias: two pages of its own, not executable,
 * mapped for just this write with interrupts off. Then they are read back where they are
 * executed; a difference is a panic. 1, 2, 4 or 8 bytes at a multiple of as many are stored
 * at once. Else nothing is promised about when other CPUs see them, in what order, or in how
 * many pieces.
 *
 * Context: thread, also with interrupts off; boot. No other thread writes or unmaps these
 *          bytes meanwhile.
 * Return:  0; -EFAULT some byte is not in an executable page, nothing is written;
 *          -EINVAL @len.
 * Source:  the practice of Linux's text_poke(), which maps a temporary mm.
 */
int text_poke_alias_write(void *addr, const void *bytes, size_t len);
