/* paging_init.c - makes the final page tables, and the tables that a new CPU starts with.
 *
 * Runs at boot, and while the other CPUs start. Works on the tables of paging.c through
 * its private interface; at first through the early direct map of the first 4 GiB.
 */
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/paging.h"
#include "kernel/mm/paging_ops.h"

static INIT uint64_t *slot_or_panic(uintptr_t va, unsigned level)
{
    uint64_t *entry = paging_slot(va, level);

    if (!entry)
        panic("paging: no memory for the kernel's page tables");
    return entry;
}

/* Maps [@start, @end) in 2 MiB pages. The first and the last page may also map holes and
 * devices; the firmware's memory type registers decide how these are cached.
 */
static INIT void direct_map_add(uint64_t start, uint64_t end)
{
    uint64_t phys = align_down(start, LARGE_PAGE_SIZE);

    for (; phys < end; phys += LARGE_PAGE_SIZE) {
        uint64_t *entry = slot_or_panic(DIRECT_MAP_BASE + phys, 2);

        *entry = pte_make(phys, PROT_W) | PTE_LARGE;
    }
}

/* Maps all RAM, and other memory below 4 GiB, for the firmware's tables. The first MiB is
 * always mapped: a BIOS has tables there that it may not list.
 */
static INIT void direct_map_fill(const struct boot_info *info)
{
    direct_map_add(0, MiB);
    for (unsigned i = 0; i < info->range_count; i++) {
        const struct boot_range *r = &info->ranges[i];
        bool is_ram = r->type == BOOT_RAM || r->type == BOOT_MODULE;
        uint64_t max = is_ram ? DIRECT_MAP_MAX : 4 * GiB;

        if (r->start < max)
            direct_map_add(r->start, r->end < max ? r->end : max);
    }
}

/* Maps a part of the image, in 4 KiB pages: the rights change within 2 MiB. */
static INIT void image_map(const char *start, const char *end, unsigned prot)
{
    for (uintptr_t va = (uintptr_t)start; va < (uintptr_t)end; va += PAGE_SIZE)
        *slot_or_panic(va, 1) = pte_make(va - KERNEL_VMA, prot);
}

/* Makes a part of the image read-only in the direct map: text must not be writable at any
 * address, and rodata needs no second, writable mapping.
 */
static INIT void image_hide_from_direct_map(const char *start, const char *end)
{
    size_t count = (size_t)(end - start) / PAGE_SIZE;

    if (direct_map_protect(virt_to_phys(start), count, PROT_R))
        panic("paging: the image is not in the direct map");
}

/* Makes the tables that must exist from the start: the directories of the reserved range,
 * so that a landing pad costs one table at most; and the tables of the poke aliases,
 * which are used where no memory can be allocated.
 */
static INIT void tables_preallocate(void)
{
    for (uint64_t i = 0; i < 4; i++)
        slot_or_panic(REACH_START + i * GiB, 2);
    for (uint64_t cpu = 0; cpu < MAX_CPUS; cpu++)
        slot_or_panic(POKE_AREA_BASE + cpu * POKE_AREA_STRIDE, 1);
}

INIT void paging_init(const struct boot_info *info)
{
    uint64_t *root = table_new();

    BUG_ON(!root);
    BUG_ON(!(rdmsr(MSR_EFER) & EFER_NXE));
    paging_root = root;
    direct_map_fill(info);
    image_map(_text, _init_text_end, PROT_X);
    image_map(_init_text_end, _init_end, PROT_W);
    image_map(_rodata, _erodata, PROT_R);
    image_map(_sdata, _ebss, PROT_W);
    image_map(_tables, _end, PROT_R);
    image_hide_from_direct_map(_text, _init_text_end);
    image_hide_from_direct_map(_rodata, _erodata);
    image_hide_from_direct_map(_tables, _end);
    tables_preallocate();
    write_cr3(paging_cr3());
    vmap_init();
    stack_init();
    exec_init();
}

/* The trampoline page, and the four tables that map it at its physical address. */
static struct {
    uint64_t trampoline;
    uint64_t *tables[4]; /* of levels 4..1 */
} ap;

static INIT bool ap_tables_alloc(void)
{
    uint64_t low = frame_alloc_low(4 * GiB);

    ap.tables[0] = low == FRAME_NONE ? NULL : phys_to_virt(low);
    for (unsigned i = 1; i < 4; i++)
        ap.tables[i] = table_new();
    return ap.tables[0] && ap.tables[1] && ap.tables[2] && ap.tables[3];
}

static INIT void ap_tables_release(void)
{
    for (unsigned i = 0; i < 4; i++) {
        if (ap.tables[i])
            frame_free(virt_to_phys(ap.tables[i]));
        ap.tables[i] = NULL;
    }
}

static INIT void ap_tables_fill(void)
{
    const uint64_t *root = table_at(paging_cr3());

    for (unsigned i = TABLE_ENTRIES / 2; i < TABLE_ENTRIES; i++)
        ap.tables[0][i] = root[i];
    for (unsigned i = 0; i < 3; i++) {
        unsigned idx = (ap.trampoline >> (39 - 9 * i)) % TABLE_ENTRIES;

        ap.tables[i][idx] = virt_to_phys(ap.tables[i + 1]) | PTE_TABLE;
    }
    ap.tables[3][(ap.trampoline >> 12) % TABLE_ENTRIES] = pte_make(ap.trampoline, PROT_X);
}

INIT uint64_t paging_ap_tables(uint64_t trampoline)
{
    ap.trampoline = trampoline;
    if (!ap_tables_alloc() || direct_map_protect(trampoline, 1, PROT_R)) {
        ap_tables_release();
        return FRAME_NONE;
    }
    paging_flush((uintptr_t)phys_to_virt(trampoline), 1);
    ap_tables_fill();
    return virt_to_phys(ap.tables[0]);
}

INIT void paging_ap_tables_free(void)
{
    ap_tables_release();
    if (page_protect((uintptr_t)phys_to_virt(ap.trampoline), PROT_W))
        panic("paging: the trampoline at %#lx is not in the direct map", ap.trampoline);
}
