/* pit.h - the 8254 timer: other clocks are measured with its known frequency. */
#pragma once

#include <stdint.h>

#define PIT_WAIT_MAX_US 50000

/* pit_wait_us - wait by polling, and measure the TSC against the wait.
 * @us: 1..PIT_WAIT_MAX_US
 *
 * If the host interrupts the CPU during the wait, the wait is longer, but the result is
 * still right: the cycles are divided by the ticks that the PIT has really counted.
 *
 * Panics if the PIT does not count.
 *
 * Context: boot.
 * Return:  TSC cycles in @us microseconds. The result may be too large, by the cycles
 *          that reading the PIT takes.
 */
uint64_t pit_wait_us(unsigned us);

/* pit_tick - let ISA interrupt 0 come @hz times a second, at least 19; 0: not any more.
 * Context: any. No other code may call it meanwhile.
 */
void pit_tick(unsigned hz);
