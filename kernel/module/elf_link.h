/* elf_link.h - gives an object that was checked its places, the values of its symbols,
 * and its final bytes. Pure.
 */
#pragma once

#include "kernel/module/elf_check.h"

/* Where a section lies in its segment. */
struct elf_place {
    uint32_t segment; /* enum elf_segment; ELF_NOWHERE */
    uint32_t offset;
};

struct elf_table {
    uint32_t offset, len; /* bytes, in the segment of its role */
};

struct elf_layout {
    struct elf_place *places;           /* one for each section */
    size_t size[ELF_SEGMENTS];          /* bytes */
    struct elf_table tables[ELF_ROLES]; /* of a role: all of its sections */
};

/* elf_lay_out - decide where each section of @o goes.
 * @places:  room for o->section_count; used as long as @out is
 *
 * Sections of one role lie together. Constructors and destructors are sorted by priority,
 * as linker.ld sorts them; all other sections are in the order of the file. Each section
 * is aligned as it asks for, and a table to 8 bytes. Text begins behind ELF_TEXT_GAP
 * unused bytes, so no instruction is at the address where the segment begins. The kernel
 * works with that address, so it lies on stacks without being a return address.
 *
 * Context: any.
 */
#define ELF_TEXT_GAP 16u
void elf_lay_out(const struct elf_object *o, struct elf_place *places,
                 struct elf_layout *out);

/* elf_resolve - compute the values of all symbols.
 * @base:    where each segment will be executed, read or written
 * @find:    finds the value of a name that the object does not define: 0, or -ENOENT
 * @values:  room for o->symbol_count
 *
 * A weak symbol that is not found is 0.
 *
 * Context: as @find.  Return: 0; -ENOEXEC a name is not found.
 */
int elf_resolve(const struct elf_object *o, const struct elf_layout *layout,
                const uint64_t base[ELF_SEGMENTS],
                int (*find)(const char *name, uint64_t *value, void *arg), void *arg,
                uint64_t *values, struct elf_reject *why);

/* elf_write - write the bytes of the object that will be used at @base into @image.
 * @image: layout->size[] bytes for each segment; those of ELF_DATA are zeroed
 *
 * Context: any.
 * Return:  0; -ENOEXEC a value does not fit, or two relocations change the same bytes.
 */
int elf_write(const struct elf_object *o, const struct elf_layout *layout,
              const uint64_t base[ELF_SEGMENTS], const uint64_t *values,
              uint8_t *const image[ELF_SEGMENTS], struct elf_reject *why);
