/* small_object.h - a small relocatable object, as a compiler would make it. Each of its
 * parts is a field of a struct, so that a test can change it.
 */
#pragma once

#include "kernel/module/elf.h"

/* The sections, in the order of their headers. */
enum {
    SMALL_NULL,
    SMALL_TEXT,  /* 16 bytes: a function; the operand of its call of `wanted` is at 4 */
    SMALL_DATA,  /* 16 bytes: a pointer to the function is at 8 */
    SMALL_BSS,   /* 32 bytes */
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

/* small_object_make - fill in @o. elf_check() accepts the result. */
void small_object_make(struct small_object *o);
