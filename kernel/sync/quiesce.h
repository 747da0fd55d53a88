/* quiesce.h - wait until no thread can still be in code that has been taken out of use.
 *
 * The function that removed the last way into a piece of code (a slot, a detour) calls
 * quiesce() before the bytes are used for something else.
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

/* quiesce_hit_ends - switch_if_due has found need_resched or need_hit_end set: the current
 * thread is at the end of a hit, or of an interrupt. Says whether need_hit_end stays set.
 * @regs: what the thread goes on with
 * Context: thread, interrupts off.
 */
void quiesce_hit_ends(const struct pt_regs *regs);
/* quiesce_waits_for - is @t, which has the executing CPU or gets it, still to be seen?
 * Context: any, interrupts off.
 */
bool quiesce_waits_for(const struct thread *t);
