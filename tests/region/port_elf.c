/* port_elf.c - implements platform.h from the file of a kernel. */
#include "tests/region/port_elf.h"

#include "kernel/base/err.h"
#include "kernel/debug/ksyms_table.h"
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/optimize.h"
#include "probes/jump/platform_jump.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *file;
static const Elf64_Shdr *sections;
static unsigned section_count;
static const Elf64_Sym *symbols;
static size_t symbol_count;
static const char *names;

/* Facts from the file that are used often. */
static struct {
    uintptr_t start, end;
} text, entry_code;
static struct plat_targets targets;

static const struct ksyms_entry *entries;
static size_t entry_count;
static const char *entry_names;

/* ---- the file ---- */

static bool file_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    long len;

    if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        return false;
    file = malloc((size_t)len);
    if (!file || fread(file, 1, (size_t)len, f) != (size_t)len)
        return false;
    fclose(f);
    return true;
}

/* content - return the @len bytes of the file that are at @addr in memory; NULL: the file
 * has fewer bytes there.
 */
static const uint8_t *content(uintptr_t addr, size_t len)
{
    for (unsigned i = 0; i < section_count; i++) {
        const Elf64_Shdr *s = &sections[i];

        if (s->sh_flags & SHF_ALLOC && s->sh_type != SHT_NOBITS && addr >= s->sh_addr &&
            addr + len <= s->sh_addr + s->sh_size)
            return file + s->sh_offset + (addr - s->sh_addr);
    }
    return NULL;
}

static uintptr_t address_of(const char *name)
{
    for (size_t i = 0; i < symbol_count; i++)
        if (strcmp(names + symbols[i].st_name, name) == 0)
            return symbols[i].st_value;
    return 0;
}

static const void *table(const char *name)
{
    return content(address_of(name), 1);
}

static size_t number(const char *name)
{
    uint32_t n = 0;
    const uint8_t *at = content(address_of(name), sizeof(n));

    if (at)
        memcpy(&n, at, sizeof(n));
    return n;
}

static void symbols_find(void)
{
    for (unsigned i = 0; i < section_count; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        symbols = (const Elf64_Sym *)(file + sections[i].sh_offset);
        symbol_count = sections[i].sh_size / sizeof(*symbols);
        names = (const char *)file + sections[sections[i].sh_link].sh_offset;
    }
}

static void tables_find(void)
{
    entries = table("ksyms_table");
    entry_count = number("ksyms_total");
    entry_names = table("ksyms_names");
    targets = (struct plat_targets){
        .base = UINT64_C(0xffffffff00000000),
        .offsets = table("targets_table"),
        .count = number("targets_total"),
        .opaque = table("targets_opaque_table"),
        .opaque_count = number("targets_opaque_total"),
    };
    text.start = address_of("_text");
    text.end = address_of("_etext");
    entry_code.start = address_of("entry_text_start");
    entry_code.end = address_of("entry_text_end");
}

bool elf_load(const char *path)
{
    const Elf64_Ehdr *header;

    if (!file_read(path)) {
        perror(path);
        return false;
    }
    header = (const Elf64_Ehdr *)file;
    sections = (const Elf64_Shdr *)(file + header->e_shoff);
    section_count = header->e_shnum;
    symbols_find();
    tables_find();
    if (!entries || !targets.count)
        printf("# %s has no tables of ours\n", path);
    return entries && targets.count;
}

void elf_text(uintptr_t *start, uintptr_t *end)
{
    *start = text.start;
    *end = text.end;
}

/* ---- symbols ---- */

static bool is_function(const struct ksyms_entry *e)
{
    return (e->type == 'T' || e->type == 't') && e->size;
}

void elf_functions(void (*fn)(const struct plat_symbol *function, void *arg), void *arg)
{
    for (size_t i = 0; i < entry_count; i++) {
        const struct ksyms_entry *e = &entries[i];
        struct plat_symbol innermost;

        if (is_function(e) && !plat_symbol_at(e->start, &innermost) &&
            strcmp(innermost.name, entry_names + e->name) == 0)
            fn(&innermost, arg);
    }
}

static uint32_t last_at_or_below(uintptr_t addr)
{
    size_t low = 0, high = entry_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (entries[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? (uint32_t)(low - 1) : KSYMS_NONE;
}

int plat_symbol_at(uintptr_t addr, struct plat_symbol *out)
{
    uint32_t i = last_at_or_below(addr);

    while (i != KSYMS_NONE &&
           (!entries[i].size || addr >= entries[i].start + entries[i].size))
        i = entries[i].outer;
    if (i == KSYMS_NONE || !is_function(&entries[i]))
        return -ENOENT;
    *out = (struct plat_symbol){ entries[i].start, entries[i].size,
                                 entry_names + entries[i].name, NULL };
    return 0;
}

int elf_take_marks(void)
{
    static struct nokprobe_range ranges[64];
    struct nokprobe_marks marks;
    const struct nokprobe_range *from = table("nokprobe_ranges_start");
    size_t len = address_of("nokprobe_ranges_end") - address_of("nokprobe_ranges_start");
    size_t count = len / sizeof(*from);

    if (count > ARRAY_LEN(ranges))
        abort();
    for (size_t i = 0; i < count; i++) /* `why` is an address in the image */
        ranges[i] = (struct nokprobe_range){ from[i].start, from[i].end, NULL };
    marks = (struct nokprobe_marks){
        .functions = table("nokprobe_start"),
        .function_count = (address_of("nokprobe_end") - address_of("nokprobe_start")) / 8,
        .ranges = ranges,
        .range_count = count,
    };
    return blacklist_add(&marks);
}

void plat_targets(uintptr_t addr __attribute__((unused)), struct plat_targets *out)
{
    *out = targets;
}

bool plat_is_entry(uintptr_t addr)
{
    return addr >= entry_code.start && addr < entry_code.end;
}

/* ---- text ---- */

int plat_text_read(void *dst, uintptr_t addr, size_t len)
{
    const uint8_t *at = content(addr, len);

    if (!at)
        return -EFAULT;
    memcpy(dst, at, len);
    return 0;
}

bool plat_text_contains(uintptr_t addr, size_t len)
{
    return addr >= text.start && addr + len <= text.end;
}

bool plat_text_is_built(uintptr_t line UNUSED, const uint8_t *bytes UNUSED)
{
    return true;
}

bool plat_exec_contains(uintptr_t addr UNUSED)
{
    return false;
}

struct site *registry_find(uintptr_t addr UNUSED)
{
    return NULL;
}

void ext_recover(uint8_t *bytes UNUSED, uintptr_t addr UNUSED, size_t len UNUSED)
{
}

/* ---- the rest ---- */

void *plat_alloc(size_t len)
{
    return calloc(1, len);
}

void plat_free(void *p)
{
    free(p);
}

void plat_bug(const char *what, uintptr_t where)
{
    printf("Bail out! %s at %#lx\n", what, where);
    exit(1);
}

/* The next functions are only needed to run instructions, so nothing calls them here. */
int plat_read(uint64_t *out UNUSED, uintptr_t addr)
{
    plat_bug("plat_read", addr);
}

uintptr_t plat_seg_base(unsigned seg)
{
    plat_bug("plat_seg_base", seg);
}

void plat_raise_fault(struct pt_regs *regs UNUSED, uintptr_t addr, bool by_stack UNUSED)
{
    plat_bug("plat_raise_fault", addr);
}

/* ---- no other CPU runs, and no text is loaded or unloaded ---- */

unsigned long plat_irq_save(void)
{
    return 0;
}

void plat_irq_restore(unsigned long flags UNUSED)
{
}

void plat_sync_cores(void)
{
}

bool plat_stops_at(uintptr_t addr UNUSED)
{
    return false; /* there is no debug register */
}

bool ext_text_leaves(uintptr_t addr UNUSED)
{
    return false;
}
