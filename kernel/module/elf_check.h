/* elf_check.h - checks whether a file is an object that can be loaded. All of it is
 * checked before any of it is used. Pure.
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

/* The role of a section for the loader: the section's name decides it. In a segment the
 * sections lie in this order, so that the sections of one table lie one behind the other.
 */
enum elf_role {
    ELF_CODE,
    ELF_KPROBES_CODE, /* the older way to say NOKPROBE: by the section of the code */
    ELF_CONSTANTS,
    ELF_CONSTRUCTORS,
    ELF_DESTRUCTORS,
    ELF_WORKLOADS,
    ELF_EXTABLE,
    ELF_ABI, /* which headers the object was compiled with: see abi.py */
    ELF_NOKPROBE,
    ELF_NOKPROBE_RANGES, /* records of kernel/base/nokprobe.h */
    ELF_NORETPROBE,
    ELF_MARKER_INSNS, /* places of markers, each with its record in ELF_MARKERS */
    ELF_STATIC_KEYS,  /* records of kernel/debug/static_key.h */
    ELF_ENTRIES,      /* addresses of functions' entry NOPs */
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
    const char *name; /* of the section or symbol, inside the file; NULL: it has none */
};

/* elf_reason_text - return a sentence for @reason. Context: any. */
const char *elf_reason_text(enum elf_reason reason);

/* elf_refuse - fill in @why. Return: -ENOEXEC. */
int elf_refuse(struct elf_reject *why, enum elf_reason reason, const char *name);

/* A file that elf_check() has accepted. All pointers point into the file. */
struct elf_object {
    const uint8_t *file;
    const struct elf_section *sections;
    size_t section_count;
    const char *section_names;
    const struct elf_symbol *symbols;
    size_t symbol_count;
    const char *names; /* of symbols */
};

/* elf_check - check all of @file, and fill @out.
 * @file: @len bytes, at a multiple of 8; stays as long as @out is used
 *
 * If the file is accepted, all tables, names and contents of sections are inside it. Each
 * section to be loaded has a known role, and is not both writable and executable;
 * together they fit in ELF_LOADED_MAX. Symbols lie in their sections. Relocations of
 * sections to be loaded are of the five known types, lie inside their sections, change
 * only zeroes, and use no symbol of a section that is not loaded.
 *
 * Context: any.
 * Return:  0; -ENOEXEC, and @why says why.
 */
int elf_check(struct elf_object *out, const void *file, size_t len,
              struct elf_reject *why);

/* elf_role_of - return the role of a section that elf_check() has accepted.
 * elf_segment_of - return its segment.
 */
enum elf_role elf_role_of(const struct elf_object *o, const struct elf_section *s);
enum elf_segment elf_segment_of(const struct elf_object *o, const struct elf_section *s);
/* elf_record_len - return the bytes of one record of a table; 1: @role is no table. */
size_t elf_record_len(enum elf_role role);

/* elf_params - return what the object tells of the function @name: a line of words, see
 * kernel/debug/gen_params.py; NULL: nothing. kernel/module/params.py makes the section.
 */
const char *elf_params(const struct elf_object *o, const char *name);

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

/* elf_content - return the bytes of a section in the file; ELF_NOBITS has none. */
static inline const void *elf_content(const struct elf_object *o,
                                      const struct elf_section *s)
{
    return o->file + s->offset;
}
