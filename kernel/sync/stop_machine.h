/* stop_machine.h - one CPU acts while all others stand still. */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>

/* stop_machine - park all other CPUs in an interrupt handler, run @fn(@arg) here, release
 * them. @fn runs with interrupts off and may not sleep or call other CPUs. The parked ones
 * have interrupts off too, but they take NMIs. Each runs a serialising instruction before
 * it goes on.
 *
 * Context: thread, interrupts on.  Locks: takes a mutex of its own.
 */
void stop_machine(void (*fn)(void *arg), void *arg);

/* stop_machine_regs - what @cpu was interrupted in when it was parked. Only for @fn.
 * Return: NULL for the CPU that runs @fn, or where there is no such CPU.
 */
const struct pt_regs *stop_machine_regs(unsigned cpu);

/* stop_machine_call_all - have every CPU, those that stand still and this one, run @fn(@arg),
 * and wait until all have. It runs with interrupts off. Only for the @fn of stop_machine().
 */
void stop_machine_call_all(void (*fn)(void *arg), void *arg);

/* stop_machine_running - is the executing CPU running such a @fn? Context: any. */
bool stop_machine_running(void);
