/* elf_check.c - checks an object as a whole before any of it is used. Pure; host tested
 * and fuzzed.
 *
 * Each step uses only what the steps before it have accepted. So the header comes first:
 * it says where the sections are. The sections say where the names and the symbols are.
 * Relocations come last: they refer to sections and symbols. All arithmetic is on numbers
 * that were compared with the length of the file, or with ELF_LOADED_MAX.
 */
#include "kernel/module/elf_check.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"

#include <string.h>

/* ---- why not ---- */

static const char *const reason_texts[] = {
    [ELF_OK] = "it can be loaded",
    [ELF_BAD_HEADER] = "no ELF file for 64 bits",
    [ELF_BAD_KIND] = "no relocatable object for x86-64",
    [ELF_BAD_SECTIONS] = "the table of sections is not in the file, or too long",
    [ELF_BAD_SECTION_NAMES] = "the names of sections are no table of strings",
    [ELF_BAD_NAME] = "the name of a section is not among the names",
    [ELF_BAD_EXTENT] = "a section is not in the file",
    [ELF_BAD_ALIGN] = "an alignment is no power of two, or over 4096",
    [ELF_BAD_FLAGS] = "its flags do not fit its name",
    [ELF_WRITE_AND_EXEC] = "a section is writable and executable",
    [ELF_UNKNOWN_SECTION] = "a section of this name cannot be loaded",
    [ELF_BAD_TYPE] = "its type does not fit its name",
    [ELF_BAD_RECORDS] = "a table does not consist of whole records",
    [ELF_TOO_LARGE] = "more than 16 MiB would be loaded",
    [ELF_NO_SYMBOLS] = "not one table of symbols",
    [ELF_BAD_SYMBOLS] = "the table of symbols is malformed",
    [ELF_BAD_SYMBOL] = "a symbol is malformed",
    [ELF_COMMON_SYMBOL] = "a variable without a section (compile with -fno-common)",
    [ELF_BAD_RELOCATIONS] = "a table of relocations is malformed",
    [ELF_BAD_RELOCATION] = "a relocation is malformed",
    [ELF_UNKNOWN_RELOCATION] = "a relocation that is not 64, 32, 32S, PC32 or PLT32",
    [ELF_NOT_ZERO] = "a relocation of bytes that are not zero",
    [ELF_OVERFLOW] = "a relocation does not fit its bytes",
    [ELF_NOT_FOUND] = "nothing has this name",
};
_Static_assert(ARRAY_LEN(reason_texts) == ELF_REASONS, "a sentence for each");

const char *elf_reason_text(enum elf_reason reason)
{
    return reason_texts[reason];
}

int elf_refuse(struct elf_reject *why, enum elf_reason reason, const char *name)
{
    *why = (struct elf_reject){ reason, name };
    return -ENOEXEC;
}

/* ---- names ---- */

static const struct role {
    const char *name;
    bool is_prefix; /* name.anything has the same role */
    uint8_t role;   /* enum elf_role */
    uint8_t segment;
    uint8_t record_len; /* bytes, of tables */
    bool may_write;     /* the file may call it writable */
} roles[] = {
    { ".text", true, ELF_CODE, ELF_TEXT, 1, false },
    { ".init.text", false, ELF_CODE, ELF_TEXT, 1, false },
    { ".kprobes.text", false, ELF_KPROBES_CODE, ELF_TEXT, 1, false },
    { ".rodata", true, ELF_CONSTANTS, ELF_RODATA, 1, false },
    { ".init_array", true, ELF_CONSTRUCTORS, ELF_RODATA, 8, true },
    { ".fini_array", true, ELF_DESTRUCTORS, ELF_RODATA, 8, true },
    { ".workloads", false, ELF_WORKLOADS, ELF_RODATA, 24, true },
    { ".extable", false, ELF_EXTABLE, ELF_RODATA, 8, true },
    { ".sonde_abi", false, ELF_ABI, ELF_RODATA, 8, false },
    { ".nokprobe", false, ELF_NOKPROBE, ELF_RODATA, 8, true },
    { ".nokprobe_ranges", false, ELF_NOKPROBE_RANGES, ELF_RODATA, 24, true },
    { ".noretprobe", false, ELF_NORETPROBE, ELF_RODATA, 8, true },
    { "__patchable_function_entries", false, ELF_ENTRIES, ELF_RODATA, 8, true },
    { ".marker_insns", false, ELF_MARKER_INSNS, ELF_RODATA, 16, true },
    { ".static_keys", false, ELF_STATIC_KEYS, ELF_RODATA, 24, true },
    { ".markers", false, ELF_MARKERS, ELF_DATA, 40, true },
    { ".init.data", false, ELF_VARIABLES, ELF_DATA, 1, true },
    { ".data", true, ELF_VARIABLES, ELF_DATA, 1, true },
    { ".bss", true, ELF_ZEROES, ELF_DATA, 1, true },
    /* What linker.ld drops as well. */
    { ".eh_frame", false, ELF_DROPPED, ELF_NOWHERE, 1, true },
    { ".note.gnu.property", false, ELF_DROPPED, ELF_NOWHERE, 1, true },
    { ".note.GNU-stack", false, ELF_DROPPED, ELF_NOWHERE, 1, true },
};

static const struct role *role_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        size_t len = strlen(roles[i].name);

        if (strncmp(name, roles[i].name, len) != 0)
            continue;
        if (!name[len] || (roles[i].is_prefix && name[len] == '.'))
            return &roles[i];
    }
    return NULL;
}

static const struct role *role_of(const struct elf_object *o, const struct elf_section *s)
{
    return s->flags & ELF_ALLOC ? role_find(elf_section_name(o, s)) : NULL;
}

enum elf_role elf_role_of(const struct elf_object *o, const struct elf_section *s)
{
    const struct role *role = role_of(o, s);

    return role ? (enum elf_role)role->role : ELF_DROPPED;
}

enum elf_segment elf_segment_of(const struct elf_object *o, const struct elf_section *s)
{
    const struct role *role = role_of(o, s);

    return role ? (enum elf_segment)role->segment : ELF_NOWHERE;
}

size_t elf_record_len(enum elf_role role)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (roles[i].role == role)
            return roles[i].record_len;
    return 1;
}

/* ---- 1 the header ---- */

static bool is_within_file(uint64_t offset, uint64_t size, size_t len)
{
    return offset <= len && size <= len - offset;
}

static int check_header(const struct elf_header *h, size_t len, struct elf_reject *why)
{
    static const uint8_t ident[] = { 0x7f,       'E',          'L',
                                     'F',        ELF_CLASS_64, ELF_LITTLE_ENDIAN,
                                     ELF_VERSION };

    if (len < sizeof(*h) || memcmp(h->ident, ident, sizeof(ident)) != 0)
        return elf_refuse(why, ELF_BAD_HEADER, NULL);
    if (h->type != ELF_RELOCATABLE || h->machine != ELF_X86_64 ||
        h->version != ELF_VERSION || h->ehsize != sizeof(*h))
        return elf_refuse(why, ELF_BAD_KIND, NULL);
    if (h->shentsize != sizeof(struct elf_section) || h->shoff % 8 || !h->shnum ||
        h->shnum > ELF_SECTIONS_MAX ||
        !is_within_file(h->shoff, h->shnum * sizeof(struct elf_section), len))
        return elf_refuse(why, ELF_BAD_SECTIONS, NULL);
    return 0;
}

/* ---- 2 the sections ---- */

static uint64_t section_number(const struct elf_object *o, const struct elf_section *s)
{
    return (uint64_t)(s - o->sections);
}

static int refuse_section(const struct elf_object *o, const struct elf_section *s,
                          enum elf_reason reason, struct elf_reject *why)
{
    return elf_refuse(why, reason, o->section_names ? elf_section_name(o, s) : NULL);
}

static int check_extents(const struct elf_object *o, size_t len, struct elf_reject *why)
{
    if (o->sections[0].type != ELF_NULL)
        return elf_refuse(why, ELF_BAD_SECTIONS, NULL);
    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];

        if (s->type != ELF_NOBITS && !is_within_file(s->offset, s->size, len))
            return refuse_section(o, s, ELF_BAD_EXTENT, why);
        if (s->align & (s->align - 1) || s->align > ELF_ALIGN_MAX)
            return refuse_section(o, s, ELF_BAD_ALIGN, why);
    }
    return 0;
}

/* is_strings - is @section a table of strings, the last of which has a NUL at its end,
 * too?
 */
static bool is_strings(const struct elf_object *o, uint64_t section)
{
    const struct elf_section *s;

    if (!section || section >= o->section_count)
        return false;
    s = &o->sections[section];
    return s->type == ELF_STRTAB && s->size && !o->file[s->offset + s->size - 1];
}

static int check_section_names(struct elf_object *o, unsigned table,
                               struct elf_reject *why)
{
    if (!is_strings(o, table))
        return elf_refuse(why, ELF_BAD_SECTION_NAMES, NULL);
    for (size_t i = 1; i < o->section_count; i++)
        if (o->sections[i].name >= o->sections[table].size)
            return elf_refuse(why, ELF_BAD_NAME, NULL);
    o->section_names = (const char *)o->file + o->sections[table].offset;
    return 0;
}

static bool type_fits(const struct role *role, uint32_t type)
{
    switch (type) {
    case ELF_PROGBITS:
        return true;
    case ELF_NOBITS:
        return role->segment == ELF_DATA;
    case ELF_INIT_ARRAY:
        return role->role == ELF_CONSTRUCTORS;
    case ELF_FINI_ARRAY:
        return role->role == ELF_DESTRUCTORS;
    default:
        return role->role == ELF_DROPPED;
    }
}

static bool flags_fit(const struct role *role, uint64_t flags)
{
    if (role->role == ELF_DROPPED)
        return true;
    if (!!(flags & ELF_EXEC) != (role->segment == ELF_TEXT))
        return false;
    return role->may_write || !(flags & ELF_WRITE);
}

/* check_loaded - check a section that is to be loaded. */
static int check_loaded(const struct elf_object *o, const struct elf_section *s,
                        struct elf_reject *why)
{
    const struct role *role = role_of(o, s);

    if ((s->flags & (ELF_WRITE | ELF_EXEC)) == (ELF_WRITE | ELF_EXEC))
        return refuse_section(o, s, ELF_WRITE_AND_EXEC, why);
    if (!role || s->flags & (ELF_TLS | ELF_COMPRESSED))
        return refuse_section(o, s, ELF_UNKNOWN_SECTION, why);
    if (!flags_fit(role, s->flags))
        return refuse_section(o, s, ELF_BAD_FLAGS, why);
    if (!type_fits(role, s->type))
        return refuse_section(o, s, ELF_BAD_TYPE, why);
    if (s->size > ELF_LOADED_MAX)
        return refuse_section(o, s, ELF_TOO_LARGE, why);
    if (s->size % role->record_len || (role->record_len > 1 && s->align > 8))
        return refuse_section(o, s, ELF_BAD_RECORDS, why);
    return 0;
}

static int check_all_loaded(const struct elf_object *o, struct elf_reject *why)
{
    uint64_t total = 0;
    int err = 0;

    for (size_t i = 1; i < o->section_count && !err; i++) {
        const struct elf_section *s = &o->sections[i];

        if (!(s->flags & ELF_ALLOC))
            continue;
        err = check_loaded(o, s, why);
        total += s->size + s->align; /* a gap may lie in front of the section */
    }
    if (!err && total > ELF_LOADED_MAX)
        return elf_refuse(why, ELF_TOO_LARGE, NULL);
    return err;
}

/* ---- 3 the symbols ---- */

static int find_symbols(const struct elf_object *o, const struct elf_section **out,
                        struct elf_reject *why)
{
    *out = NULL;
    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];

        if (s->type == ELF_SYMTAB_SHNDX || (s->type == ELF_SYMTAB && *out))
            return refuse_section(o, s, ELF_NO_SYMBOLS, why);
        if (s->type == ELF_SYMTAB)
            *out = s;
    }
    return *out ? 0 : elf_refuse(why, ELF_NO_SYMBOLS, NULL);
}

/* are_records - does the table @s of the file consist of whole records, aligned to 8
 * bytes?
 */
static bool are_records(const struct elf_section *s, size_t record_len)
{
    return s->entsize == record_len && s->size % record_len == 0 && s->offset % 8 == 0;
}

static bool is_defined(const struct elf_symbol *s)
{
    return s->section != ELF_UNDEFINED && s->section < ELF_RESERVED;
}

static bool is_symbol_whole(const struct elf_object *o, size_t i, size_t locals)
{
    const struct elf_symbol *s = &o->symbols[i];
    const struct elf_section *in;

    if (elf_bind(s) > ELF_WEAK || elf_type(s) > ELF_FILE ||
        (elf_bind(s) == ELF_LOCAL) != (i < locals))
        return false;
    if (s->section == ELF_UNDEFINED)
        return !i || o->names[s->name];
    if (s->section == ELF_ABSOLUTE)
        return true;
    if (s->section >= o->section_count)
        return false;
    in = &o->sections[s->section];
    return s->value <= in->size && s->size <= in->size - s->value;
}

static int check_symbols(struct elf_object *o, const struct elf_section *table,
                         struct elf_reject *why)
{
    const struct elf_section *names;

    if (!are_records(table, sizeof(struct elf_symbol)) || !is_strings(o, table->link))
        return refuse_section(o, table, ELF_BAD_SYMBOLS, why);
    names = &o->sections[table->link];
    o->symbols = elf_content(o, table);
    o->symbol_count = table->size / sizeof(struct elf_symbol);
    o->names = elf_content(o, names);
    if (!o->symbol_count || o->symbols[0].info || o->symbols[0].section)
        return refuse_section(o, table, ELF_BAD_SYMBOLS, why);
    for (size_t i = 0; i < o->symbol_count; i++) {
        const struct elf_symbol *s = &o->symbols[i];
        const char *name = s->name < names->size ? elf_symbol_name(o, s) : NULL;

        if (s->section == ELF_COMMON)
            return elf_refuse(why, ELF_COMMON_SYMBOL, name);
        if (!name || !is_symbol_whole(o, i, table->info))
            return elf_refuse(why, ELF_BAD_SYMBOL, name);
    }
    return 0;
}

/* ---- 4 the relocations ---- */

static bool is_loaded_section(const struct elf_object *o, const struct elf_section *s)
{
    return elf_segment_of(o, s) != ELF_NOWHERE;
}

/* relocation_width - return how many bytes a relocation of @type changes; 0: the type is not
 * known.
 */
static size_t relocation_width(uint32_t type)
{
    switch (type) {
    case ELF_R_64:
        return 8;
    case ELF_R_PC32:
    case ELF_R_PLT32:
    case ELF_R_32:
    case ELF_R_32S:
        return 4;
    default:
        return 0;
    }
}

static enum elf_reason check_relocation(const struct elf_object *o,
                                        const struct elf_section *target,
                                        const struct elf_rela *r)
{
    static const uint8_t zeroes[8];
    size_t width = relocation_width(r->type);
    const struct elf_symbol *symbol;

    if (!width)
        return ELF_UNKNOWN_RELOCATION;
    if (!is_within_file(r->offset, width, target->size) || r->symbol >= o->symbol_count)
        return ELF_BAD_RELOCATION;
    symbol = &o->symbols[r->symbol];
    if (is_defined(symbol) && !is_loaded_section(o, &o->sections[symbol->section]))
        return ELF_BAD_RELOCATION;
    if (memcmp(o->file + target->offset + r->offset, zeroes, width) != 0)
        return ELF_NOT_ZERO;
    return ELF_OK;
}

static int check_table(const struct elf_object *o, const struct elf_section *s,
                       const struct elf_section *target, struct elf_reject *why)
{
    const struct elf_rela *r = elf_content(o, s);
    size_t count = s->size / sizeof(*r);

    if (count && target->type == ELF_NOBITS)
        return refuse_section(o, s, ELF_BAD_RELOCATIONS, why);
    for (size_t i = 0; i < count; i++) {
        enum elf_reason reason = check_relocation(o, target, &r[i]);

        if (reason)
            return elf_refuse(why, reason, elf_section_name(o, target));
    }
    return 0;
}

static int check_relocations(const struct elf_object *o,
                             const struct elf_section *symbols, struct elf_reject *why)
{
    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];
        int err;

        if (s->type != ELF_RELA && s->type != ELF_REL)
            continue;
        if (!s->info || s->info >= o->section_count)
            return refuse_section(o, s, ELF_BAD_RELOCATIONS, why);
        if (!is_loaded_section(o, &o->sections[s->info]))
            continue;
        if (s->type == ELF_REL || s->link != section_number(o, symbols) ||
            !are_records(s, sizeof(struct elf_rela)))
            return refuse_section(o, s, ELF_BAD_RELOCATIONS, why);
        err = check_table(o, s, &o->sections[s->info], why);
        if (err)
            return err;
    }
    return 0;
}

/* ---- parameters of functions ---- */

static bool is_params(const struct elf_object *o, const struct elf_section *s)
{
    return s->type == ELF_PROGBITS && s->size && !o->file[s->offset + s->size - 1] &&
           strcmp(elf_section_name(o, s), ".sonde_params") == 0;
}

const char *elf_params(const struct elf_object *o, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 1; i < o->section_count; i++) {
        const struct elf_section *s = &o->sections[i];
        const char *line, *end;

        if (!is_params(o, s))
            continue;
        line = elf_content(o, s);
        for (end = line + s->size; line < end; line += strlen(line) + 1)
            if (strncmp(line, name, len) == 0 && line[len] == ' ')
                return line + len + 1;
    }
    return NULL;
}

/* ---- all of it ---- */

int elf_check(struct elf_object *out, const void *file, size_t len,
              struct elf_reject *why)
{
    const struct elf_header *header = file;
    const struct elf_section *symbols;
    int err = check_header(header, len, why);

    if (err)
        return err;
    *out = (struct elf_object){
        .file = file,
        .sections = (const void *)((const uint8_t *)file + header->shoff),
        .section_count = header->shnum,
    };
    err = check_extents(out, len, why);
    if (!err)
        err = check_section_names(out, header->shstrndx, why);
    if (!err)
        err = check_all_loaded(out, why);
    if (!err)
        err = find_symbols(out, &symbols, why);
    if (!err)
        err = check_symbols(out, symbols, why);
    return err ? err : check_relocations(out, symbols, why);
}
