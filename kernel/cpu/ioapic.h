/* ioapic.h - sends the interrupts of devices to CPUs.
 * Source: Intel 82093AA I/O APIC data sheet; ACPI specification, "Multiple APIC
 * Description Table (MADT)".
 */
#pragma once

#include "kernel/cpu/madt.h"

#include <stdint.h>

/* ioapic_init - map all I/O APICs and mask every input.
 * @info: must stay readable until the call returns   Context: boot.
 */
void ioapic_init(const struct madt_info *info);

/* ioapic_route - deliver ISA interrupt @isa_irq (0..15) as @vector to the CPU with local
 * APIC @apic_id, and unmask the interrupt. Context: boot or thread.
 * Return:  0; -ENOENT no I/O APIC serves the interrupt; -EINVAL @apic_id is above 254.
 */
int ioapic_route(unsigned isa_irq, unsigned vector, uint32_t apic_id);

#define IOAPIC_ALL_CPUS 255u /* as an apic_id of ioapic_route_nmi() */

/* ioapic_route_nmi - do as ioapic_route(), but deliver the interrupt as an NMI.
 * Return: also -EOPNOTSUPP: in x2APIC mode no destination of 8 bits means all CPUs.
 */
int ioapic_route_nmi(unsigned isa_irq, uint32_t apic_id);

/* ioapic_mask - stop delivering @isa_irq. Return: 0; -ENOENT no I/O APIC serves it. */
int ioapic_mask(unsigned isa_irq);
