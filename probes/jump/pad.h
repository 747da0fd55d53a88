/* pad.h - landing pads: five-byte jumps at addresses that the bytes of text dictate.
 *
 * Their pages are spread over gigabytes of address space, with a few used bytes each. So
 * many pages show one frame, as long as the bytes they use are not the same ones. A pad's
 * life:
 *
 *   pad_is_free -> pad_reserve -> pad_fill -> a jump is written that goes there ...
 *   ... the jump is taken out, plat_quiesce(), pad_free_all
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAD_LEN 5

struct pad_jump {
    uintptr_t pad;    /* where it lies */
    uintptr_t target; /* where it goes, in reach of a jmp32 */
};

/* pad_is_free - could a pad be put at @pad? For a planner: what is free can still fail to be
 * reserved.
 * Locks: PLAT_PROBES held.  Cost: one hash lookup for each page it touches.
 */
bool pad_is_free(uintptr_t pad);

/* pad_reserve - make room for @count pads: all of them or none. They hold int3 until they are
 * filled.
 * @pads: in any order, each free, none overlapping another
 *
 * Context: thread, interrupts on.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 * Return:  0; -ENOMEM; -EBUSY a page is in use for something else: it is remembered, and
 *          pad_is_free() says so, so that planning again helps.
 */
int pad_reserve(const uintptr_t *pads, size_t count);

/* pad_fill - write the jumps of reserved pads. CPUs may run into them after the next
 * plat_sync_cores(). A pad that no thread can be on may be filled again.
 *
 * Context: thread.  Locks: PLAT_PROBES and PLAT_TEXT held.
 * Cost:    many at once are written frame by frame.
 */
void pad_fill(const struct pad_jump *jumps, size_t count);

/* pad_free_all - give pads back, filled or not: they are int3 again, pages without pads
 * are unmapped. No thread can be on one of the pads or come back.
 *
 * Context: thread, interrupts on.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void pad_free_all(const uintptr_t *pads, size_t count);

/* pad_target - where the pad at @ip leads; 0 when there is none. A saved ip on a pad is that
 * of its jump: it never lies between its bytes.
 * Context: any.
 */
uintptr_t pad_target(uintptr_t ip);
/* pad_pass - where a thread at @ip will be behind the pad there; @ip when there is none.
 * Context: any.
 */
uintptr_t pad_pass(uintptr_t ip);
/* pad_contains - is @addr where pads can be? Context: any. */
bool pad_contains(uintptr_t addr);

/* pad_count, pad_pages, pad_frames - pads held, pages they lie on, frames these show.
 * pad_bytes - memory of all that, but for page tables.
 */
size_t pad_count(void);
size_t pad_pages(void);
size_t pad_frames(void);
size_t pad_bytes(void);
