/* posix_symbols.c - the functions of this program, from its own symbol table. */
#include "probes/core/life.h"
#include "probes/jump/platform_jump.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/posix_parts.h"
#include "tests/unit/symbol_list.h"

#include "kernel/base/bits.h"
#include "kernel/mm/extable.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* The linker script has these. */
extern const uintptr_t nokprobe_start[], nokprobe_end[];
extern const char engine_text_start[], engine_text_end[];
extern const char fixtures_text_start[], fixtures_text_end[];
extern const char __executable_start[], etext[];

static uint8_t *read_self(void)
{
    FILE *f = fopen("/proc/self/exe", "rb");
    uint8_t *image;
    long len;

    if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        abort();
    image = malloc((size_t)len); /* kept: names point into it */
    if (!image || fread(image, 1, (size_t)len, f) != (size_t)len)
        abort();
    fclose(f);
    return image;
}

static void add_functions(const uint8_t *image, const Elf64_Shdr *sections,
                          const Elf64_Shdr *table)
{
    const Elf64_Sym *sym = (const Elf64_Sym *)(image + table->sh_offset);
    const char *names = (const char *)image + sections[table->sh_link].sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof(*sym); i++)
        if (ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC && sym[i].st_size &&
            sym[i].st_value)
            symbol_add(names + sym[i].st_name, sym[i].st_value, sym[i].st_size);
}

void symbols_init(void)
{
    const uint8_t *image = read_self();
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header->e_shoff);

    for (size_t i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            add_functions(image, sections, &sections[i]);
    symbols_sort();
    extable_init();
}

bool plat_has_fixup(uintptr_t addr)
{
    return extable_find(addr);
}

/* Only the debugger sets breakpoints here, and it hides them. */
bool plat_text_is_built(uintptr_t line, const uint8_t *bytes)
{
    (void)line;
    (void)bytes;
    return true;
}

static bool in_fixtures(uintptr_t addr)
{
    return addr >= (uintptr_t)fixtures_text_start && addr < (uintptr_t)fixtures_text_end;
}

/* Fixtures are compared by all that comes out of them, flags included. */
bool plat_is_compiled(uintptr_t addr)
{
    (void)addr;
    return false;
}

/* The signal handlers are marked NOKPROBE; in front of them is the other kernel. What the
 * linker and the C library have put in has no symbols, and is executed nevertheless.
 */
bool plat_is_entry(uintptr_t addr)
{
    struct plat_symbol sym;

    return addr >= (uintptr_t)__executable_start && addr < (uintptr_t)etext &&
           !plat_is_engine(addr) && !in_fixtures(addr) && plat_symbol_at(addr, &sym);
}

bool plat_is_engine(uintptr_t addr)
{
    return addr >= (uintptr_t)engine_text_start && addr < (uintptr_t)engine_text_end;
}

/* This program's code has no table of targets, but for what a test tells of its own. */
static struct {
    uint32_t start;               /* one target, so that the table is not empty */
    struct plat_opaque around[2]; /* below what is known, and above */
} entered;

void posix_text_entered(uintptr_t start, uintptr_t end)
{
    entered.start = (uint32_t)start;
    entered.around[0] = (struct plat_opaque){ 0, (uint32_t)start };
    entered.around[1] = (struct plat_opaque){ (uint32_t)end, UINT32_MAX };
}

void plat_targets(uintptr_t addr __attribute__((unused)), struct plat_targets *out)
{
    *out = (struct plat_targets){ .offsets = &entered.start,
                                  .count = entered.start != 0,
                                  .opaque = entered.around,
                                  .opaque_count = ARRAY_LEN(entered.around) };
}

int posix_take_marks(void)
{
    const struct nokprobe_marks marks = {
        .functions = nokprobe_start,
        .function_count = (size_t)(nokprobe_end - nokprobe_start),
    };

    return blacklist_add(&marks);
}
