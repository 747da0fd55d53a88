/* return_point.c - stages 10 and 14: functions that a detour calls in their caller's place.
 *
 * Processors predict where a `ret` leads by the calls before it. A function whose return
 * address is exchanged returns to a place that has made no call, and so does the trampoline
 * then. Therefore the detour of a return probe calls the function, in its caller's stead:
 *
 *     cell:  call detour_return | call copy | jmp kretprobe_trampoline | jmp copy
 *
 *   1. The caller has called the function, whose first instruction is a jump to the cell.
 *   2. detour_return makes the entry in the shadow, and returns to the cell by `ret 8`: the
 *      return address is off the stack. An interrupt that comes in between and writes there
 *      does no harm, since the shadow has the address.
 *   3. `call copy` pushes another address to where it was: the return point. The function
 *      finds its stack, arguments included, as it was. The copy jumps back into it.
 *   4. It returns to the return point, as its call has told, and from there to the
 *      trampoline, whose last `ret` is that for the caller's call.
 *   5. A hit that detour_return cannot do itself goes on at the cell's last jump, by
 *      another way. If the return address must be exchanged there, that of the trampoline
 *      is written.
 *
 * A return point is as good as the trampoline, wherever an address is looked at; and every
 * function that returns there has its entry in the shadow of its stack. So the cell can be
 * freed while functions that it has called are still under way, without waiting for them:
 *
 *   a. No jump leads to the cell any more; there was quiescence, so no thread is before the
 *      end of 3. All return addresses that lead there are on stacks, and their entries
 *      filled in.
 *   b. For each entry of all shadows, the word of the stack where it belongs is looked at:
 *      is it a return point, it is exchanged for the trampoline. An entry stays in its place
 *      until it is popped, so none is missed.
 *   c. Meanwhile the function may have returned, and the word may belong to another call.
 *      It is changed only while it is that very return point. A word that holds one is a
 *      return address, an interrupted ip, or out of use. For each of them the trampoline
 *      will do as well.
 *   d. A thread that has taken the address from the stack before b. is at the return point,
 *      or about to be: where quiescence finds it, or with preemption off. One more
 *      quiescence waits for it.
 *   e. No thread and no stack refers to the cell.
 *
 * All return points are exchanged in b., those of cells that stay, too: such a call only
 * loses its prediction.
 */
#include "probes/returns/return_point.h"

#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"

bool return_point_is(uintptr_t ip)
{
    const uintptr_t trampoline = (uintptr_t)kretprobe_trampoline;
    size_t off;

    if (ip == trampoline)
        return true;
    return insn_slot_owner(ip, &off) && off == RETURN_POINT_OFF &&
           insn_jmp32_target((const uint8_t *)ip, ip) == trampoline;
}

/* By hand: the word may be in the middle of what a sanitizer guards. */
static inline void lock_cmpxchg(uintptr_t *at, uintptr_t old, uintptr_t new)
{
    __asm__ volatile("lock cmpxchg %2, %0" : "+m"(*at), "+a"(old) : "r"(new) : "cc");
}

/* b. */
static void leave_shadow(struct shadow *s, void *arg UNUSED)
{
    const struct shadow_entry *last = __atomic_load_n(&s->last, __ATOMIC_ACQUIRE);

    for (const struct shadow_entry *e = s->entries + 1; e <= last; e++) {
        uint32_t below = __atomic_load_n(&e->below, __ATOMIC_ACQUIRE);
        uintptr_t slot = s->top - below;
        uint64_t ret;

        if (below && !plat_read(&ret, slot) && return_point_is(ret))
            lock_cmpxchg((uintptr_t *)slot, ret, (uintptr_t)kretprobe_trampoline);
    }
}

void return_points_leave(void)
{
    plat_shadow_for_each(leave_shadow, NULL);
    plat_quiesce(); /* d. */
}
