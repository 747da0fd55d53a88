/* elf_check.h - is a file an object that can be loaded? All of it is looked at before any of
 * it is used. Pure.
 */
#pragma once

#include "kernel/module/elf.h"

#include <stdbool.h>
#include <stddef.h>

#define ELF_SECTIONS_MAX 4096u
#define ELF_ALIGN_MAX 4096u
#define ELF_LOADED_MAX (UINT64_C(16) << 20) /* bytes of all that is loaded */

/* Where a section goes when it is loaded. */
enum elf_segment {
    ELF_TEXT,
    ELF_RODATA,
    ELF_DATA,
    ELF_SEGMENTS,
    ELF_NOWHERE = ELF_SEGMENTS
};

/* What a section is to the loader, by its name. In a segment they lie in this order, so that
 * the sections of one table lie one behind the other.
 */
enum elf_role {
    ELF_CODE,
    ELF_KPROBES_CODE, /* the old way to say NOKPROBE: the section that the code is in */
    ELF_CONSTANTS,
    ELF_CONSTRUCTORS,
    ELF_DESTRUCTORS,
    ELF_WORKLOADS,
    ELF_EXTABLE,
    ELF_ABI, /* which headers it was compiled with: kernel/module/abi.py */
    ELF_NOKPROBE,
    ELF_NOKPROBE_RANGES, /* records of kernel/base/nokprobe.h */
    ELF_NORETPROBE,
    ELF_MARKER_INSNS, /* places of markers, and the records that these belong to */
    ELF_STATIC_KEYS,  /* records of kernel/debug/static_key.h */
    ELF_ENTRIES,      /* of functions, where their entry NOPs are */
    ELF_MARKERS,      /* records of kernel/debug/marker.h */
    ELF_VARIABLES,
    ELF_ZEROES,
    ELF_DROPPED, /* of no use to a kernel */
    ELF_ROLES,
};

/* Why a file is refused. */
enum elf_reason {
    ELF_OK,
    ELF_BAD_HEADER,
    ELF_BAD_KIND,
    ELF_BAD_SECTIONS,
    ELF_BAD_SECTION_NAMES,
    ELF_BAD_NAME,
    ELF_BAD_EXTENT,
    ELF_BAD_ALIGN,
    ELF_BAD_FLAGS,
    ELF_WRITE_AND_EXEC,
    ELF_UNKNOWN_SECTION,
    ELF_BAD_TYPE,
    ELF_BAD_RECORDS,
    ELF_TOO_LARGE,
    ELF_NO_SYMBOLS,
    ELF_BAD_SYMBOLS,
    ELF_BAD_SYMBOL,
    ELF_COMMON_SYMBOL,
    ELF_BAD_RELOCATIONS,
    ELF_BAD_RELOCATION,
    ELF_UNKNOWN_RELOCATION,
    ELF_NOT_ZERO,
    ELF_OVERFLOW,
    ELF_NOT_FOUND,
    ELF_REASONS,
};

struct elf_reject {
    enum elf_reason reason;
    const char
        *name; /* of the section or symbol, inside the file; NULL when it has none */
    uint64_t section; /* its number, 0: it is about none */
    uint64_t item;    /* number of the symbol or relocation in there */
};

/* elf_reason_text - one sentence. Context: any. */
const char *elf_reason_text(enum elf_reason reason);

/* elf_refuse - fill in @why. Return: -ENOEXEC. */
int elf_refuse(struct elf_reject *why, enum elf_reason reason, const char *name,
               uint64_t section, uint64_t item);

/* A file that is as it should be. Everything points into the file. */
struct elf_object {
    const uint8_t *file;
    const struct elf_section *sections;
    size_t section_count;
    const char *section_names;
    const struct elf_symbol *symbols;
    size_t symbol_count;
    const char *names; /* of symbols */
};

/* elf_check - look at all of @file.
 * @file: @len bytes, at a multiple of 8; stays as long as @out is used
 *
 * If it is accepted: all tables, names and contents of sections are inside the file; what is
 * to be loaded is known, fits in ELF_LOADED_MAX, and nothing of it is writable and
 * executable; symbols lie in their sections; relocations of what is loaded are of the five
 * known types, in place, over zeroes, and about symbols of what is loaded.
 *
 * Context: any.
 * Return:  0; -ENOEXEC, and @why says why.
 */
int elf_check(struct elf_object *out, const void *file, size_t len,
              struct elf_reject *why);

/* elf_role_of - of a section that elf_check() has accepted. elf_segment_of - the same. */
enum elf_role elf_role_of(const struct elf_object *o, const struct elf_section *s);
enum elf_segment elf_segment_of(const struct elf_object *o, const struct elf_section *s);
/* elf_record_len - bytes of one record of a table; 1: it is no table. */
size_t elf_record_len(enum elf_role role);

static inline const char *elf_section_name(const struct elf_object *o,
                                           const struct elf_section *s)
{
    return o->section_names + s->name;
}

static inline const char *elf_symbol_name(const struct elf_object *o,
                                          const struct elf_symbol *s)
{
    return o->names + s->name;
}

/* elf_content - the bytes of a section in the file; none for ELF_NOBITS. */
static inline const void *elf_content(const struct elf_object *o,
                                      const struct elf_section *s)
{
    return o->file + s->offset;
}
