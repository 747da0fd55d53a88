/* elf_link.c - does the work of a linker for one object: places, values, bytes. Pure;
 * host tested.
 *
 * All functions here trust elf_check().
 */
#include "kernel/module/elf_link.h"

#include "kernel/base/bits.h"
#include "kernel/base/err.h"

#include <string.h>

/* ---- places ---- */

#define NO_PRIORITY UINT32_MAX /* behind all sections with a priority */

/* priority_of - return the priority in the name of a section: 101 for .init_array.101. */
static uint32_t priority_of(const struct elf_object *o, const struct elf_section *s)
{
    const char *dot = strrchr(elf_section_name(o, s) + 1, '.');
    uint32_t priority = 0;

    if (!dot)
        return NO_PRIORITY;
    for (const char *c = dot + 1; *c; c++) {
        if (*c < '0' || *c > '9' || priority > NO_PRIORITY / 16)
            return NO_PRIORITY;
        priority = priority * 10 + (uint32_t)(*c - '0');
    }
    return priority;
}

static bool has_order(enum elf_role role)
{
    return role == ELF_CONSTRUCTORS || role == ELF_DESTRUCTORS;
}

/* The segment of a section that has no place yet: each section gets a place once. */
#define WAITS (ELF_SEGMENTS + 1u)

/* next_of - return the section of @role that gets the next place; NULL: all have their
 * places. @from: where the search begins; for roles in the order of the file, behind the
 * last section
 */
static const struct elf_section *next_of(const struct elf_object *o, enum elf_role role,
                                         const struct elf_place *places, size_t from)
{
    const struct elf_section *best = NULL;

    for (size_t i = from; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];

        if (places[i].segment != WAITS || elf_role_of(o, s) != role)
            continue;
        if (!has_order(role))
            return s;
        if (!best || priority_of(o, s) < priority_of(o, best))
            best = s;
    }
    return best;
}

static void place_section(const struct elf_object *o, const struct elf_section *s,
                          struct elf_layout *out)
{
    enum elf_role role = elf_role_of(o, s);
    enum elf_segment segment = elf_segment_of(o, s);
    struct elf_table *table = &out->tables[role];
    size_t align = s->align ? s->align : 1;
    size_t offset;

    if (elf_record_len(role) > 1)
        align = 8;
    if (segment == ELF_TEXT && !out->size[segment])
        out->size[segment] = ELF_TEXT_GAP;
    offset = align_up(out->size[segment], align);
    out->places[s - o->sections] =
        (struct elf_place){ (uint32_t)segment, (uint32_t)offset };
    out->size[segment] = offset + s->size;
    if (!table->len)
        table->offset = (uint32_t)offset;
    table->len = (uint32_t)(offset + s->size - table->offset);
}

void elf_lay_out(const struct elf_object *o, struct elf_place *places,
                 struct elf_layout *out)
{
    *out = (struct elf_layout){ .places = places };
    for (size_t i = 0; i < o->section_count; i++) {
        bool loaded = i && elf_segment_of(o, &o->sections[i]) != ELF_NOWHERE;

        places[i].segment = loaded ? WAITS : ELF_NOWHERE;
        places[i].offset = 0;
    }
    for (enum elf_role role = 0; role < ELF_DROPPED; role++) {
        const struct elf_section *s = &o->sections[0];

        while ((s = next_of(o, role, places,
                            has_order(role) ? 1 : (size_t)(s - o->sections) + 1)))
            place_section(o, s, out);
    }
}

/* ---- values ---- */

static uint64_t section_place(const struct elf_layout *layout,
                              const uint64_t base[ELF_SEGMENTS], size_t section)
{
    const struct elf_place *p = &layout->places[section];

    return p->segment == ELF_NOWHERE ? 0 : base[p->segment] + p->offset;
}

static int find_outside(const struct elf_object *o, size_t i,
                        int (*find)(const char *name, uint64_t *value, void *arg),
                        void *arg, uint64_t *value)
{
    const struct elf_symbol *s = &o->symbols[i];

    *value = 0;
    if (!i || !find(elf_symbol_name(o, s), value, arg))
        return 0;
    *value = 0;
    return elf_bind(s) == ELF_WEAK ? 0 : -ENOENT;
}

int elf_resolve(const struct elf_object *o, const struct elf_layout *layout,
                const uint64_t base[ELF_SEGMENTS],
                int (*find)(const char *name, uint64_t *value, void *arg), void *arg,
                uint64_t *values, struct elf_reject *why)
{
    for (size_t i = 0; i < o->symbol_count; i++) {
        const struct elf_symbol *s = &o->symbols[i];

        if (s->section == ELF_ABSOLUTE)
            values[i] = s->value;
        else if (s->section != ELF_UNDEFINED)
            values[i] = section_place(layout, base, s->section) + s->value;
        else if (find_outside(o, i, find, arg, &values[i]))
            return elf_refuse(why, ELF_NOT_FOUND, elf_symbol_name(o, s));
    }
    return 0;
}

/* ---- bytes ---- */

/* relocation_bytes - compute what a relocation of @type writes at @place for @value.
 * Return: how many bytes; 0: the result does not fit into them.
 */
static size_t relocation_bytes(uint32_t type, uint64_t value, uint64_t place,
                               uint64_t *out)
{
    int64_t distance = (int64_t)(value - place);

    *out = value;
    switch (type) {
    case ELF_R_64:
        return 8;
    case ELF_R_32:
        return value == (uint32_t)value ? 4 : 0;
    case ELF_R_32S:
        return (int64_t)value == (int32_t)value ? 4 : 0;
    default:
        *out = (uint64_t)distance;
        return distance == (int32_t)distance ? 4 : 0;
    }
}

static enum elf_reason apply_relocation(const struct elf_rela *r, uint64_t place,
                                        const uint64_t *values, uint8_t *at)
{
    static const uint8_t zeroes[8];
    uint64_t bytes;
    size_t width =
        relocation_bytes(r->type, values[r->symbol] + (uint64_t)r->addend, place, &bytes);

    if (!width)
        return ELF_OVERFLOW;
    if (memcmp(at, zeroes, width) != 0)
        return ELF_NOT_ZERO;
    memcpy(at, &bytes, width);
    return ELF_OK;
}

static int relocate(const struct elf_object *o, const struct elf_section *s,
                    uint64_t base, const uint64_t *values, uint8_t *image,
                    struct elf_reject *why)
{
    const struct elf_rela *r = elf_content(o, s);

    for (size_t i = 0; i < s->size / sizeof(*r); i++) {
        enum elf_reason reason =
            apply_relocation(&r[i], base + r[i].offset, values, image + r[i].offset);

        if (reason)
            return elf_refuse(why, reason, elf_symbol_name(o, &o->symbols[r[i].symbol]));
    }
    return 0;
}

int elf_write(const struct elf_object *o, const struct elf_layout *layout,
              const uint64_t base[ELF_SEGMENTS], const uint64_t *values,
              uint8_t *const image[ELF_SEGMENTS], struct elf_reject *why)
{
    int err = 0;

    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];
        const struct elf_place *p = &layout->places[i];

        if (p->segment != ELF_NOWHERE && s->type != ELF_NOBITS && s->size)
            memcpy(image[p->segment] + p->offset, elf_content(o, s), s->size);
    }
    for (size_t i = 1; i < o->section_count && !err; i++) {
        const struct elf_section *s = &o->sections[i];
        const struct elf_place *p = &layout->places[s->type == ELF_RELA ? s->info : 0];

        if (p->segment != ELF_NOWHERE)
            err = relocate(o, s, base[p->segment] + p->offset, values,
                           image[p->segment] + p->offset, why);
    }
    return err;
}
