/* exec_frame.h - counts, for each frame, the pages of exec_map_at() that show it. Private
 * to kernel/mm. While a frame has a count, its page of the direct map is read-only.
 *
 * Locks of all: the exec lock held.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* exec_frame_get - count one more page that shows @phys. The first page makes the direct
 * map's page read-only on all CPUs. Context: thread, interrupts on; boot.
 * Return:  0; -ENOMEM; -EINVAL not a frame of RAM.
 */
int exec_frame_get(uint64_t phys);

/* exec_frame_put - count one page less that shows @phys. With the last page, the direct
 * map's page becomes writable again. The caller has flushed the unmapped page, so that no
 * CPU executes the frame through it. The caller must then flush the direct map's page, so
 * that other CPUs can write the frame.
 */
void exec_frame_put(uint64_t phys);

/* exec_frame_count - get how many frames have a count. */
size_t exec_frame_count(void);
