/* acpi.c - find a table: the root pointer (RSDP) leads to a list of addresses of tables, the
 * RSDT with 32 bits each or the XSDT with 64. Runs at boot.
 */
#include "drivers/acpi.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"

#include <stdbool.h>
#include <string.h>

/* Firmware puts its tables below this, so an address above it counts as wrong. Of the memory
 * below it, the direct map contains the first MiB and what the loader's map lists: a wrong
 * address, or a table that the map leaves out, is found by bytes_at().
 */
#define TABLE_END (4 * GiB)
#define TABLE_LEN_MAX (1 * MiB)

struct rsdp {
    char signature[8];
    uint8_t checksum; /* of the first 20 bytes */
    char oem[6];
    uint8_t revision; /* 0: the struct ends behind rsdt */
    uint32_t rsdt;
    uint32_t len;
    uint64_t xsdt;
    uint8_t checksum_all;
    uint8_t reserved[3];
} PACKED;

#define RSDP_OLD_LEN 20

static INIT bool sum_is_zero(const void *bytes, size_t len)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < len; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)bytes)[i]);
    return sum == 0;
}

/* bytes_at - Return: the @len bytes at @phys; NULL: the direct map lacks some of them. */
static ALWAYS_INLINE INIT const void *bytes_at(uint64_t phys, uint64_t len)
{
    struct page_info info;

    if (!phys || phys > TABLE_END - len)
        return NULL;
    for (uint64_t at = align_down(phys, PAGE_SIZE); at < phys + len; at += PAGE_SIZE)
        if (!page_lookup((uintptr_t)phys_to_virt(at), &info))
            return NULL;
    return phys_to_virt(phys);
}

static INIT const struct rsdp *rsdp_get(const struct boot_info *boot)
{
    const struct rsdp *rsdp;

    if (boot->rsdp_len >= RSDP_OLD_LEN)
        rsdp = (const struct rsdp *)boot->rsdp_copy;
    else
        rsdp = bytes_at(boot->rsdp, sizeof(*rsdp));
    if (!rsdp || memcmp(rsdp->signature, "RSD PTR ", sizeof(rsdp->signature)) != 0)
        return NULL;
    return sum_is_zero(rsdp, RSDP_OLD_LEN) ? rsdp : NULL;
}

/* Return: the table at @phys; NULL: out of reach, or with a wrong length or checksum. */
static INIT const struct acpi_table *table_get(uint64_t phys)
{
    const struct acpi_table *table = bytes_at(phys, sizeof(*table));

    if (!table || table->len < sizeof(*table) || table->len > TABLE_LEN_MAX ||
        !bytes_at(phys, table->len))
        return NULL;
    return sum_is_zero(table, table->len) ? table : NULL;
}

INIT const struct acpi_table *acpi_find(const struct boot_info *boot,
                                        const char *signature)
{
    const struct rsdp *rsdp = rsdp_get(boot);
    const struct acpi_table *root = NULL;
    size_t entry_len = sizeof(uint64_t);

    if (!rsdp)
        return NULL;
    if (rsdp->revision >= 2)
        root = table_get(rsdp->xsdt);
    if (!root) {
        root = table_get(rsdp->rsdt);
        entry_len = sizeof(uint32_t);
    }
    if (!root)
        return NULL;
    for (size_t off = sizeof(*root); off + entry_len <= root->len; off += entry_len) {
        const struct acpi_table *table;
        uint64_t phys = 0;

        memcpy(&phys, (const uint8_t *)root + off, entry_len);
        table = table_get(phys);
        if (table && memcmp(table->signature, signature, 4) == 0)
            return table;
    }
    return NULL;
}
