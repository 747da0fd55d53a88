/* madt.h - describes CPUs and interrupt controllers, as ACPI's MADT does.
 *
 * drivers/acpi_madt.c writes the description once, at boot; kernel/main.c passes it to
 * the local APIC, the I/O APIC and the start of the other CPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MADT_CPUS_MAX 64
#define MADT_IOAPICS_MAX 8
#define MADT_ISA_IRQS 16

struct madt_ioapic {
    uint32_t id;
    uint64_t phys;     /* of its registers */
    uint32_t gsi_base; /* first global system interrupt it serves */
};

/* How an ISA interrupt arrives: with its own number as gsi, edge triggered and active
 * high, unless the MADT says otherwise.
 */
struct madt_isa {
    uint32_t gsi;
    bool active_low;
    bool level;
};

struct madt_info {
    uint64_t lapic_phys;
    bool has_pic;                 /* 8259s are present and must be masked */
    uint32_t cpus[MADT_CPUS_MAX]; /* the APIC ids of those that are enabled */
    unsigned cpu_count;
    unsigned cpus_ignored; /* beyond MADT_CPUS_MAX */
    struct madt_ioapic ioapics[MADT_IOAPICS_MAX];
    unsigned ioapic_count;
    struct madt_isa isa[MADT_ISA_IRQS];
};
