/* return_point.c - stages 10 and 14: a detour calls the probed function itself.
 *
 * A processor keeps a stack of the calls that it has executed, and predicts with it where a
 * `ret` leads. If the return address of a function is exchanged, the function's `ret` leads
 * to an address that is not behind a call: the prediction is wrong. The prediction for
 * the `ret` at the end of the trampoline is then wrong, too. So the detour of a return
 * probe has a call of its own, which belongs to the function's `ret`; the caller's call
 * is left for the `ret` of the trampoline. The code in the cell is:
 *
 *     cell:  call detour_return | call copy | jmp kretprobe_trampoline | jmp copy
 *
 *   1. The caller has called the function. Its first instruction is a jump to the cell.
 *   2. detour_return makes the entry in the shadow, and returns to the cell by `ret 8`,
 *      which also removes the function's return address from the stack. An interrupt may
 *      come now and overwrite that word. This does no harm, because the shadow has the
 *      address.
 *   3. `call copy` pushes the address behind itself, the return point, into the same
 *      word. So the function finds its stack, with its arguments, as its caller has left
 *      it. The copy runs the first instruction, and jumps back into the function.
 *   4. The function returns to the return point, as the processor has predicted by the
 *      call of 3. The jump there leads to the trampoline. The last `ret` of the
 *      trampoline belongs to the caller's call, and is predicted by it.
 *   5. If detour_return cannot handle a hit, it calls the handler with an image, as other
 *      detours do; then the CPU goes on at the last jump of the cell, without the call of
 *      3. If the handler exchanges the return address, it writes that of the trampoline.
 *
 * All code that looks at return addresses treats a return point like the trampoline.
 * Every function that returns to a return point has an entry in the shadow of its stack.
 * So a cell can be freed without waiting for the functions that it has called:
 *
 *   a. No jump leads to the cell any more, and quiescence has passed since. So no thread
 *      is in the cell between 1 and 3. Each return address that leads to the cell is on a
 *      stack, and the shadow entry for it is filled in.
 *   b. For each entry of all shadows, the engine looks at the word of the stack that the
 *      entry belongs to. If this word is a return point, the engine exchanges it for the
 *      trampoline. No entry is missed, because an entry does not move until it is popped.
 *   c. At the same time the function may return, and another call may use the word. So a
 *      compare-and-exchange writes it: the word changes only if it still holds the same
 *      return point. Such a word is a return address, or an interrupted ip, or no longer
 *      in use. In each case the trampoline is a correct value, too.
 *   d. A thread may have read the return point from the stack before b. Then the thread
 *      is at the return point, or will be there soon. One more quiescence waits for this
 *      thread, because its ip is in the cell or it has preemption off.
 *   e. Now no thread and no stack refers to the cell.
 *
 * Step b exchanges all return points, also those of cells that are not freed. A call of
 * such a cell loses nothing but the right prediction.
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

/* lock_cmpxchg - write @new to @at if @at holds @old. This is assembly, and not a C
 * builtin, because a sanitizer checks the accesses of builtins, and the word may lie in
 * memory where the sanitizer allows no access.
 */
static inline void lock_cmpxchg(uintptr_t *at, uintptr_t old, uintptr_t new)
{
    __asm__ volatile("lock cmpxchg %2, %0" : "+m"(*at), "+a"(old) : "r"(new) : "cc");
}

/* Step b. */
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
    plat_quiesce(); /* step d */
}
