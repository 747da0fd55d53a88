/* small_object.c - fills in struct small_object. */
#include "tests/unit/small_object.h"

#include <stddef.h>
#include <string.h>

static uint32_t append(char *pool, size_t *used, const char *name)
{
    uint32_t at = (uint32_t)*used;

    strcpy(pool + at, name);
    *used += strlen(name) + 1;
    return at;
}

#define PLACED(field)                                                                    \
    offsetof(struct small_object, field), sizeof(((struct small_object *)0)->field)

static void section_set(struct small_object *o, size_t i, uint32_t type, uint64_t flags,
                        uint64_t offset, uint64_t size)
{
    o->sections[i].type = type;
    o->sections[i].flags = flags;
    o->sections[i].offset = offset;
    o->sections[i].size = size;
    o->sections[i].align = 8;
}

static void table_set(struct small_object *o, size_t i, uint32_t link, uint32_t info,
                      uint64_t entsize)
{
    o->sections[i].link = link;
    o->sections[i].info = info;
    o->sections[i].entsize = entsize;
}

static void header_make(struct elf_header *h)
{
    static const uint8_t ident[] = { 0x7f, 'E', 'L', 'F', ELF_CLASS_64, ELF_LITTLE_ENDIAN,
                                     1 };

    memcpy(h->ident, ident, sizeof(ident));
    h->type = ELF_RELOCATABLE;
    h->machine = ELF_X86_64;
    h->version = ELF_VERSION;
    h->shoff = offsetof(struct small_object, sections);
    h->ehsize = sizeof(*h);
    h->shentsize = sizeof(struct elf_section);
    h->shnum = SMALL_SECTIONS;
    h->shstrndx = SMALL_SHSTRTAB;
}

static void sections_make(struct small_object *o)
{
    static const char *const names[] = {
        "",           ".text",       ".data",
        ".bss",       ".init_array", ".debug_info",
        ".symtab",    ".strtab",     ".shstrtab",
        ".rela.text", ".rela.data",  ".rela.init_array",
    };
    size_t used = 0;

    for (size_t i = 0; i < SMALL_SECTIONS; i++)
        o->sections[i].name = append(o->section_names, &used, names[i]);
    section_set(o, SMALL_TEXT, ELF_PROGBITS, ELF_ALLOC | ELF_EXEC, PLACED(text));
    section_set(o, SMALL_DATA, ELF_PROGBITS, ELF_ALLOC | ELF_WRITE, PLACED(data));
    section_set(o, SMALL_BSS, ELF_NOBITS, ELF_ALLOC | ELF_WRITE, 0, 32);
    section_set(o, SMALL_INIT, ELF_INIT_ARRAY, ELF_ALLOC | ELF_WRITE, PLACED(init));
    section_set(o, SMALL_DEBUG, ELF_PROGBITS, 0, PLACED(debug));
    section_set(o, SMALL_SYMTAB, ELF_SYMTAB, 0, PLACED(symbols));
    section_set(o, SMALL_STRTAB, ELF_STRTAB, 0, PLACED(names));
    section_set(o, SMALL_SHSTRTAB, ELF_STRTAB, 0, PLACED(section_names));
    section_set(o, SMALL_RELA_TEXT, ELF_RELA, 0, PLACED(text_relas));
    section_set(o, SMALL_RELA_DATA, ELF_RELA, 0, PLACED(data_relas));
    section_set(o, SMALL_RELA_INIT, ELF_RELA, 0, PLACED(init_relas));
    table_set(o, SMALL_SYMTAB, SMALL_STRTAB, SMALL_VARIABLE, sizeof(struct elf_symbol));
    table_set(o, SMALL_RELA_TEXT, SMALL_SYMTAB, SMALL_TEXT, sizeof(struct elf_rela));
    table_set(o, SMALL_RELA_DATA, SMALL_SYMTAB, SMALL_DATA, sizeof(struct elf_rela));
    table_set(o, SMALL_RELA_INIT, SMALL_SYMTAB, SMALL_INIT, sizeof(struct elf_rela));
}

static uint8_t info(enum elf_symbol_bind bind, enum elf_symbol_type type)
{
    return (uint8_t)(bind << 4 | type);
}

static void symbols_make(struct small_object *o)
{
    size_t used = 1;

    o->symbols[SMALL_SECTION] = (struct elf_symbol){ .info = info(ELF_LOCAL, ELF_SECTION),
                                                     .section = SMALL_TEXT };
    o->symbols[SMALL_FUNCTION] =
        (struct elf_symbol){ .name = append(o->names, &used, "function"),
                             .info = info(ELF_LOCAL, ELF_FUNC),
                             .section = SMALL_TEXT,
                             .size = 16 };
    o->symbols[SMALL_VARIABLE] =
        (struct elf_symbol){ .name = append(o->names, &used, "variable"),
                             .info = info(ELF_GLOBAL, ELF_OBJECT),
                             .section = SMALL_BSS,
                             .value = 8,
                             .size = 24 };
    o->symbols[SMALL_WANTED] =
        (struct elf_symbol){ .name = append(o->names, &used, "wanted"),
                             .info = info(ELF_GLOBAL, ELF_NOTYPE) };
}

void small_object_make(struct small_object *o)
{
    *o = (struct small_object){ 0 };
    header_make(&o->header);
    sections_make(o);
    symbols_make(o);
    memset(o->text, 0x90, sizeof(o->text));
    memset(o->text + 3, 0, 5);
    o->text[3] = 0xe8;
    o->text_relas[0] = (struct elf_rela){ 4, ELF_R_PLT32, SMALL_WANTED, -4 };
    o->data_relas[0] = (struct elf_rela){ 8, ELF_R_64, SMALL_FUNCTION, 0 };
    o->init_relas[0] = (struct elf_rela){ 0, ELF_R_64, SMALL_SECTION, 0 };
}
