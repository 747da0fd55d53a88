/* stop_machine.h - lets one CPU act while all other CPUs stand still. */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>

/* stop_machine - park all other CPUs in an interrupt handler, run @fn(@arg) here, release
 * them. @fn runs with interrupts off and may not sleep or call other CPUs. The parked
 * CPUs have interrupts off, too, but they take NMIs. Each of them executes a serialising
 * instruction before it goes on. Context: thread, interrupts on.  Locks: takes its own.
 */
void stop_machine(void (*fn)(void *arg), void *arg);

/* stop_machine_regs - get the image of the code that @cpu executed when it was parked.
 * Only to be called by @fn of stop_machine().
 * Return: the image; NULL: @cpu runs @fn, or there is no such CPU.
 */
const struct pt_regs *stop_machine_regs(unsigned cpu);

/* stop_machine_call_all - let every CPU, the parked CPUs and this CPU, run @fn(@arg) with
 * interrupts off, and wait until all have done so. Only to be called by the function that
 * stop_machine() runs.
 */
void stop_machine_call_all(void (*fn)(void *arg), void *arg);

/* stop_machine_running - does this CPU run the @fn of a stop_machine()? Context: any. */
bool stop_machine_running(void);
