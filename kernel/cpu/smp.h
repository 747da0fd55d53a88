/* smp.h - starts the other CPUs, calls functions on them, and interrupts them. */
#pragma once

#include "kernel/base/regs.h"
#include "kernel/cpu/madt.h"

#include <stdbool.h>
#include <stdint.h>

/* smp_init - set the handlers of IPIs. Context: boot, after lapic_init(). */
void smp_init(void);

/* smp_start - start every enabled CPU of @info, up to MAX_CPUS in all. Then each CPU runs
 * its idle thread, and its timer ticks. A CPU that does not start is reported and left
 * out. Context: thread, after smp_init(). paging_shootdown is set.
 */
void smp_start(const struct madt_info *info);

/* smp_call - run @fn(@arg) on CPU @cpu and wait until @fn has returned. On another CPU,
 * @fn runs in an interrupt handler, on the calling CPU directly; interrupts are off in
 * both cases. Several CPUs may call at the same time; calls to one CPU run one after the
 * other.
 *
 * Context: boot; thread, interrupts on. The caller may hold
 *          mutexes, but no spinlock that is also taken with interrupts off.
 */
void smp_call(unsigned cpu, void (*fn)(void *arg), void *arg);

/* smp_call_all - do as smp_call(), on all online CPUs at once, this CPU included. */
void smp_call_all(void (*fn)(void *arg), void *arg);

/* smp_call_awake - do as smp_call_all(), but do not call halted CPUs: a halted CPU
 * executes no code, and serialises before it executes code again (cpu_idle_wait). For
 * each halted CPU, the calling CPU calls @halted.
 */
void smp_call_awake(void (*fn)(void *arg), void (*halted)(unsigned cpu, void *arg),
                    void *arg);

/* smp_call_regs - get the image of what the running call has interrupted; NULL: this is
 * the calling CPU. Context: irq; thread, interrupts off.
 */
const struct pt_regs *smp_call_regs(void);

/* smp_wait - wait until CPU @cpu has set *@flag; report the CPU if that takes too long.
 * Context: thread or irq or trap. Interrupts are on, or @cpu is known not to wait for
 *          this CPU.
 */
void smp_wait(const bool *flag, unsigned cpu);

/* smp_set_call_limit - set the time limit: a called CPU that has not answered for @ns
 * nanoseconds is reported, with the symbol that it executes. The limit is 10 s until it
 * is set. The caller goes on waiting, and panics after a minute. A jump of the clock
 * counts as a quarter of the limit at most: clock_waited().
 */
extern uint64_t smp_call_limit_ns;

static inline void smp_set_call_limit(uint64_t ns)
{
    smp_call_limit_ns = ns;
}

/* smp_unanswered - get how often a CPU was reported. Context: any. */
extern uint64_t smp_unanswered_count; /* atomic */

static inline uint64_t smp_unanswered(void)
{
    return __atomic_load_n(&smp_unanswered_count, __ATOMIC_RELAXED);
}

/* smp_hold - from now on the executing CPU holds the machine: a debugger has stopped all
 * other CPUs, and they stand still until smp_unhold(). Its context is `held`:
 * docs/architecture.md. A CPU that stood flushes its TLB before it does anything else,
 * since paging_flush() does not reach it.
 * smp_unhold - end this, before another CPU goes on.
 * @all_go: false: one CPU goes on alone, and the others stand. If it calls them, it waits for
 *          as long as the debugger wants: then no CPU is reported.
 * Context: any, interrupts off.
 */
void smp_hold(void);
void smp_unhold(bool all_go);

/* smp_assert_not_held - panic if this CPU holds the machine: @what asks other CPUs for
 * something, or waits for them. Context: any.
 */
void smp_assert_not_held(const char *what);

/* smp_send_nmi - send an NMI to CPU @cpu; trap_set_handler(TRAP_NMI) sets its handlers.
 * smp_end_halt - end lapic_halt() of CPU @cpu, or its next one.
 * smp_send_reschedule - interrupt CPU @cpu; it switches threads if need_resched is set.
 * smp_stop_others - send NMIs to all other CPUs; for panic(): panic_nmi() halts them.
 * Context: any.
 */
void smp_send_nmi(unsigned cpu);
void smp_end_halt(unsigned cpu);
void smp_send_reschedule(unsigned cpu);
void smp_stop_others(void);
