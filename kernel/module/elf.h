/* elf.h - defines the parts of ELF that a relocatable object for x86-64 is made of. Pure.
 *
 * Source: System V ABI, "Object Files"; its AMD64 supplement, "Relocation Types".
 */
#pragma once

#include <stdint.h>

#define ELF_IDENT_LEN 16
#define ELF_CLASS_64 2
#define ELF_LITTLE_ENDIAN 1
#define ELF_VERSION 1
#define ELF_RELOCATABLE 1
#define ELF_X86_64 62

struct elf_header {
    uint8_t ident[ELF_IDENT_LEN];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, phoff, shoff;
    uint32_t flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};
_Static_assert(sizeof(struct elf_header) == 64, "as the ABI has it");

enum elf_section_type {
    ELF_NULL = 0,
    ELF_PROGBITS = 1,
    ELF_SYMTAB = 2,
    ELF_STRTAB = 3,
    ELF_RELA = 4,
    ELF_NOTE = 7,
    ELF_NOBITS = 8,
    ELF_REL = 9,
    ELF_INIT_ARRAY = 14,
    ELF_FINI_ARRAY = 15,
    ELF_SYMTAB_SHNDX = 18,
};

#define ELF_WRITE UINT64_C(1)
#define ELF_ALLOC UINT64_C(2)
#define ELF_EXEC UINT64_C(4)
#define ELF_TLS UINT64_C(0x400)
#define ELF_COMPRESSED UINT64_C(0x800)

struct elf_section {
    uint32_t name, type;
    uint64_t flags, addr, offset, size;
    uint32_t link, info;
    uint64_t align, entsize;
};
_Static_assert(sizeof(struct elf_section) == 64, "as the ABI has it");

/* Special values in place of a section's number. */
#define ELF_UNDEFINED 0u
#define ELF_RESERVED 0xff00u /* and all numbers above it */
#define ELF_ABSOLUTE 0xfff1u
#define ELF_COMMON 0xfff2u

enum elf_symbol_bind { ELF_LOCAL, ELF_GLOBAL, ELF_WEAK };
enum elf_symbol_type { ELF_NOTYPE, ELF_OBJECT, ELF_FUNC, ELF_SECTION, ELF_FILE };

struct elf_symbol {
    uint32_t name;
    uint8_t info, other;
    uint16_t section;
    uint64_t value, size;
};
_Static_assert(sizeof(struct elf_symbol) == 24, "as the ABI has it");

static inline unsigned elf_bind(const struct elf_symbol *s)
{
    return s->info >> 4;
}

static inline unsigned elf_type(const struct elf_symbol *s)
{
    return s->info & 15;
}

enum elf_relocation {
    ELF_R_64 = 1,
    ELF_R_PC32 = 2,
    ELF_R_PLT32 = 4,
    ELF_R_32 = 10,
    ELF_R_32S = 11,
};

struct elf_rela {
    uint64_t offset;
    uint32_t type, symbol;
    int64_t addend;
};
_Static_assert(sizeof(struct elf_rela) == 24, "as the ABI has it");
