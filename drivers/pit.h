/* pit.h - the 8254 timer: a known frequency to measure others against. */
#pragma once

#include <stdint.h>

#define PIT_WAIT_MAX_US 50000

/* pit_wait_us - wait by polling.
 * @us: 1..PIT_WAIT_MAX_US
 *
 * Context: boot.
 * Return:  TSC cycles that the wait took.
 */
uint64_t pit_wait_us(unsigned us);
