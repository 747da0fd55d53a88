/* exec_frame.h - private to kernel/mm: frames that pages of exec_map_at() show, and how
 * many each. While a frame is in here, its page of the direct map is read-only.
 *
 * Locks: held: the exec lock, for all of these.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* exec_frame_get - count one more page that shows @phys; the first makes the direct map's
 * page read-only on all CPUs.
 *
 * Context: thread, interrupts on; boot.
 * Return:  0; -ENOMEM; -EINVAL not a frame of RAM.
 */
int exec_frame_get(uint64_t phys);

/* exec_frame_put - one less; with the last the direct map's page becomes writable again.
 * No CPU executes it through the page that is gone: it was flushed. The flush that lets
 * other CPUs write the frame is left to the caller.
 */
void exec_frame_put(uint64_t phys);

/* exec_frame_count - frames that are in here. */
size_t exec_frame_count(void);
