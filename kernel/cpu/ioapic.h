/* ioapic.h - where device interrupts are sent.
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
 * APIC @apic_id, and unmask it.
 *
 * Context: boot or thread.
 * Return:  0; -ENOENT no I/O APIC serves it; -EINVAL the id needs more than 8 bits.
 */
int ioapic_route(unsigned isa_irq, unsigned vector, uint32_t apic_id);

/* ioapic_route_nmi - the same, delivered as an NMI. Return: as above. */
int ioapic_route_nmi(unsigned isa_irq, uint32_t apic_id);

/* ioapic_mask - stop delivering it. Return: 0, -ENOENT. */
int ioapic_mask(unsigned isa_irq);
