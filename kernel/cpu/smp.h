/* smp.h - the other CPUs: started once, called and interrupted ever after. */
#pragma once

#include "kernel/base/regs.h"
#include "kernel/cpu/madt.h"

#include <stdbool.h>
#include <stdint.h>

/* smp_init - take IPIs on this machine. Context: boot, after lapic_init(). */
void smp_init(void);

/* smp_start - start every enabled CPU of @info, up to MAX_CPUS in all. Each ends up in its
 * idle thread, with its timer running. A CPU that does not come is reported and left out.
 *
 * Context: boot thread, after sched_start(), smp_init() and paging_set_shootdown().
 */
void smp_start(const struct madt_info *info);

/* smp_call - run @fn(@arg) on CPU @cpu and wait until it has returned. On another CPU it
 * runs in an interrupt handler, on the calling one directly, with interrupts off in both
 * cases. Calls from several CPUs may meet; those to one CPU run one after the other.
 *
 * Context: thread, interrupts on once there is more than one CPU. The caller may hold
 *          mutexes, but no spinlock that is also taken with interrupts off.
 */
void smp_call(unsigned cpu, void (*fn)(void *arg), void *arg);

/* smp_call_all - the same on every online CPU at once, the caller included. */
void smp_call_all(void (*fn)(void *arg), void *arg);

/* smp_call_awake - the same, but a CPU that is halted is left alone: it runs nothing, and
 * serialises before it does (cpu_idle_wait). The calling CPU calls @halted for each of them.
 */
void smp_call_awake(void (*fn)(void *arg), void (*halted)(unsigned cpu, void *arg),
                    void *arg);

/* smp_call_regs - what the running call has interrupted; NULL on the calling CPU itself.
 * Context: inside @fn of a call.
 */
const struct pt_regs *smp_call_regs(void);

/* smp_wait - wait until CPU @cpu has set *@flag, and report it where it takes too long.
 * Context: any but nmi; interrupts on, or @cpu must be known not to wait for this one.
 */
void smp_wait(const bool *flag, unsigned cpu);

/* smp_set_call_limit - after how many nanoseconds without an answer a called CPU is
 * reported, with the symbol it is at; 10 s unless told. The caller goes on waiting; after
 * a minute it panics.
 */
void smp_set_call_limit(uint64_t ns);

/* smp_unanswered - how often that has happened. Context: any. */
uint64_t smp_unanswered(void);

/* smp_send_nmi - an NMI to CPU @cpu; handlers are set with trap_set_handler(TRAP_NMI).
 * smp_send_reschedule - make it look at the run queue.
 * smp_stop_others - NMIs to all others: for panic, whose panic_nmi() then halts them.
 *
 * Context: any.
 */
void smp_send_nmi(unsigned cpu);
void smp_send_reschedule(unsigned cpu);
void smp_stop_others(void);
