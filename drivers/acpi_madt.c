/* acpi_madt.c - read the MADT: a list of entries of many types, of which five are used here.
 * Runs at boot.
 */
#include "drivers/acpi_madt.h"

#include "drivers/acpi.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#include <string.h>

#define LAPIC_DEFAULT_PHYS 0xfee00000u

struct madt {
    struct acpi_table head;
    uint32_t lapic_phys;
    uint32_t flags;
} PACKED;

#define MADT_HAS_PIC (1u << 0)

struct madt_entry {
    uint8_t type;
    uint8_t len; /* bytes, with these two */
} PACKED;

enum madt_entry_type {
    MADT_LAPIC = 0,
    MADT_IOAPIC = 1,
    MADT_OVERRIDE = 2,
    MADT_LAPIC_ADDRESS = 5,
    MADT_X2APIC = 9,
};

struct madt_lapic {
    struct madt_entry head;
    uint8_t acpi_id;
    uint8_t apic_id;
    uint32_t flags;
} PACKED;

struct madt_x2apic {
    struct madt_entry head;
    uint16_t reserved;
    uint32_t apic_id;
    uint32_t flags;
    uint32_t acpi_id;
} PACKED;

#define CPU_ENABLED (1u << 0)

struct madt_ioapic_entry {
    struct madt_entry head;
    uint8_t id;
    uint8_t reserved;
    uint32_t phys;
    uint32_t gsi_base;
} PACKED;

struct madt_override {
    struct madt_entry head;
    uint8_t bus; /* 0: ISA */
    uint8_t irq;
    uint32_t gsi;
    uint16_t flags;
} PACKED;

/* Two bits each; 0 means the rule of the bus, which for ISA is edge, active high. */
#define POLARITY(flags) ((flags)&3)
#define POLARITY_LOW 3
#define TRIGGER(flags) (((flags) >> 2) & 3)
#define TRIGGER_LEVEL 3

struct madt_lapic_address {
    struct madt_entry head;
    uint16_t reserved;
    uint64_t phys;
} PACKED;

static INIT bool cpu_known(const struct madt_info *info, uint32_t apic_id)
{
    for (unsigned i = 0; i < info->cpu_count; i++)
        if (info->cpus[i] == apic_id)
            return true;
    return false;
}

/* cpu_add - add a CPU to the list. A CPU that is in the list already is not added again, and
 * neither is @broadcast: each CPU of the list gets an INIT, which resets it. The entry of a
 * CPU that is not enabled is a free place for one.
 * @broadcast: the id that addresses all CPUs, so no CPU has it
 */
static INIT void cpu_add(struct madt_info *out, uint32_t apic_id, uint32_t broadcast,
                         uint32_t flags)
{
    if (!(flags & CPU_ENABLED) || apic_id == broadcast || cpu_known(out, apic_id))
        return;
    if (out->cpu_count == MADT_CPUS_MAX) {
        out->cpus_ignored++;
        return;
    }
    out->cpus[out->cpu_count++] = apic_id;
}

static INIT void madt_ioapic_add(struct madt_info *out, const struct madt_ioapic_entry *e)
{
    struct madt_ioapic *ioapic = &out->ioapics[out->ioapic_count];

    if (out->ioapic_count == MADT_IOAPICS_MAX)
        return;
    ioapic->id = e->id;
    ioapic->phys = e->phys;
    ioapic->gsi_base = e->gsi_base;
    out->ioapic_count++;
}

static INIT void override_add(struct madt_info *out, const struct madt_override *e)
{
    if (e->bus != 0 || e->irq >= MADT_ISA_IRQS)
        return;
    out->isa[e->irq].gsi = e->gsi;
    out->isa[e->irq].active_low = POLARITY(e->flags) == POLARITY_LOW;
    out->isa[e->irq].level = TRIGGER(e->flags) == TRIGGER_LEVEL;
}

/* An entry that is shorter than the struct of its type is skipped. */
static INIT void madt_entry_read(struct madt_info *out, const struct madt_entry *e)
{
    if (e->type == MADT_LAPIC && e->len >= sizeof(struct madt_lapic)) {
        const struct madt_lapic *lapic = (const struct madt_lapic *)e;

        cpu_add(out, lapic->apic_id, UINT8_MAX, lapic->flags);
    } else if (e->type == MADT_X2APIC && e->len >= sizeof(struct madt_x2apic)) {
        const struct madt_x2apic *x2apic = (const struct madt_x2apic *)e;

        cpu_add(out, x2apic->apic_id, UINT32_MAX, x2apic->flags);
    } else if (e->type == MADT_IOAPIC && e->len >= sizeof(struct madt_ioapic_entry)) {
        madt_ioapic_add(out, (const struct madt_ioapic_entry *)e);
    } else if (e->type == MADT_OVERRIDE && e->len >= sizeof(struct madt_override)) {
        override_add(out, (const struct madt_override *)e);
    } else if (e->type == MADT_LAPIC_ADDRESS &&
               e->len >= sizeof(struct madt_lapic_address)) {
        out->lapic_phys = ((const struct madt_lapic_address *)e)->phys;
    }
}

static INIT void madt_info_clear(struct madt_info *out)
{
    memset(out, 0, sizeof(*out));
    out->lapic_phys = LAPIC_DEFAULT_PHYS;
    for (unsigned irq = 0; irq < MADT_ISA_IRQS; irq++)
        out->isa[irq].gsi = irq;
}

INIT int acpi_madt_parse(const struct boot_info *boot, struct madt_info *out)
{
    const struct madt *madt = (const struct madt *)acpi_find(boot, "APIC");
    size_t off = sizeof(*madt);

    madt_info_clear(out);
    if (!madt || madt->head.len < sizeof(*madt))
        return -ENOENT;
    out->lapic_phys = madt->lapic_phys;
    out->has_pic = madt->flags & MADT_HAS_PIC;
    while (off + sizeof(struct madt_entry) <= madt->head.len) {
        const struct madt_entry *e = (const void *)((const uint8_t *)madt + off);

        if (e->len < sizeof(*e) || e->len > madt->head.len - off)
            break;
        madt_entry_read(out, e);
        off += e->len;
    }
    return 0;
}
