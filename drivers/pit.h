/* pit.h - the 8254 timer: a known frequency to measure others against. */
#pragma once

#include <stdint.h>

#define PIT_WAIT_MAX_US 50000

/* pit_wait_us - wait by polling, and measure the TSC against the wait.
 * @us: 1..PIT_WAIT_MAX_US
 *
 * A host that takes the CPU away meanwhile makes the wait longer, but not the result
 * wrong: what counts is how far the PIT got between two readings.
 *
 * Context: boot.
 * Return:  TSC cycles in @us microseconds; too many rather than too few, by the time that
 *          reading the PIT takes.
 */
uint64_t pit_wait_us(unsigned us);
