/* pad.h - reserves, writes and frees landing pads: jumps of five bytes, at addresses that
 * the bytes of text dictate.
 *
 * The pads are spread over gigabytes of address space, with a few of them on each page.
 * So many pages show the same frame, as long as each of them uses other bytes of it. The
 * life of a pad:
 *
 *   pad_is_free -> pad_reserve -> pad_fill -> a jump that leads there is written ...
 *   ... that jump is removed, plat_quiesce(), pad_free_all
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAD_LEN 5

struct pad_jump {
    uintptr_t pad;    /* address of the pad */
    uintptr_t target; /* address that it jumps to, in reach of a jmp32 */
};

/* pad_is_free - can a pad lie at @pad? This is for a planner: to reserve a pad that is
 * free can still fail.
 * Locks: PLAT_PROBES held.  Cost: one hash lookup for each page that the pad touches.
 */
bool pad_is_free(uintptr_t pad);

/* pad_reserve - reserve @count pads: all of them or none. Their bytes are int3 until they
 * are filled.
 * @pads: in any order, each free, none overlapping another
 *
 * Context: thread, interrupts on.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 * Return:  0; -ENOMEM; -EBUSY a page is in use for something else. The engine remembers
 *          that page, and pad_is_free() refuses pads on it, so the caller can plan again.
 */
int pad_reserve(const uintptr_t *pads, size_t count);

/* pad_fill - write the jumps of reserved pads. CPUs may run into them after the next
 * plat_sync_cores(). A pad may be filled again if no thread can be on it.
 * Context: thread.  Locks: PLAT_PROBES and PLAT_TEXT held.
 * Cost:    if @count is large, each frame is written once, not each pad.
 */
void pad_fill(const struct pad_jump *jumps, size_t count);

/* pad_free_all - give @count pads back, filled or not. Their bytes become int3, and pages
 * without pads are unmapped. The caller makes sure that no thread is on one of the pads,
 * and that none can come there any more.
 * Context: thread, interrupts on.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void pad_free_all(const uintptr_t *pads, size_t count);

/* pad_target - the address that the pad at @ip leads to; 0: there is no pad. A pad is a
 * single jump instruction, so an ip that was saved while a CPU was on a pad is always the
 * address of the pad's first byte. Context: any.
 */
uintptr_t pad_target(uintptr_t ip);
/* pad_pass - the ip of a thread at @ip after it has executed the pad there; @ip itself if
 * there is no pad. Context: any.
 */
uintptr_t pad_pass(uintptr_t ip);

/* pad_count - how many pads are reserved. pad_pages - how many pages they lie on.
 * pad_frames - how many frames these pages show. pad_bytes - the memory of all this in
 * bytes, without page tables.
 */
extern size_t pad_total, pad_frame_total;
static inline size_t pad_count(void)
{
    return pad_total;
}
size_t pad_pages(void);
static inline size_t pad_frames(void)
{
    return pad_frame_total;
}
size_t pad_bytes(void);
