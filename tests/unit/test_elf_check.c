/* test_elf_check.c - tests of elf_check(): each field of an object gets wrong values, and
 * the object is refused.
 */
#include "kernel/module/elf_check.h"
#include "tests/unit/small_object.h"
#include "tests/unit/unit.h"

static struct small_object object;
static struct elf_object out;
static struct elf_reject why;

static int check(void)
{
    /* In a block of exactly its size the sanitizer catches a read behind it. */
    struct small_object *copy = malloc(sizeof(*copy));
    int err;

    memcpy(copy, &object, sizeof(*copy));
    why = (struct elf_reject){ 0 };
    err = elf_check(&out, copy, sizeof(*copy), &why);
    free(copy);
    return err;
}

/* A field, a wrong value for it, and the reason for which the object is refused. */
struct damage {
    size_t at, len;
    uint64_t value;
    enum elf_reason reason;
    const char *what;
};

#define DAMAGE(field, value, reason)                                                     \
    {                                                                                    \
        offsetof(struct small_object, field), sizeof(object.field), (uint64_t)(value),   \
            reason, #field " = " #value                                                  \
    }
#define HUGE UINT64_MAX

static const struct damage in_the_header[] = {
    DAMAGE(header.ident[0], 0, ELF_BAD_HEADER),
    DAMAGE(header.ident[4], 1, ELF_BAD_HEADER),
    DAMAGE(header.ident[5], 2, ELF_BAD_HEADER),
    DAMAGE(header.ident[6], 0, ELF_BAD_HEADER),
    DAMAGE(header.type, 2, ELF_BAD_KIND),
    DAMAGE(header.machine, 3, ELF_BAD_KIND),
    DAMAGE(header.version, 0, ELF_BAD_KIND),
    DAMAGE(header.ehsize, 52, ELF_BAD_KIND),
    DAMAGE(header.shentsize, 40, ELF_BAD_SECTIONS),
    DAMAGE(header.shoff, HUGE - 7, ELF_BAD_SECTIONS),
    DAMAGE(header.shoff, sizeof(object), ELF_BAD_SECTIONS),
    DAMAGE(header.shoff, 65, ELF_BAD_SECTIONS),
    DAMAGE(header.shnum, 0, ELF_BAD_SECTIONS), /* means 65,280 sections or more */
    DAMAGE(header.shnum, 4097, ELF_BAD_SECTIONS),
    DAMAGE(header.shnum, 40, ELF_BAD_SECTIONS),
    DAMAGE(header.shstrndx, 0, ELF_BAD_SECTION_NAMES),
    DAMAGE(header.shstrndx, SMALL_SECTIONS, ELF_BAD_SECTION_NAMES),
    DAMAGE(header.shstrndx, 0xffff, ELF_BAD_SECTION_NAMES),
    DAMAGE(header.shstrndx, SMALL_TEXT, ELF_BAD_SECTION_NAMES),
};

static const struct damage in_sections[] = {
    DAMAGE(sections[0].type, ELF_PROGBITS, ELF_BAD_SECTIONS),
    DAMAGE(sections[SMALL_TEXT].offset, HUGE, ELF_BAD_EXTENT),
    DAMAGE(sections[SMALL_TEXT].offset, sizeof(object) - 15, ELF_BAD_EXTENT),
    DAMAGE(sections[SMALL_TEXT].size, HUGE, ELF_BAD_EXTENT),
    DAMAGE(sections[SMALL_TEXT].size, sizeof(object), ELF_BAD_EXTENT),
    DAMAGE(sections[SMALL_DEBUG].size, HUGE, ELF_BAD_EXTENT),
    DAMAGE(sections[SMALL_TEXT].align, 3, ELF_BAD_ALIGN),
    DAMAGE(sections[SMALL_TEXT].align, 8192, ELF_BAD_ALIGN),
    DAMAGE(sections[SMALL_TEXT].align, UINT64_C(1) << 63, ELF_BAD_ALIGN),
    DAMAGE(sections[SMALL_TEXT].name, sizeof(object.section_names), ELF_BAD_NAME),
    DAMAGE(sections[SMALL_TEXT].name, UINT32_MAX, ELF_BAD_NAME),
    DAMAGE(sections[SMALL_SHSTRTAB].size, 0, ELF_BAD_SECTION_NAMES),
    DAMAGE(sections[SMALL_SHSTRTAB].size, 3, ELF_BAD_SECTION_NAMES), /* ends in "t" */
    DAMAGE(sections[SMALL_TEXT].flags, ELF_ALLOC | ELF_EXEC | ELF_WRITE,
           ELF_WRITE_AND_EXEC),
    DAMAGE(sections[SMALL_TEXT].flags, ELF_ALLOC, ELF_BAD_FLAGS),
    DAMAGE(sections[SMALL_DATA].flags, ELF_ALLOC | ELF_EXEC, ELF_BAD_FLAGS),
    DAMAGE(sections[SMALL_BSS].flags, ELF_ALLOC | ELF_WRITE | ELF_TLS,
           ELF_UNKNOWN_SECTION),
    DAMAGE(sections[SMALL_DATA].flags, ELF_ALLOC | ELF_COMPRESSED, ELF_UNKNOWN_SECTION),
    DAMAGE(sections[SMALL_DEBUG].flags, ELF_ALLOC, ELF_UNKNOWN_SECTION),
    DAMAGE(sections[SMALL_SYMTAB].flags, ELF_ALLOC, ELF_UNKNOWN_SECTION),
    DAMAGE(sections[SMALL_TEXT].type, ELF_NOBITS, ELF_BAD_TYPE),
    DAMAGE(sections[SMALL_TEXT].type, ELF_STRTAB, ELF_BAD_TYPE),
    DAMAGE(sections[SMALL_DATA].type, ELF_INIT_ARRAY, ELF_BAD_TYPE),
    DAMAGE(sections[SMALL_INIT].type, ELF_FINI_ARRAY, ELF_BAD_TYPE),
    DAMAGE(sections[SMALL_INIT].size, 7, ELF_BAD_RECORDS),
    DAMAGE(sections[SMALL_INIT].align, 16, ELF_BAD_RECORDS),
    DAMAGE(sections[SMALL_BSS].size, HUGE, ELF_TOO_LARGE),
    DAMAGE(sections[SMALL_BSS].size, ELF_LOADED_MAX + 1, ELF_TOO_LARGE),
    DAMAGE(sections[SMALL_BSS].size, ELF_LOADED_MAX, ELF_TOO_LARGE),
};

static const struct damage in_symbols[] = {
    DAMAGE(sections[SMALL_SYMTAB].type, ELF_PROGBITS, ELF_NO_SYMBOLS),
    DAMAGE(sections[SMALL_DEBUG].type, ELF_SYMTAB, ELF_NO_SYMBOLS),
    DAMAGE(sections[SMALL_DEBUG].type, ELF_SYMTAB_SHNDX, ELF_NO_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].entsize, 0, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].entsize, 16, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].size, 0, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].size, 25, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].offset, 1, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].link, 0, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].link, SMALL_TEXT, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].link, UINT32_MAX, ELF_BAD_SYMBOLS),
    DAMAGE(sections[SMALL_SYMTAB].info, 0, ELF_BAD_SYMBOL),
    DAMAGE(sections[SMALL_SYMTAB].info, UINT32_MAX, ELF_BAD_SYMBOL),
    DAMAGE(symbols[0].section, SMALL_TEXT, ELF_BAD_SYMBOLS),
    DAMAGE(symbols[0].info, 1, ELF_BAD_SYMBOLS),
    DAMAGE(names[sizeof(object.names) - 1], 'x', ELF_BAD_SYMBOLS),
    DAMAGE(symbols[SMALL_FUNCTION].name, sizeof(object.names), ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].name, UINT32_MAX, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].info, ELF_GLOBAL << 4 | ELF_FUNC, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_VARIABLE].info, 3 << 4 | ELF_OBJECT, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_VARIABLE].info, ELF_GLOBAL << 4 | 6, ELF_BAD_SYMBOL), /* TLS */
    DAMAGE(symbols[SMALL_FUNCTION].section, SMALL_SECTIONS, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].section, 0xff00, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_VARIABLE].section, ELF_COMMON, ELF_COMMON_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].value, 1, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].value, HUGE, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].size, 17, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_FUNCTION].size, HUGE, ELF_BAD_SYMBOL),
    DAMAGE(symbols[SMALL_WANTED].name, 0, ELF_BAD_SYMBOL),
};

static const struct damage in_relocations[] = {
    DAMAGE(sections[SMALL_RELA_TEXT].type, ELF_REL, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].info, 0, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].info, SMALL_SECTIONS, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].info, UINT32_MAX, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].info, SMALL_BSS, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].link, SMALL_STRTAB, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].entsize, 16, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].size, 23, ELF_BAD_RELOCATIONS),
    DAMAGE(sections[SMALL_RELA_TEXT].offset, 4, ELF_BAD_RELOCATIONS),
    DAMAGE(text_relas[0].offset, 13, ELF_BAD_RELOCATION),
    DAMAGE(text_relas[0].offset, HUGE, ELF_BAD_RELOCATION),
    DAMAGE(data_relas[0].offset, 9, ELF_BAD_RELOCATION),
    DAMAGE(text_relas[0].symbol, SMALL_SYMBOLS, ELF_BAD_RELOCATION),
    DAMAGE(text_relas[0].symbol, UINT32_MAX, ELF_BAD_RELOCATION),
    DAMAGE(symbols[SMALL_SECTION].section, SMALL_DEBUG, ELF_BAD_RELOCATION),
    DAMAGE(text_relas[0].type, 0, ELF_UNKNOWN_RELOCATION),
    DAMAGE(text_relas[0].type, 24, ELF_UNKNOWN_RELOCATION), /* PC64 */
    DAMAGE(text[7], 1, ELF_NOT_ZERO),
    DAMAGE(text_relas[0].offset, 3, ELF_NOT_ZERO),
};

static void try_each(const struct damage *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        small_object_make(&object);
        memcpy((uint8_t *)&object + rows[i].at, &rows[i].value, rows[i].len);
        CHECK_EQ(check(), -ENOEXEC);
        CHECK_EQ(why.reason, rows[i].reason);
        if (why.reason != rows[i].reason)
            unit_note("%s: %s", rows[i].what, elf_reason_text(why.reason));
    }
}

#define TRY_EACH(rows) try_each(rows, sizeof(rows) / sizeof((rows)[0]))

UNIT_TEST(a_good_one_is_accepted)
{
    small_object_make(&object);
    CHECK_EQ(check(), 0);
    CHECK_EQ(out.section_count, SMALL_SECTIONS);
    CHECK_EQ(out.symbol_count, SMALL_SYMBOLS);
}

UNIT_TEST(a_bad_header_is_refused)
{
    TRY_EACH(in_the_header);
}

UNIT_TEST(bad_sections_are_refused)
{
    TRY_EACH(in_sections);
}

UNIT_TEST(bad_symbols_are_refused)
{
    TRY_EACH(in_symbols);
}

UNIT_TEST(bad_relocations_are_refused)
{
    TRY_EACH(in_relocations);
}

UNIT_TEST(a_file_that_is_cut_off_is_refused_at_each_length)
{
    struct small_object whole;

    small_object_make(&whole);
    for (size_t len = 0; len < sizeof(whole); len++) {
        void *cut = malloc(len ? len : 1);

        memcpy(cut, &whole, len);
        CHECK_EQ(elf_check(&out, cut, len, &why), -ENOEXEC);
        free(cut);
    }
}

/* name_set - give section @i the name @name, which the object does not contain yet. */
static void name_set(size_t i, const char *name)
{
    size_t at = sizeof(object.section_names) - 1 - strlen(name);

    strcpy(&object.section_names[at], name);
    object.sections[i].name = (uint32_t)at;
}

UNIT_TEST(names_say_what_is_loaded)
{
    static const struct {
        const char *name;
        uint64_t flags;
        bool good;
    } rows[] = {
        { ".text.hot", ELF_ALLOC | ELF_EXEC, true },
        { ".kprobes.text", ELF_ALLOC | ELF_EXEC, true },
        { ".texts", ELF_ALLOC | ELF_EXEC, false },
        { ".rodata.str1.1", ELF_ALLOC, true },
        { ".rodata", ELF_ALLOC | ELF_WRITE, false },
        { ".init_array.00101", ELF_ALLOC | ELF_WRITE, true },
        { ".nokprobe", ELF_ALLOC, true },
        { ".nokprobes", ELF_ALLOC, false },
        { ".eh_frame", ELF_ALLOC, true },
        { ".tdata", ELF_ALLOC | ELF_WRITE, false },
        { "", ELF_ALLOC, false },
        { ".whatever", 0, true },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        small_object_make(&object);
        name_set(SMALL_DEBUG, rows[i].name);
        object.sections[SMALL_DEBUG].flags = rows[i].flags;
        unit_note("%s", rows[i].name);
        CHECK_EQ(check(), rows[i].good ? 0 : -ENOEXEC);
    }
}

static const char *params_in(const char *content, uint32_t type, const char *function)
{
    small_object_make(&object);
    name_set(SMALL_DEBUG, ".sonde_params");
    object.sections[SMALL_DEBUG].type = type;
    memcpy(object.debug, content, sizeof(object.debug));
    CHECK_EQ(elf_check(&out, &object, sizeof(object), &why), 0);
    return elf_params(&out, function);
}

UNIT_TEST(a_function_has_the_line_of_its_name)
{
    CHECK_STR(params_in("a s8\0b \0", ELF_PROGBITS, "a"), "s8");
    CHECK_STR(params_in("a s8\0b \0", ELF_PROGBITS, "b"), "");
    CHECK(!params_in("a s8\0b \0", ELF_PROGBITS, "c"));
    CHECK(!params_in("a s8\0b \0", ELF_PROGBITS, "a s8"));
    CHECK(!params_in("a s8\0b x", ELF_PROGBITS, "a")); /* the last line has no end */
    CHECK(!params_in("a s8\0b \0", ELF_NOTE, "a"));
}

UNIT_TESTS()
