/* lapic.h - drives the local APIC, the interrupt controller of each CPU: IPIs, end of
 * interrupt, timer.
 *
 * There are two modes: xAPIC (registers in memory) and x2APIC (registers are MSRs; chosen
 * when the firmware has switched it on, or when a CPU's id needs more than 8 bits).
 * Source: SDM vol. 3A, "Advanced Programmable Interrupt Controller (APIC)".
 */
#pragma once

#include "kernel/cpu/madt.h"

#include <stdbool.h>
#include <stdint.h>

/* lapic_init - choose the mode, map the registers, and switch on the local APIC of CPU 0.
 * Also stores its id in the percpu area. Context: boot, after paging_init() and
 * trap_init().
 */
void lapic_init(const struct madt_info *info);

extern bool lapic_x2apic; /* the mode; immutable after lapic_init() */

/* lapic_init_cpu - switch on the executing CPU's local APIC. Context: any, interrupts
 * off.
 */
void lapic_init_cpu(void);

/* lapic_id - get the executing CPU's APIC id. Context: any, preemption off. */
uint32_t lapic_id(void);

/* lapic_eoi - tell the APIC that the current interrupt was handled. Context: irq or
 * nmi. In an NMI it comes while lapic_halt() waits.
 */
void lapic_eoi(void);

/* lapic_halt - halt until VECTOR_STAND or an NMI comes. All other interrupts wait. The
 * function may return earlier. In an NMI an interrupt switches no threads. Context: nmi.
 */
void lapic_halt(void);

/* The kinds of IPI. */
#define LAPIC_IPI 0x4000u /* | vector, 16..255 */
#define LAPIC_NMI 0x4400u
#define LAPIC_INIT 0x4500u
#define LAPIC_STARTUP 0x4600u /* | physical address / 4096 of the code in real mode */

/* lapic_send - send an IPI to the CPU with local APIC @apic_id.
 * Context: any. A call that interrupts another call leaves the APIC as it was.
 */
void lapic_send(uint32_t apic_id, uint32_t command);

/* lapic_timer_init - start the executing CPU's timer: VECTOR_TIMER @hz times a second.
 * The first call measures the rate of the timer against clock_ns().
 * Context: any, interrupts off.
 */
void lapic_timer_init(unsigned hz);

/* lapic_timer_stop - stop the ticks of the executing CPU, until lapic_timer_init().
 * Context: any, preemption off.
 */
void lapic_timer_stop(void);
