/* boot_info.c - make struct boot_info from what the loader left in memory. Pure; host tested.
 *
 * Runs once, as the first step of kmain. A loader wrote this memory, so each length in it is
 * checked before it is used.
 */
#include "kernel/base/boot_info.h"

#include "boot/boot_map.h"
#include "boot/multiboot2.h"
#include "boot/pvh.h"
#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

/* Copy text up to its NUL, at most @from_len bytes, and at most the room of @to. */
static INIT void text_copy(char *to, size_t to_len, const char *from, size_t from_len)
{
    size_t i;

    for (i = 0; i + 1 < to_len && i < from_len && from[i]; i++)
        to[i] = from[i];
    to[i] = '\0';
}

static INIT void boot_info_clear(struct boot_info *info)
{
    __builtin_memset(info, 0, sizeof(*info));
    info->cmdline = info->cmdline_buf;
    info->loader = info->loader_buf;
}

static INIT struct boot_module *module_add(struct boot_info *info, uint64_t start,
                                           uint64_t end)
{
    struct boot_module *module = &info->modules[info->module_count];

    if (start > end)
        return NULL;
    if (info->module_count == BOOT_MODULES_MAX) {
        info->modules_left_out++;
        return NULL;
    }
    module->start = start;
    module->end = end;
    info->module_count++;
    return module;
}

/* The loader's map calls the RAM of modules free, so it is marked here. */
static INIT int modules_reserve(struct boot_info *info)
{
    for (unsigned i = 0; i < info->module_count; i++) {
        const struct boot_module *module = &info->modules[i];
        int err = module->start == module->end
                      ? 0
                      : boot_map_paint(info, module->start, module->end, BOOT_MODULE);

        if (err)
            return err;
    }
    return 0;
}

static INIT int info_finish(struct boot_info *info)
{
    if (info->range_count == 0)
        return -ENOENT;
    return modules_reserve(info);
}

/* ---- multiboot2 -------------------------------------------------------------------- */

static INIT int tag_module(struct boot_info *info, const struct multiboot2_tag *tag)
{
    const struct multiboot2_module *m = (const struct multiboot2_module *)tag;
    struct boot_module *module;

    if (tag->len < sizeof(*m))
        return -EINVAL;
    module = module_add(info, m->start, m->end);
    if (module)
        text_copy(module->name, sizeof(module->name), (const char *)(m + 1),
                  tag->len - sizeof(*m));
    return 0;
}

/* An older tag, which says less than the map. It is only used if there is no map. */
static INIT int tag_meminfo(struct boot_info *info, const struct multiboot2_tag *tag)
{
    const struct multiboot2_meminfo *mem = (const struct multiboot2_meminfo *)tag;
    int err;

    if (tag->len < sizeof(*mem))
        return -EINVAL;
    err = boot_map_paint(info, 0, mem->lower_kib * KiB, BOOT_RAM);
    if (err)
        return err;
    return boot_map_paint(info, MiB, MiB + mem->upper_kib * KiB, BOOT_RAM);
}

static INIT int tag_mmap(struct boot_info *info, const struct multiboot2_tag *tag)
{
    const struct multiboot2_mmap *map = (const struct multiboot2_mmap *)tag;

    if (tag->len < sizeof(*map) || map->entry_len < sizeof(struct boot_map_entry))
        return -EINVAL;
    info->range_count = 0;
    return boot_map_add(info, map + 1, map->entry_len,
                        (tag->len - sizeof(*map)) / map->entry_len);
}

static INIT int tag_rsdp(struct boot_info *info, const struct multiboot2_tag *tag)
{
    size_t len = tag->len - sizeof(*tag);

    /* GRUB gives the old root pointer, the new one, or both in any order. The longer one
     * is the new one, which says more.
     */
    if (len <= info->rsdp_len)
        return 0;
    if (len > BOOT_RSDP_MAX)
        len = BOOT_RSDP_MAX;
    __builtin_memcpy(info->rsdp_copy, tag + 1, len);
    info->rsdp_len = (unsigned)len;
    return 0;
}

static INIT int tag_read(struct boot_info *info, const struct multiboot2_tag *tag,
                         bool *have_map)
{
    const char *text = (const char *)(tag + 1);
    size_t text_len = tag->len - sizeof(*tag);

    switch (tag->type) {
    case MULTIBOOT2_TAG_CMDLINE:
        text_copy(info->cmdline_buf, sizeof(info->cmdline_buf), text, text_len);
        return 0;
    case MULTIBOOT2_TAG_LOADER:
        text_copy(info->loader_buf, sizeof(info->loader_buf), text, text_len);
        return 0;
    case MULTIBOOT2_TAG_MODULE:
        return tag_module(info, tag);
    case MULTIBOOT2_TAG_MEMINFO:
        return *have_map ? 0 : tag_meminfo(info, tag);
    case MULTIBOOT2_TAG_MMAP:
        *have_map = true;
        return tag_mmap(info, tag);
    case MULTIBOOT2_TAG_EFI32:
    case MULTIBOOT2_TAG_EFI64:
        info->efi = true;
        return 0;
    case MULTIBOOT2_TAG_RSDP_OLD:
    case MULTIBOOT2_TAG_RSDP_NEW:
        return tag_rsdp(info, tag);
    default:
        return 0;
    }
}

INIT int boot_info_from_multiboot2(struct boot_info *out, const void *mbi, size_t limit)
{
    const struct multiboot2_info *head = mbi;
    const uint8_t *base = mbi;
    bool have_map = false;
    size_t off = sizeof(*head);

    boot_info_clear(out);
    if (limit < sizeof(*head) || head->total_len > limit)
        return -EINVAL;
    while (off + sizeof(struct multiboot2_tag) <= head->total_len) {
        const struct multiboot2_tag *tag = (const struct multiboot2_tag *)(base + off);
        int err;

        if (tag->len < sizeof(*tag) || tag->len > head->total_len - off)
            return -EINVAL;
        if (tag->type == MULTIBOOT2_TAG_END)
            return info_finish(out);
        err = tag_read(out, tag, &have_map);
        if (err)
            return err;
        off += align_up(tag->len, MULTIBOOT2_ALIGN);
    }
    return -EINVAL; /* no end tag */
}

/* ---- PVH --------------------------------------------------------------------------- */

/* The length of the text is not known, so it is read in pieces that do not cross a page. */
static INIT int pvh_text(char *to, size_t to_len, uint64_t phys,
                         const void *(*at_phys)(uint64_t phys, size_t len))
{
    size_t used = 0;

    to[0] = '\0';
    while (phys && used + 1 < to_len) {
        size_t len = 4096 - (size_t)(phys & 4095);
        const char *from = at_phys(phys, len);
        size_t i;

        if (!from)
            return -EINVAL;
        for (i = 0; i < len && used + 1 < to_len && from[i]; i++)
            to[used++] = from[i];
        to[used] = '\0';
        if (i < len && !from[i])
            break;
        phys += len;
    }
    return 0;
}

static INIT int pvh_modules(struct boot_info *info, const struct pvh_start_info *start,
                            const void *(*at_phys)(uint64_t phys, size_t len))
{
    for (uint32_t i = 0; i < start->module_count && i < BOOT_MODULES_MAX; i++) {
        const void *from = at_phys(start->modules + i * sizeof(struct pvh_module),
                                   sizeof(struct pvh_module));
        struct boot_module *module;
        struct pvh_module m;
        uint64_t end;
        int err;

        if (!from)
            return -EINVAL;
        __builtin_memcpy(&m, from, sizeof(m)); /* it may lie at any alignment */
        if (__builtin_add_overflow(m.start, m.len, &end))
            return -EINVAL;
        module = module_add(info, m.start, end);
        if (!module)
            continue;
        err = pvh_text(module->name, sizeof(module->name), m.cmdline, at_phys);
        if (err)
            return err;
    }
    if (start->module_count > BOOT_MODULES_MAX)
        info->modules_left_out = start->module_count - BOOT_MODULES_MAX;
    return 0;
}

static INIT int pvh_map(struct boot_info *info, const struct pvh_start_info *start,
                        const void *(*at_phys)(uint64_t phys, size_t len))
{
    size_t stride = sizeof(struct boot_map_entry);
    const void *entries;

    if (start->version < 1 || start->map_count == 0)
        return -ENOENT;
    entries = at_phys(start->map, start->map_count * stride);
    if (!entries)
        return -EINVAL;
    return boot_map_add(info, entries, stride, start->map_count);
}

INIT int boot_info_from_pvh(struct boot_info *out, const void *start_info,
                            const void *(*at_phys)(uint64_t phys, size_t len))
{
    const struct pvh_start_info *start = start_info;
    int err;

    boot_info_clear(out);
    if (start->magic != PVH_MAGIC)
        return -EINVAL;
    out->rsdp = start->rsdp;
    text_copy(out->loader_buf, sizeof(out->loader_buf), "PVH", sizeof("PVH"));
    err = pvh_text(out->cmdline_buf, sizeof(out->cmdline_buf), start->cmdline, at_phys);
    if (err)
        return err;
    err = pvh_map(out, start, at_phys);
    if (err)
        return err;
    err = pvh_modules(out, start, at_phys);
    if (err)
        return err;
    return info_finish(out);
}
