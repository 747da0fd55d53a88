/* sample.h - sends NMIs to all CPUs at a rate. Each NMI finds what its CPU executes, even if
 * interrupts are off.
 */
#pragma once

#include <stdint.h>

#define SAMPLE_HZ_MIN 19u
#define SAMPLE_HZ_MAX 10000u

/* sample_init - @fn: lets ISA interrupt 0 come @hz times a second; 0: never. Context: boot.
 */
void sample_init(void (*fn)(unsigned hz));

/* sample_set_hz - send @hz NMIs in a second to each CPU from now on.
 * @hz: 0: none
 *
 * Context: thread. The caller makes sure that no other thread calls it meanwhile.
 * Return:  0; -EINVAL below SAMPLE_HZ_MIN or above SAMPLE_HZ_MAX; -ENOENT no I/O APIC serves
 *          the interrupt; -EOPNOTSUPP in x2APIC mode, where it cannot go to all CPUs.
 */
int sample_set_hz(unsigned hz);
/* sample_hz - return the rate. It is half of what it was after NMIs have left less than a
 * quarter of the time to the program. Context: any.
 */
unsigned sample_hz(void);
/* sample_nmi_ends - entry.asm calls it at the end of each NMI.
 * @begun: the TSC at the begin of the NMI
 *
 * Context: nmi.
 */
void sample_nmi_ends(uint64_t begun);
