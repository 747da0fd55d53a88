/* test_elf_link.c - tests of elf_link: sections get addresses, symbols get values, and
 * relocations change bytes.
 */
#include "kernel/module/elf_link.h"
#include "tests/unit/small_object.h"
#include "tests/unit/unit.h"

#define BASE UINT64_C(0xffffffff81000000)

static struct small_object object;
static struct elf_object checked;
static struct elf_reject why;
static struct elf_place places[SMALL_SECTIONS];
static struct elf_layout layout;
static uint64_t values[SMALL_SYMBOLS], wanted;
static uint8_t images[ELF_SEGMENTS][256];
static const uint64_t base[ELF_SEGMENTS] = { BASE - ELF_TEXT_GAP, BASE + 0x1000,
                                             BASE + 0x2000 };

static int find(const char *name, uint64_t *value, void *arg UNUSED)
{
    if (strcmp(name, "wanted") != 0 || !wanted)
        return -ENOENT;
    *value = wanted;
    return 0;
}

static int link_it(void)
{
    uint8_t *const image[ELF_SEGMENTS] = { images[0], images[1], images[2] };
    int err;

    memset(images, 0, sizeof(images));
    CHECK_EQ(elf_check(&checked, &object, sizeof(object), &why), 0);
    elf_lay_out(&checked, places, &layout);
    err = elf_resolve(&checked, &layout, base, find, NULL, values, &why);
    return err ? err : elf_write(&checked, &layout, base, values, image, &why);
}

static uint64_t word(enum elf_segment segment, size_t offset, size_t len)
{
    uint64_t value = 0;

    memcpy(&value, &images[segment][offset], len);
    return value;
}

UNIT_TEST(all_of_it_is_placed_and_filled_in)
{
    small_object_make(&object);
    wanted = BASE + 0x10000;
    CHECK_EQ(link_it(), 0);
    CHECK_EQ(layout.size[ELF_TEXT], ELF_TEXT_GAP + 16);
    CHECK_EQ(layout.size[ELF_RODATA], 8);
    CHECK_EQ(layout.size[ELF_DATA], 16 + 32);
    CHECK(values[SMALL_FUNCTION] == BASE && values[SMALL_WANTED] == wanted);
    CHECK(values[SMALL_VARIABLE] == base[ELF_DATA] + 16 + 8);
    CHECK_BYTES(images[ELF_TEXT] + ELF_TEXT_GAP, "90 90 90 e8 f8 ff 00 00 90");
    CHECK(word(ELF_DATA, 8, 8) == BASE);
    CHECK(word(ELF_RODATA, 0, 8) == BASE);
    CHECK_EQ(layout.tables[ELF_CONSTRUCTORS].len, 8);
    CHECK_EQ(layout.tables[ELF_DESTRUCTORS].len, 0);
}

UNIT_TEST(each_type_holds_what_it_may)
{
    static const struct {
        uint32_t type;
        uint64_t value;
        bool good;
    } rows[] = {
        { ELF_R_PC32, BASE + 0x7fffffff, true },
        { ELF_R_PC32, BASE + 0x80000008, false },
        { ELF_R_PLT32, BASE - 0x7ffffff8, true },
        { ELF_R_PLT32, BASE - 0x80000001, false },
        { ELF_R_32S, UINT64_C(0xffffffff80000000), true },
        { ELF_R_32S, UINT64_C(0xffffffff7fffffff), false },
        { ELF_R_32S, UINT64_C(0x7fffffff), true },
        { ELF_R_32S, UINT64_C(0x80000000), false },
        { ELF_R_32, UINT32_MAX, true },
        { ELF_R_32, UINT64_C(0x100000000), false },
        { ELF_R_32, BASE, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        small_object_make(&object);
        object.text_relas[0].type = rows[i].type;
        object.text_relas[0].addend = 0;
        wanted = rows[i].value;
        CHECK_EQ(link_it(), rows[i].good ? 0 : -ENOEXEC);
        if (!rows[i].good)
            CHECK_EQ(why.reason, ELF_OVERFLOW);
        else if (rows[i].type == ELF_R_32 || rows[i].type == ELF_R_32S)
            CHECK(word(ELF_TEXT, ELF_TEXT_GAP + 4, 4) == (uint32_t)wanted);
        else
            CHECK(word(ELF_TEXT, ELF_TEXT_GAP + 4, 4) == (uint32_t)(wanted - (BASE + 4)));
    }
}

UNIT_TEST(what_nothing_defines_is_refused_by_name)
{
    small_object_make(&object);
    wanted = 0;
    CHECK_EQ(link_it(), -ENOEXEC);
    CHECK_EQ(why.reason, ELF_NOT_FOUND);
    CHECK_STR(why.name, "wanted");
    object.symbols[SMALL_WANTED].info = ELF_WEAK << 4;
    object.text_relas[0].type = ELF_R_32;
    object.text_relas[0].addend = 0;
    CHECK_EQ(link_it(), 0);
    CHECK(values[SMALL_WANTED] == 0);
}

UNIT_TEST(two_relocations_of_the_same_bytes_are_refused)
{
    small_object_make(&object);
    wanted = BASE;
    object.sections[SMALL_RELA_DATA].info = SMALL_TEXT;
    object.data_relas[0] = (struct elf_rela){ 4, ELF_R_PC32, SMALL_FUNCTION, 77 };
    CHECK_EQ(link_it(), -ENOEXEC);
    CHECK_EQ(why.reason, ELF_NOT_ZERO);
}

/* constructor_set - make section @i a table of constructors with the name @name. */
static void constructor_set(size_t i, const char *name, size_t name_at)
{
    strcpy(&object.section_names[name_at], name);
    object.sections[i].name = (uint32_t)name_at;
    object.sections[i].type = ELF_INIT_ARRAY;
    object.sections[i].flags = ELF_ALLOC | ELF_WRITE;
    object.sections[i].size = 8;
}

UNIT_TEST(constructors_come_by_priority)
{
    small_object_make(&object);
    wanted = BASE;
    constructor_set(SMALL_BSS, ".init_array.2", 80);
    constructor_set(SMALL_DEBUG, ".init_array.00101", 100);
    object.sections[SMALL_BSS].offset = object.sections[SMALL_INIT].offset;
    object.symbols[SMALL_VARIABLE].section = SMALL_DATA;
    object.symbols[SMALL_VARIABLE].size = 8;
    CHECK_EQ(link_it(), 0);
    CHECK_EQ(layout.tables[ELF_CONSTRUCTORS].len, 24);
    CHECK_EQ(places[SMALL_BSS].offset, 0);
    CHECK_EQ(places[SMALL_DEBUG].offset, 8);
    CHECK_EQ(places[SMALL_INIT].offset, 16);
}

UNIT_TESTS()
