/* test_ksyms.c - tests of kernel/debug/ksyms.c with a small table made by hand. */
#include "kernel/debug/ksyms.h"
#include "kernel/debug/ksyms_table.h"
#include "tests/unit/unit.h"

#define BASE UINT64_C(0xffffffff80200000)

/* Greek letters in UTF-8: bytes that are negative as plain char. */
#define ALPHA "\xce\xb1"
#define BETA "\xce\xb2"

/* The symbols by address:
 *
 *   0x000 _text, a label at the start of alpha    0x300 stub, a label: up to 0x340
 *   0x000..0x100 alpha, with the label inner      0x340..0x350 helper (1)
 *         0x40..0x60 and the symbol ALPHA in it   0x350..0x360 helper (2)
 *   0x100..0x110 padding                          0x400..0x408 counter
 *   0x110..0x200 BETA.isra.0                      0x408 _edata, at the end of all
 */
const struct ksyms_entry ksyms_table[] = {
    { BASE + 0x000, 0x100, 0, KSYMS_NONE, 'T', { 0 } }, /* 0 alpha */
    { BASE + 0x000, 0, 6, 0, 'T', { 0 } },              /* 1 _text */
    { BASE + 0x020, 0, 12, 0, 't', { 0 } },             /* 2 inner */
    { BASE + 0x040, 0x20, 18, 0, 't', { 0 } },          /* 3 ALPHA */
    { BASE + 0x110, 0xf0, 21, KSYMS_NONE, 't', { 0 } }, /* 4 BETA.isra.0 */
    { BASE + 0x300, 0x40, 31, KSYMS_NONE, 'T', { 0 } }, /* 5 stub */
    { BASE + 0x340, 0x10, 36, KSYMS_NONE, 't', { 0 } }, /* 6 helper */
    { BASE + 0x350, 0x10, 36, KSYMS_NONE, 't', { 0 } }, /* 7 helper */
    { BASE + 0x400, 0x08, 43, KSYMS_NONE, 'D', { 0 } }, /* 8 counter */
    { BASE + 0x408, 0, 51, KSYMS_NONE, 'D', { 0 } },    /* 9 _edata */
};
const uint32_t ksyms_by_name[] = { 9, 1, 0, 8, 6, 7, 2, 5, 3, 4 };
const uint32_t ksyms_total = 10;
const char ksyms_names[] =
    "alpha\0_text\0inner\0\xce\xb1\0\xce\xb2.isra.0\0stub\0helper\0counter\0"
    "_edata";

static void check_at(uint64_t offset, const char *name, uint64_t start)
{
    struct ksym sym;

    CHECK_EQ(ksyms_at(BASE + offset, &sym), 0);
    CHECK_STR(sym.name, name);
    CHECK_EQ(sym.start, BASE + start);
    CHECK_EQ(sym.offset, offset - start);
    CHECK(sym.offset < sym.size);
}

static void check_no_symbol_at(uint64_t addr)
{
    struct ksym sym = { .name = "untouched" };

    CHECK_EQ(ksyms_at(addr, &sym), -ENOENT);
    CHECK_STR(sym.name, "untouched");
}

UNIT_TEST(a_label_inside_a_function_does_not_hide_it)
{
    check_at(0x020, "alpha", 0);
    check_at(0x02f, "alpha", 0);
    check_at(0x0ff, "alpha", 0);
}

UNIT_TEST(padding_belongs_to_no_symbol)
{
    check_no_symbol_at(BASE + 0x100);
    check_no_symbol_at(BASE + 0x10f);
    check_no_symbol_at(BASE + 0x200);
    check_no_symbol_at(BASE + 0x2ff);
    check_no_symbol_at(BASE + 0x3ff);
}

UNIT_TEST(a_label_between_functions_reaches_to_the_next_symbol)
{
    check_at(0x300, "stub", 0x300);
    check_at(0x33f, "stub", 0x300);
}

UNIT_TEST(outside_the_image_is_no_symbol)
{
    check_no_symbol_at(0);
    check_no_symbol_at(BASE - 1);
    check_no_symbol_at(BASE + 0x408);
    check_no_symbol_at(UINTPTR_MAX);
}

UNIT_TEST(every_unique_name_is_found)
{
    static const struct {
        const char *name;
        uint64_t start;
        size_t size;
        char type;
    } rows[] = {
        { "alpha", 0x000, 0x100, 'T' },       { "_text", 0x000, 0, 'T' },
        { "inner", 0x020, 0, 't' },           { ALPHA, 0x040, 0x20, 't' },
        { BETA ".isra.0", 0x110, 0xf0, 't' }, { "stub", 0x300, 0x40, 'T' },
        { "counter", 0x400, 8, 'D' },         { "_edata", 0x408, 0, 'D' },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ksym sym;

        CHECK_EQ(ksyms_find(rows[i].name, &sym), 0);
        CHECK_STR(sym.name, rows[i].name);
        CHECK_EQ(sym.start, BASE + rows[i].start);
        CHECK_EQ(sym.size, rows[i].size);
        CHECK_EQ(sym.type, rows[i].type);
        CHECK_EQ(sym.offset, 0);
    }
}

UNIT_TEST(other_names_are_not_found)
{
    static const char *const names[] = { "",     "a",     "alph", "alphabet",
                                         "zeta", "Alpha", "beta", "\xff" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct ksym sym = { .name = "untouched" };

        CHECK_EQ(ksyms_find(names[i], &sym), -ENOENT);
        CHECK_STR(sym.name, "untouched");
    }
}

UNIT_TEST(an_ambiguous_name_is_refused_and_its_candidates_are_listed)
{
    struct ksym sym = { .name = "untouched" };
    size_t iter = 0;

    CHECK_EQ(ksyms_find("helper", &sym), -EADDRNOTAVAIL);
    CHECK_STR(sym.name, "untouched");
    CHECK(ksyms_next("helper", &iter, &sym));
    CHECK_EQ(sym.start, BASE + 0x340);
    CHECK(ksyms_next("helper", &iter, &sym));
    CHECK_EQ(sym.start, BASE + 0x350);
    CHECK(!ksyms_next("helper", &iter, &sym));
    CHECK(!ksyms_next("helper", &iter, &sym));
}

UNIT_TEST(all_symbols_are_listed_by_address)
{
    struct ksym sym, last = { 0 };

    CHECK_EQ(ksyms_count(), 10);
    for (size_t i = 0; i < ksyms_count(); i++) {
        CHECK(ksyms_get(i, &sym));
        CHECK(sym.start >= last.start);
        last = sym;
    }
    CHECK(!ksyms_get(ksyms_count(), &sym));
    CHECK(!ksyms_get(SIZE_MAX, &sym));
}

static bool is_listed(const char *name)
{
    struct ksym sym;

    for (size_t i = 0; ksyms_get(i, &sym); i++)
        if (!strcmp(sym.name, name))
            return true;
    return false;
}

/* All symbols in the range are withdrawn, up to helper at 0x350. Only stub stays, because
 * it begins at the start of the range.
 */
UNIT_TEST(what_is_withdrawn_is_unknown)
{
    struct ksym sym;
    size_t iter = 0, all = ksyms_count(), left = 0;

    ksyms_withdraw(BASE + 0x300, BASE + 0x351);
    CHECK_EQ(ksyms_at(BASE + 0x344, &sym), -ENOENT);
    CHECK_EQ(ksyms_at(BASE + 0x350, &sym), -ENOENT);
    CHECK_EQ(ksyms_find("helper", &sym), -ENOENT);
    CHECK(!ksyms_next("helper", &iter, &sym));
    CHECK(!is_listed("helper"));
    CHECK_EQ(ksyms_find("stub", &sym), 0); /* it may be the end of other symbols */
    CHECK(is_listed("stub"));
    CHECK_EQ(ksyms_at(BASE + 0x10, &sym), 0);
    while (ksyms_get(left, &sym))
        left++;
    CHECK_EQ(left, ksyms_count());
    CHECK_EQ(left, all - 2);
    ksyms_withdraw(0, 1); /* from now on no symbol is withdrawn */
    CHECK_EQ(ksyms_count(), all);
    CHECK_EQ(ksyms_find("helper", &sym), -EADDRNOTAVAIL);
}

static void check_base(const char *name, const char *base)
{
    char buf[32];

    CHECK_EQ(ksyms_base_name(name, buf, sizeof(buf)), strlen(base));
    CHECK_STR(buf, base);
}

UNIT_TEST(the_base_name_has_no_compiler_suffix)
{
    check_base("plain", "plain");
    check_base("f.isra.0", "f");
    check_base("f.constprop.12", "f");
    check_base("f.part.0", "f");
    check_base("f.cold", "f");
    check_base("f.part.0.cold", "f");
    check_base("f.constprop.0.isra.0.cold", "f");
    check_base("f.partner", "f.partner");
    check_base("f.colder.cold", "f.colder");
    check_base("counter.0", "counter.0");
    check_base("", "");
}

UNIT_TEST(a_base_name_too_long_is_cut)
{
    char buf[4] = "###";

    CHECK_EQ(ksyms_base_name("probe.cold", buf, 0), 5);
    CHECK_STR(buf, "###");
    CHECK_EQ(ksyms_base_name("probe.cold", buf, 1), 5);
    CHECK_BYTES((uint8_t *)buf, "00 23 23 00");
    CHECK_EQ(ksyms_base_name("probe.cold", buf, 3), 5);
    CHECK_BYTES((uint8_t *)buf, "70 72 00 00");
    memset(buf, '#', sizeof(buf));
    CHECK_EQ(ksyms_base_name("pro.cold", buf, 3), 3);
    CHECK_BYTES((uint8_t *)buf, "70 72 00 23");
    CHECK_EQ(ksyms_base_name("pro.cold", buf, 4), 3);
    CHECK_STR(buf, "pro");
}

UNIT_TESTS()
