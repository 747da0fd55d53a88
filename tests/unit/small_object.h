/* small_object.h - a relocatable object as a compiler would make it, small, and with a name
 * for each of its fields, so that a test can change one.
 */
#pragma once

#include "kernel/module/elf.h"

/* In the order of its headers. */
enum {
    SMALL_NULL,
    SMALL_TEXT,  /* 16 bytes: a function with a call of `wanted` at 4 */
    SMALL_DATA,  /* 16: a pointer to that function at 8 */
    SMALL_BSS,   /* 32 */
    SMALL_INIT,  /* a constructor */
    SMALL_DEBUG, /* not loaded */
    SMALL_SYMTAB,
    SMALL_STRTAB,
    SMALL_SHSTRTAB,
    SMALL_RELA_TEXT,
    SMALL_RELA_DATA,
    SMALL_RELA_INIT,
    SMALL_SECTIONS,
};

enum {
    SMALL_NONE,
    SMALL_SECTION,
    SMALL_FUNCTION,
    SMALL_VARIABLE,
    SMALL_WANTED,
    SMALL_SYMBOLS
};

struct small_object {
    struct elf_header header;
    struct elf_section sections[SMALL_SECTIONS];
    struct elf_symbol symbols[SMALL_SYMBOLS];
    struct elf_rela text_relas[1], data_relas[1], init_relas[1];
    uint8_t text[16], data[16], init[8], debug[8];
    char names[40], section_names[120];
};

/* small_object_make - a new one, which elf_check() accepts. */
void small_object_make(struct small_object *o);
