/* fuzz_module.c - libFuzzer: gives any file to the loader of modules.
 *
 *     make build/fuzz/fuzz_module && build/fuzz/fuzz_module -max_len=16384 FILES...
 *
 * In a quarter of its changes the fuzzer itself changes bytes. Few files are accepted
 * after that. So the other changes give a new value to a field of the header, of a
 * section, a symbol or a relocation. These facts must hold for a file that is accepted:
 *   - all parts of it can be read, which the sanitizers check, and the facts that the
 *   loader
 *     relies on hold: this file checks them again, in its own way;
 *   - it is placed, resolved and written, and no byte outside of the given memory is
 *   accessed.
 */
#include "kernel/base/bits.h"
#include "kernel/base/err.h"
#include "kernel/module/elf_link.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0xffffffff81000000)
#define WRITTEN_MAX (256 * KiB) /* larger objects are placed, but not written */

#define MUST(cond)                                                                       \
    do {                                                                                 \
        if (!(cond))                                                                     \
            abort();                                                                     \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* ---- facts that must hold ---- */

static volatile size_t sink; /* keeps the compiler from leaving out reads */

static void read_bytes(const void *from, size_t len)
{
    const uint8_t *bytes = from;

    for (size_t i = 0; i < len; i++)
        sink += bytes[i];
}

static bool is_loaded(const struct elf_object *o, size_t section)
{
    return elf_segment_of(o, &o->sections[section]) != ELF_NOWHERE;
}

/* look_at_name - check that @name is an offset in the table of strings at @names, and
 * that the string ends inside the table.
 */
static void look_at_name(const struct elf_object *o, const char *names, uint32_t name)
{
    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];

        if (s->type != ELF_STRTAB || elf_content(o, s) != names || name >= s->size)
            continue;
        if (memchr(names + name, 0, s->size - name))
            return;
    }
    abort();
}

static void look_at_section(const struct elf_object *o, size_t i)
{
    const struct elf_section *s = &o->sections[i];

    look_at_name(o, o->section_names, s->name);
    if (s->type != ELF_NOBITS)
        read_bytes(elf_content(o, s), s->size);
    if (!(s->flags & ELF_ALLOC))
        return;
    MUST(!(s->flags & ELF_WRITE) || !(s->flags & ELF_EXEC));
    MUST(s->align <= 4096 && !(s->align & (s->align - 1)) && s->size <= 16 * MiB);
    if (is_loaded(o, i)) {
        MUST(!(s->flags & ELF_EXEC) == (elf_segment_of(o, s) != ELF_TEXT));
        MUST(s->size % elf_record_len(elf_role_of(o, s)) == 0);
    }
}

static void look_at_symbol(const struct elf_object *o, size_t i)
{
    const struct elf_symbol *s = &o->symbols[i];

    look_at_name(o, o->names, s->name);
    MUST(elf_bind(s) <= ELF_WEAK && elf_type(s) <= ELF_FILE);
    if (s->section == ELF_UNDEFINED || s->section == ELF_ABSOLUTE)
        return;
    MUST(s->section < o->section_count);
    MUST(s->value <= o->sections[s->section].size);
    MUST(s->size <= o->sections[s->section].size - s->value);
}

static void look_at_relocations(const struct elf_object *o, const struct elf_section *s)
{
    const struct elf_rela *r;

    if (s->type != ELF_RELA || !is_loaded(o, s->info))
        return;
    r = elf_content(o, s);
    for (size_t i = 0; i < s->size / sizeof(*r); i++) {
        const struct elf_symbol *symbol = &o->symbols[r[i].symbol];

        MUST(r[i].type == 1 || r[i].type == 2 || r[i].type == 4 || r[i].type == 10 ||
             r[i].type == 11);
        MUST(symbol->section == ELF_UNDEFINED || symbol->section == ELF_ABSOLUTE ||
             is_loaded(o, symbol->section));
    }
}

static int find(const char *name, uint64_t *value, void *arg)
{
    size_t len = strlen(name);

    (void)arg;
    *value = BASE + len * 4096;
    return len % 7 ? 0 : -ENOENT;
}

static void link_it(const struct elf_object *o, const struct elf_layout *layout)
{
    static const uint64_t base[ELF_SEGMENTS] = { BASE, BASE + 16 * MiB, BASE + 32 * MiB };
    uint64_t *values = malloc(o->symbol_count * sizeof(*values));
    uint8_t *image[ELF_SEGMENTS];
    struct elf_reject why = { 0 };

    for (size_t i = 0; i < ELF_SEGMENTS; i++)
        image[i] = calloc(1, layout->size[i] ? layout->size[i] : 1);
    if (elf_resolve(o, layout, base, find, NULL, values, &why) ||
        elf_write(o, layout, base, values, image, &why))
        MUST(why.reason && why.reason < ELF_REASONS);
    for (size_t i = 0; i < ELF_SEGMENTS; i++)
        free(image[i]);
    free(values);
}

static void lay_it_out(const struct elf_object *o)
{
    struct elf_place *places = malloc(o->section_count * sizeof(*places));
    struct elf_layout layout;
    size_t total = 0;

    elf_lay_out(o, places, &layout);
    for (size_t i = 0; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];

        MUST((places[i].segment < ELF_SEGMENTS) == (i && is_loaded(o, i)));
        if (places[i].segment >= ELF_SEGMENTS)
            continue;
        MUST(!s->align || places[i].offset % s->align == 0);
        MUST(places[i].offset + s->size <= layout.size[places[i].segment]);
    }
    for (size_t i = 0; i < ELF_SEGMENTS; i++)
        total += layout.size[i];
    MUST(total <= 17 * MiB);
    if (total <= WRITTEN_MAX)
        link_it(o, &layout);
    free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file = malloc(size ? size : 1); /* the sanitizer catches reads behind it */
    struct elf_reject why = { 0 };
    struct elf_object o;

    memcpy(file, data, size);
    if (elf_check(&o, file, size, &why)) {
        MUST(why.reason && why.reason < ELF_REASONS && elf_reason_text(why.reason)[0]);
        sink += why.name ? strlen(why.name) : 0;
        free(file);
        return 0;
    }
    for (size_t i = 1; i < o.section_count; i++)
        look_at_section(&o, i);
    for (size_t i = 0; i < o.symbol_count; i++)
        look_at_symbol(&o, i);
    for (size_t i = 1; i < o.section_count; i++)
        look_at_relocations(&o, &o.sections[i]);
    for (size_t i = 0; i < o.symbol_count; i++) {
        const char *params = elf_params(&o, elf_symbol_name(&o, &o.symbols[i]));

        sink += params ? strlen(params) : 0;
    }
    lay_it_out(&o);
    free(file);
    return 0;
}

/* ---- other values for fields ---- */

static unsigned random_state;

static unsigned random_below(unsigned count)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 8) % count;
}

/* other_value - return a new value for a field: near its old value, near the end of a
 * range, or with other bits set.
 */
static uint64_t other_value(uint64_t old, size_t size)
{
    switch (random_below(8)) {
    case 0:
        return old + 1 + random_below(16);
    case 1:
        return old - 1 - random_below(16);
    case 2:
        return old ^ BIT(random_below(64));
    case 3:
        return random_below(64);
    case 4:
        return UINT64_MAX - random_below(64);
    case 5:
        return size - 16 + random_below(32);
    case 6:
        return BIT(random_below(64));
    default:
        return old | (uint64_t)random_below(256) << 8 * random_below(8);
    }
}

/* The lengths of the fields of each struct, in their order. */
static const uint8_t header_fields[] = { 1, 1, 1, 1, 1, 1, 1, 1, 8, 2, 2, 4,
                                         8, 8, 8, 4, 2, 2, 2, 2, 2, 2, 0 };
static const uint8_t section_fields[] = { 4, 4, 8, 8, 8, 8, 4, 4, 8, 8, 0 };
static const uint8_t symbol_fields[] = { 4, 1, 1, 2, 8, 8, 0 };
static const uint8_t rela_fields[] = { 8, 4, 4, 8, 0 };

static void change_field(uint8_t *data, size_t size, size_t at, const uint8_t *fields)
{
    unsigned count = (unsigned)strlen((const char *)fields), which = random_below(count);
    uint64_t value = 0;

    for (unsigned i = 0; i < which; i++)
        at += fields[i];
    if (at > size || fields[which] > size - at)
        return;
    memcpy(&value, data + at, fields[which]);
    value = other_value(value, size);
    memcpy(data + at, &value, fields[which]);
}

/* change_record - change a field of one record of section @s, if the section is inside
 * the file.
 */
static void change_record(uint8_t *data, size_t size, const struct elf_section *s)
{
    bool symbols = s->type == ELF_SYMTAB;

    if (s->size < 24 || s->offset > size || s->size > size - s->offset)
        return;
    change_field(data, size, s->offset + 24 * random_below((unsigned)(s->size / 24)),
                 symbols ? symbol_fields : rela_fields);
}

static void change_something(uint8_t *data, size_t size)
{
    struct elf_header h;
    struct elf_section s;
    size_t at;

    memcpy(&h, data, sizeof(h));
    if (!random_below(8) || !h.shnum || h.shoff > size) {
        change_field(data, size, 0, header_fields);
        return;
    }
    at = h.shoff + sizeof(s) * random_below(h.shnum);
    if (sizeof(s) > size - h.shoff || at > size - sizeof(s))
        return;
    memcpy(&s, data + at, sizeof(s));
    if ((s.type == ELF_SYMTAB || s.type == ELF_RELA) && random_below(8))
        change_record(data, size, &s);
    else
        change_field(data, size, at, section_fields);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    random_state = seed;
    if (size < sizeof(struct elf_header) || !random_below(4))
        return LLVMFuzzerMutate(data, size, max_size);
    change_something(data, size);
    return size;
}
