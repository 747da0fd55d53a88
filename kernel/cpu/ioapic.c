/* ioapic.c - routes ISA interrupts through the I/O APICs.
 *
 * Owns the I/O APICs' registers and the table of what firmware said about ISA interrupts.
 * Each interrupt goes to one CPU; it is edge triggered unless that table says otherwise.
 */
#include "kernel/cpu/ioapic.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/lapic.h"
#include "kernel/debug/log.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/vmap.h"
#include "kernel/sync/spinlock.h"

#define REG_SELECT 0x00
#define REG_WINDOW 0x10
#define REGS_LEN 0x20

#define IDX_VERSION 1u
#define IDX_REDIRECTION(input) (0x10u + 2 * (input))

#define DELIVERY_NMI (4u << 8)
#define ACTIVE_LOW BIT(13)
#define LEVEL BIT(15)
#define MASKED BIT(16)
#define DESTINATION(apic_id) ((uint64_t)(apic_id) << 56)
#define DESTINATION_MAX 254u

/* One I/O APIC. Locks: L lock   I immutable after ioapic_init() */
struct ioapic {
    volatile uint8_t *regs; /* [L] select and window are one pair for all inputs */
    uint32_t gsi_base;      /* [I] */
    uint32_t input_count;   /* [I] */
};

static struct ioapic ioapics[MADT_IOAPICS_MAX]; /* [I] */
static unsigned ioapic_count;                   /* [I] */
static struct madt_isa isa[MADT_ISA_IRQS];      /* [I] */
static struct spinlock lock = SPINLOCK_INIT;

static volatile uint32_t *reg(const struct ioapic *io, unsigned off)
{
    return (volatile uint32_t *)(io->regs + off);
}

static uint32_t read_idx(const struct ioapic *io, uint32_t idx)
{
    *reg(io, REG_SELECT) = idx;
    return *reg(io, REG_WINDOW);
}

static void write_idx(const struct ioapic *io, uint32_t idx, uint32_t value)
{
    *reg(io, REG_SELECT) = idx;
    *reg(io, REG_WINDOW) = value;
}

/* ioapic_redirect - write @entry, in two halves. The half with the mask bit is written
 * first, to mask the input, and again last, so that no interrupt comes while the entry is
 * incomplete.
 */
static void ioapic_redirect(const struct ioapic *io, uint32_t input, uint64_t entry)
{
    unsigned long flags;

    spin_lock_irqsave(&lock, &flags);
    write_idx(io, IDX_REDIRECTION(input), (uint32_t)MASKED);
    write_idx(io, IDX_REDIRECTION(input) + 1, (uint32_t)(entry >> 32));
    write_idx(io, IDX_REDIRECTION(input), (uint32_t)entry);
    spin_unlock_irqrestore(&lock, flags);
}

static INIT void ioapic_add_one(const struct madt_ioapic *from)
{
    struct ioapic *io = &ioapics[ioapic_count++];

    io->regs = vmap_device(from->phys, REGS_LEN);
    if (!io->regs)
        panic("no memory to map I/O APIC %u", from->id);
    io->gsi_base = from->gsi_base;
    io->input_count = ((read_idx(io, IDX_VERSION) >> 16) & 0xff) + 1;
    for (uint32_t input = 0; input < io->input_count; input++)
        ioapic_redirect(io, input, MASKED);
    log_info("ioapic: id %u serves interrupts %u..%u", from->id, io->gsi_base,
             io->gsi_base + io->input_count - 1);
}

INIT void ioapic_init(const struct madt_info *info)
{
    for (unsigned i = 0; i < info->ioapic_count; i++)
        ioapic_add_one(&info->ioapics[i]);
    for (unsigned irq = 0; irq < MADT_ISA_IRQS; irq++)
        isa[irq] = info->isa[irq];
}

/* ioapic_find - find the I/O APIC that serves @gsi; NULL: there is none. */
static const struct ioapic *ioapic_find(uint32_t gsi)
{
    for (unsigned i = 0; i < ioapic_count; i++)
        if (gsi - ioapics[i].gsi_base < ioapics[i].input_count)
            return &ioapics[i];
    return NULL;
}

static int route_isa_irq(unsigned isa_irq, uint32_t how, uint32_t apic_id)
{
    const struct madt_isa *from = &isa[isa_irq];
    const struct ioapic *io = ioapic_find(from->gsi);
    uint64_t entry = DESTINATION(apic_id) | how;

    if (!io)
        return -ENOENT;
    if (apic_id == IOAPIC_ALL_CPUS && lapic_x2apic)
        return -EOPNOTSUPP;
    if (apic_id > DESTINATION_MAX && apic_id != IOAPIC_ALL_CPUS)
        return -EINVAL;
    if (from->active_low)
        entry |= ACTIVE_LOW;
    if (from->level)
        entry |= LEVEL;
    ioapic_redirect(io, from->gsi - io->gsi_base, entry);
    return 0;
}

INIT int ioapic_route(unsigned isa_irq, unsigned vector, uint32_t apic_id)
{
    return route_isa_irq(isa_irq, vector, apic_id);
}

int ioapic_route_nmi(unsigned isa_irq, uint32_t apic_id)
{
    return route_isa_irq(isa_irq, DELIVERY_NMI, apic_id);
}

int ioapic_mask(unsigned isa_irq)
{
    uint32_t gsi = isa[isa_irq].gsi;
    const struct ioapic *io = ioapic_find(gsi);

    if (!io)
        return -ENOENT;
    ioapic_redirect(io, gsi - io->gsi_base, MASKED);
    return 0;
}
