/* quiesce.h - wait until nobody can still be in code that has been taken out of use.
 *
 * Whoever removed the last way into a piece of code (a slot, a detour) calls quiesce()
 * before the bytes are used for something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pt_regs;
struct thread;

/* quiesce_set_inside - name the code that counts.
 * @inside: may a thread that was interrupted at @ip, with preemption on, still be in such
 *          code or return into it? Beside the removable code itself this must cover what
 *          it calls with preemption on. NULL: any address is.
 *
 * @inside runs with interrupts off and locks held, on any CPU: no locks, no sleeping.
 * Context: boot.  Return: the one before.
 */
typedef bool (*quiesce_inside_t)(uintptr_t ip);
quiesce_inside_t quiesce_set_inside(quiesce_inside_t inside);

/* quiesce - return when every thread has been outside at some moment since the call:
 *
 *   - it switched voluntarily (or was switched out voluntarily all the time), or
 *   - it was seen running, by IPI, preemptible and at an ip that is not inside, or
 *   - it was seen preempted by an interrupt at an ip that is not inside, or
 *   - it has come to the end of a hit twice, or
 *   - it is the idle thread of a CPU that was seen idle.
 *
 * A thread that was seen with preemption off is looked at again: it may be in a handler
 * that code inside has called. So is one that was switched out by preempt_enable(). What
 * runs in interrupt and NMI context has ended when the IPI is taken.
 *
 * Context: thread, preemptible; sleeps a tick between two looks.
 * Locks:   takes the scheduler's lock; several callers wait for each other.
 */
void quiesce(void);

/* quiesce_turn_ends - the scheduler looks for another thread in the place of @t.
 * @regs: as preempted_regs; NULL: not in an interrupt or at the end of a hit
 * Context: any, interrupts off.  Locks: the scheduler's held.
 */
void quiesce_turn_ends(struct thread *t, const struct pt_regs *regs);
/* quiesce_shortens_turn - is @t, which gets a turn, to give it back soon? It has still to be
 * seen outside. Context, Locks: as above.
 */
bool quiesce_shortens_turn(struct thread *t);
