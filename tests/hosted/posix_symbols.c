/* posix_symbols.c - finds the functions of this program in its own symbol table, and
 * tells the engine facts about its text.
 */
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

/* Defined in the linker script. */
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
    image = malloc((size_t)len); /* never freed, because names of symbols point into it */
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
    extable_init();
}

bool plat_has_fixup(uintptr_t addr)
{
    return extable_find(addr);
}

/* plat_text_is_built - true: only gdb changes the text of this program, and gdb hides its
 * breakpoints.
 */
bool plat_text_is_built(uintptr_t line UNUSED, const uint8_t *bytes UNUSED)
{
    return true;
}

static bool in_fixtures(uintptr_t addr)
{
    return addr >= (uintptr_t)fixtures_text_start && addr < (uintptr_t)fixtures_text_end;
}

/* plat_is_compiled - no function counts as compiled: the flags are a part of the outcome
 * of a fixture, so every detour has to keep them.
 */
bool plat_is_compiled(uintptr_t addr UNUSED)
{
    return false;
}

/* plat_is_entry - code without a symbol counts as entry code: the linker and the C
 * library have put it into the program. The signal handlers are marked NOKPROBE, and code
 * in front of them belongs to Linux.
 */
bool plat_is_entry(uintptr_t addr)
{
    struct plat_symbol sym;

    return addr >= (uintptr_t)__executable_start && addr < (uintptr_t)etext &&
           !plat_is_engine(addr) && !in_fixtures(addr) && plat_symbol_at(addr, &sym);
}

bool plat_stops_at(uintptr_t addr UNUSED)
{
    return false;
}

bool plat_is_engine(uintptr_t addr)
{
    return addr >= (uintptr_t)engine_text_start && addr < (uintptr_t)engine_text_end;
}

/* The build makes no table of targets for this program. All of its code is opaque, except
 * for one range that a test may declare.
 */
static struct {
    uint32_t start;               /* one target, so that the table is not empty */
    struct plat_opaque around[2]; /* the text below the range, and above it */
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
