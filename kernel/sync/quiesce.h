/* quiesce.h - waits until no thread can still be in code that has been taken out of use.
 *
 * The function that removed the last way into a piece of code (a slot, a detour) calls
 * quiesce() before the bytes are used for something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pt_regs;
struct thread;

/* quiesce_set_inside - tell quiesce() which addresses are inside removable code.
 * @inside: may a thread that was interrupted at @ip, with preemption on, be in such code,
 *          or return into it? Code that removable code calls with preemption on counts as
 *          inside, too. NULL: every address is inside but cpu_idle_halted
 *
 * @inside runs with interrupts off and locks held, on any CPU: no locks, no sleeping.
 * Context: boot.  Return: the function that was set before.
 */
typedef bool (*quiesce_inside_t)(uintptr_t ip);
quiesce_inside_t quiesce_set_inside(quiesce_inside_t inside);

/* quiesce - wait until every thread has been outside at some moment since the call. A
 * thread has been outside if
 *
 *   - it switched voluntarily (or was switched out voluntarily all the time), or
 *   - an IPI found it running, preemptible, at an ip that is not inside, or
 *   - it was found preempted by an interrupt at an ip that is not inside, or
 *   - it has come to the end of a hit, outside, or twice in front of a copy, or
 *   - it is the idle thread of a CPU that was found halted.
 *
 * A thread that was found with preemption off is looked at again: it may be in a handler
 * that code inside has called. A thread that was switched out by preempt_enable() is
 * looked at again for the same reason. Handlers of interrupts and NMIs need no look: when
 * a CPU takes the IPI, the handlers that ran there have ended.
 *
 * Context: thread, preemptible. It sleeps about a tick between two looks.
 * Locks:   takes sched_lock. Several callers wait for each other.
 */
void quiesce(void);

/* quiesce_hit_ends - note that the current thread is at the end of a hit or of an
 * interrupt, and decide whether need_hit_end stays set. Called when switch_if_due has
 * found need_resched or need_hit_end set.
 * @regs: the image that the thread goes on with
 * Context: thread, interrupts off.
 */
void quiesce_hit_ends(const struct pt_regs *regs);
/* quiesce_waits_for - is a quiesce() under way that has not seen @t outside?
 * @t: the thread that has the executing CPU, or that gets it next
 * Context: any, interrupts off.
 */
bool quiesce_waits_for(const struct thread *t);
