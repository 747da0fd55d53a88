/* test_boot_info.c - tests that read the information of boot loaders, correct and
 * malicious, and boot arguments.
 */
#include "boot/boot_map.h"
#include "boot/multiboot2.h"
#include "boot/pvh.h"
#include "kernel/base/bits.h"
#include "kernel/base/boot_info.h"
#include "tests/unit/unit.h"

#include <errno.h>

static struct boot_info info;

/* ---- a multiboot2 block, built tag by tag ------------------------------------------ */

static uint8_t block[16384] __attribute__((aligned(8)));
static size_t block_len;

static void block_start(void)
{
    memset(block, 0, sizeof(block));
    block_len = sizeof(struct multiboot2_info);
}

static void block_tag(uint32_t type, const void *data, size_t len)
{
    struct multiboot2_tag tag = { type, (uint32_t)(sizeof(tag) + len) };

    memcpy(block + block_len, &tag, sizeof(tag));
    if (len)
        memcpy(block + block_len + sizeof(tag), data, len);
    block_len = align_up(block_len + tag.len, 8);
}

static void block_text(uint32_t type, const char *text)
{
    block_tag(type, text, strlen(text) + 1);
}

static void block_module(uint32_t start, uint32_t end, const char *name)
{
    uint8_t data[256];

    memcpy(data, &start, 4);
    memcpy(data + 4, &end, 4);
    strcpy((char *)data + 8, name);
    block_tag(MULTIBOOT2_TAG_MODULE, data, 8 + strlen(name) + 1);
}

static void block_mmap(const struct boot_map_entry *entries, size_t count)
{
    uint8_t data[4096];
    uint32_t head[2] = { sizeof(*entries), 0 };

    memcpy(data, head, sizeof(head));
    memcpy(data + sizeof(head), entries, count * sizeof(*entries));
    block_tag(MULTIBOOT2_TAG_MMAP, data, sizeof(head) + count * sizeof(*entries));
}

static int block_finish(void)
{
    uint32_t total;

    block_tag(MULTIBOOT2_TAG_END, NULL, 0);
    total = (uint32_t)block_len;
    memcpy(block, &total, sizeof(total));
    return boot_info_from_multiboot2(&info, block, block_len);
}

static const struct boot_map_entry usual_map[] = {
    { 0, 0x9fc00, BOOT_RAM, 0 },
    { 0x9fc00, 0x400, BOOT_RESERVED, 0 },
    { 0xf0000, 0x10000, BOOT_RESERVED, 0 },
    { 0x100000, 0x7ee0000, BOOT_RAM, 0 },
    { 0x7fe0000, 0x20000, BOOT_ACPI, 0 },
};
#define USUAL_COUNT (sizeof(usual_map) / sizeof(usual_map[0]))

static void block_usual(void)
{
    block_start();
    block_text(MULTIBOOT2_TAG_CMDLINE, "tests=all hz=100");
    block_text(MULTIBOOT2_TAG_LOADER, "GRUB 2.06");
    block_module(0x200000, 0x201234, "hello.ko");
    block_mmap(usual_map, USUAL_COUNT);
    block_tag(MULTIBOOT2_TAG_RSDP_OLD, "RSD PTR ............", 20);
}

static void check_range(unsigned i, uint64_t start, uint64_t end, uint32_t type)
{
    CHECK(i < info.range_count);
    CHECK_EQ(info.ranges[i].start, start);
    CHECK_EQ(info.ranges[i].end, end);
    CHECK_EQ(info.ranges[i].type, type);
}

UNIT_TEST(multiboot2_tags_are_read)
{
    block_usual();
    CHECK_EQ(block_finish(), 0);
    CHECK_STR(info.cmdline, "tests=all hz=100");
    CHECK_STR(info.loader, "GRUB 2.06");
    CHECK(!info.efi);
    CHECK_EQ(info.rsdp, 0);
    CHECK_EQ(info.rsdp_len, 20);
    CHECK(memcmp(info.rsdp_copy, "RSD PTR ", 8) == 0);
    CHECK_EQ(info.module_count, 1);
    CHECK_EQ(info.modules[0].start, 0x200000);
    CHECK_EQ(info.modules[0].end, 0x201234);
    CHECK_STR(info.modules[0].name, "hello.ko");
}

UNIT_TEST(modules_are_not_free_memory)
{
    block_usual();
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.range_count, 7);
    check_range(0, 0, 0x9fc00, BOOT_RAM);
    check_range(1, 0x9fc00, 0xa0000, BOOT_RESERVED);
    check_range(2, 0xf0000, 0x100000, BOOT_RESERVED);
    check_range(3, 0x100000, 0x200000, BOOT_RAM);
    check_range(4, 0x200000, 0x201234, BOOT_MODULE);
    check_range(5, 0x201234, 0x7fe0000, BOOT_RAM);
    check_range(6, 0x7fe0000, 0x8000000, BOOT_ACPI);
}

UNIT_TEST(the_longer_rsdp_wins_in_any_order)
{
    static const char rsdp_new[37] = "RSD PTR new.........................";

    block_usual();
    block_tag(MULTIBOOT2_TAG_RSDP_NEW, rsdp_new, 36);
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.rsdp_len, 36);
    CHECK(memcmp(info.rsdp_copy, rsdp_new, 36) == 0);

    block_start();
    block_tag(MULTIBOOT2_TAG_RSDP_NEW, rsdp_new, 36);
    block_tag(MULTIBOOT2_TAG_RSDP_OLD, "RSD PTR ............", 20);
    block_mmap(usual_map, USUAL_COUNT);
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.rsdp_len, 36);
}

UNIT_TEST(efi_is_noticed)
{
    uint64_t system_table = 0x7f000000;

    block_usual();
    block_tag(MULTIBOOT2_TAG_EFI64, &system_table, 8);
    CHECK_EQ(block_finish(), 0);
    CHECK(info.efi);
}

UNIT_TEST(basic_memory_serves_without_a_map)
{
    uint32_t kib[2] = { 639, 130048 };

    block_start();
    block_tag(MULTIBOOT2_TAG_MEMINFO, kib, sizeof(kib));
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.range_count, 2);
    check_range(0, 0, 639 * 1024, BOOT_RAM);
    check_range(1, 0x100000, 0x8000000, BOOT_RAM);
    CHECK_STR(info.cmdline, "");

    /* If there is a map, it alone counts, in front of this tag or behind it. */
    block_start();
    block_mmap(usual_map, 1);
    block_tag(MULTIBOOT2_TAG_MEMINFO, kib, sizeof(kib));
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.range_count, 1);
    block_start();
    block_tag(MULTIBOOT2_TAG_MEMINFO, kib, sizeof(kib));
    block_mmap(usual_map, 1);
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.range_count, 1);
}

UNIT_TEST(no_memory_map_is_an_error)
{
    block_start();
    block_text(MULTIBOOT2_TAG_CMDLINE, "x");
    CHECK_EQ(block_finish(), -ENOENT);
}

UNIT_TEST(long_texts_are_cut)
{
    char text[6000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    block_start();
    block_text(MULTIBOOT2_TAG_CMDLINE, text);
    block_text(MULTIBOOT2_TAG_LOADER, text);
    block_mmap(usual_map, USUAL_COUNT);
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(strlen(info.cmdline), BOOT_CMDLINE_MAX - 1);
    CHECK_EQ(strlen(info.loader), BOOT_NAME_MAX - 1);
}

UNIT_TEST(text_without_nul_ends_with_its_tag)
{
    block_start();
    block_tag(MULTIBOOT2_TAG_CMDLINE, "abc", 3);
    block_mmap(usual_map, USUAL_COUNT);
    CHECK_EQ(block_finish(), 0);
    CHECK_STR(info.cmdline, "abc");
}

UNIT_TEST(further_modules_are_ignored)
{
    block_start();
    block_mmap(usual_map, USUAL_COUNT);
    for (uint32_t i = 0; i < BOOT_MODULES_MAX + 3; i++)
        block_module(0x300000 + i * 0x1000, 0x300800 + i * 0x1000, "m");
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.module_count, BOOT_MODULES_MAX);
    CHECK_EQ(info.modules_left_out, 3);
}

UNIT_TEST(an_empty_module_keeps_its_name)
{
    block_start();
    block_mmap(usual_map, USUAL_COUNT);
    block_module(0x300000, 0x300000, "empty");
    block_module(0x301000, 0x302000, "full");
    CHECK_EQ(block_finish(), 0);
    CHECK_EQ(info.module_count, 2);
    CHECK_STR(info.modules[0].name, "empty");
    CHECK_EQ(info.modules[1].end, 0x302000);
}

UNIT_TEST(words_in_quotes)
{
    const char *words = " \"probes=a b\" quiet \"x=\\\"y\\\"\" hz=5";
    char text[16];

    CHECK(boot_option(words, "probes", text, sizeof(text)));
    CHECK_STR(text, "a b");
    CHECK(boot_option("\"quiet\"", "quiet", text, sizeof(text)));
    CHECK_STR(text, "");
    CHECK(boot_option(words, "hz", text, sizeof(text)));
    CHECK_STR(text, "5");
    words = boot_option_next(words, text, sizeof(text));
    CHECK_STR(text, "probes");
    words = boot_option_next(words, text, sizeof(text));
    CHECK_STR(text, "quiet");
    words =
        boot_option_next(boot_option_next(words, text, sizeof(text)), text, sizeof(text));
    CHECK_STR(text, "hz");
    CHECK(!boot_option_next(words, text, sizeof(text)));
}

/* parse_copy - parse a copy of the block, in memory of exactly @len bytes: the sanitizer
 * catches a read behind it.
 */
static int parse_copy(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    int err;

    memcpy(copy, bytes, len);
    err = boot_info_from_multiboot2(&info, copy, len);
    free(copy);
    return err;
}

UNIT_TEST(a_block_cut_anywhere_is_refused)
{
    size_t whole;

    block_usual();
    CHECK_EQ(block_finish(), 0);
    whole = block_len;
    for (size_t len = 0; len < whole; len++) {
        uint32_t claim = (uint32_t)len;

        CHECK_EQ(parse_copy(block, len), -EINVAL);
        memcpy(block, &claim, sizeof(claim)); /* then with the short length as its own */
        CHECK_EQ(parse_copy(block, len < 4 ? 0 : len), -EINVAL);
        claim = (uint32_t)whole;
        memcpy(block, &claim, sizeof(claim));
    }
    CHECK_EQ(parse_copy(block, whole), 0);
}

UNIT_TEST(damaged_blocks_do_no_harm)
{
    for (int round = 0; round < 20000; round++) {
        block_usual();
        block_finish();
        for (int i = 0; i < 4; i++) {
            size_t at = unit_random() % block_len;

            block[at] = (uint8_t)(unit_random() % 3 ? unit_random() % 32 : 0xff);
        }
        parse_copy(block, block_len);
        CHECK(info.range_count <= BOOT_RANGES_MAX);
        CHECK(info.module_count <= BOOT_MODULES_MAX);
    }
}

/* ---- PVH: a small physical memory -------------------------------------------------- */

#define MEMORY_LEN 0x8000
static uint8_t memory[MEMORY_LEN] __attribute__((aligned(8)));

static const void *memory_at(uint64_t phys, size_t len)
{
    if (phys >= MEMORY_LEN || len > MEMORY_LEN - phys)
        return NULL;
    return memory + phys;
}

static struct pvh_start_info *pvh_usual(void)
{
    struct pvh_start_info *start = (struct pvh_start_info *)memory;
    struct pvh_module module = { 0x200000, 0x1234, 0x3000, 0 };

    memset(memory, 0, sizeof(memory));
    *start = (struct pvh_start_info){ .magic = PVH_MAGIC,
                                      .version = 1,
                                      .module_count = 1,
                                      .modules = 0x1000,
                                      .cmdline = 0x1ff8,
                                      .rsdp = 0xf52d0,
                                      .map = 0x4000,
                                      .map_count = USUAL_COUNT };
    memcpy(memory + 0x1000, &module, sizeof(module));
    strcpy((char *)memory + 0x1ff8, "tests=all hz=100"); /* across two pages */
    strcpy((char *)memory + 0x3000, "hello.ko");
    memcpy(memory + 0x4000, usual_map, sizeof(usual_map));
    return start;
}

UNIT_TEST(pvh_start_info_is_read)
{
    CHECK_EQ(boot_info_from_pvh(&info, pvh_usual(), memory_at), 0);
    CHECK_STR(info.cmdline, "tests=all hz=100");
    CHECK_STR(info.loader, "PVH");
    CHECK_EQ(info.rsdp, 0xf52d0);
    CHECK_EQ(info.module_count, 1);
    CHECK_EQ(info.modules[0].end, 0x201234);
    CHECK_STR(info.modules[0].name, "hello.ko");
    CHECK_EQ(info.range_count, 7);
}

UNIT_TEST(pvh_needs_no_command_line)
{
    struct pvh_start_info *start = pvh_usual();

    start->cmdline = 0;
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), 0);
    CHECK_STR(info.cmdline, "");
}

UNIT_TEST(pvh_refuses_what_it_cannot_read)
{
    struct pvh_start_info *start = pvh_usual();

    start->magic++;
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), -EINVAL);
    start = pvh_usual();
    start->version = 0; /* this version has no map */
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), -ENOENT);
    start = pvh_usual();
    start->map = MEMORY_LEN - 8;
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), -EINVAL);
    start = pvh_usual();
    start->modules = UINT64_MAX - 3;
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), -EINVAL);
    start = pvh_usual();
    start->cmdline = UINT64_MAX;
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), -EINVAL);
}

UNIT_TEST(pvh_text_may_fill_memory)
{
    struct pvh_start_info *start = pvh_usual();

    start->cmdline = 0x6000;
    memset(memory + 0x6000, 'x', 0x2000);
    CHECK_EQ(boot_info_from_pvh(&info, start, memory_at), 0);
    CHECK_EQ(strlen(info.cmdline), BOOT_CMDLINE_MAX - 1);
}

UNIT_TEST(damaged_start_infos_do_no_harm)
{
    for (int round = 0; round < 20000; round++) {
        struct pvh_start_info *start = pvh_usual();

        for (int i = 0; i < 3; i++)
            memory[4 + unit_random() % (sizeof(*start) - 4)] = (uint8_t)unit_random();
        memory[0x1000 + unit_random() % 32] = (uint8_t)unit_random();
        boot_info_from_pvh(&info, start, memory_at);
        CHECK(info.range_count <= BOOT_RANGES_MAX);
        CHECK(info.module_count <= BOOT_MODULES_MAX);
    }
}

/* ---- the map ----------------------------------------------------------------------- */

UNIT_TEST(reserved_wins_over_ram)
{
    static const struct boot_map_entry entries[] = {
        { 0x2000, 0x1000, BOOT_RESERVED, 0 },
        { 0x1000, 0x4000, BOOT_RAM, 0 },
        { 0x5000, UINT64_MAX, BOOT_BAD, 0 }, /* longer than the address space */
    };

    memset(&info, 0, sizeof(info));
    CHECK_EQ(boot_map_add(&info, entries, sizeof(entries[0]), 3), 0);
    CHECK_EQ(info.range_count, 4);
    check_range(0, 0x1000, 0x2000, BOOT_RAM);
    check_range(1, 0x2000, 0x3000, BOOT_RESERVED);
    check_range(2, 0x3000, 0x5000, BOOT_RAM);
    check_range(3, 0x5000, UINT64_MAX, BOOT_BAD);
}

UNIT_TEST(a_full_list_is_an_error)
{
    memset(&info, 0, sizeof(info));
    for (uint64_t i = 0; i < BOOT_RANGES_MAX; i++)
        CHECK_EQ(boot_map_paint(&info, i * 0x2000, i * 0x2000 + 0x1000, BOOT_RAM), 0);
    CHECK_EQ(boot_map_paint(&info, 0x100, 0x200, BOOT_RESERVED), -E2BIG);
    CHECK(info.range_count == BOOT_RANGES_MAX);
}

/* The model keeps one type for each byte. */
UNIT_TEST(painting_agrees_with_a_model)
{
    for (int round = 0; round < 500; round++) {
        uint8_t model[100] = { 0 };
        uint64_t end = 0;

        memset(&info, 0, sizeof(info));
        for (int i = 0; i < 20; i++) {
            uint64_t from = unit_random() % 100, to = unit_random() % 101;
            uint32_t type = (uint32_t)(1 + unit_random() % 3);

            CHECK_EQ(boot_map_paint(&info, from, to, type), 0);
            for (uint64_t at = from; at < to; at++)
                model[at] = (uint8_t)type;
        }
        for (unsigned i = 0; i < info.range_count; i++) {
            const struct boot_range *r = &info.ranges[i];

            CHECK(r->start < r->end && r->start >= end);
            CHECK(!(i && r->start == end && r[-1].type == r->type));
            for (; end < r->start; end++)
                CHECK_EQ(model[end], 0);
            for (; end < r->end; end++)
                CHECK_EQ(model[end], r->type);
        }
        for (; end < 100; end++)
            CHECK_EQ(model[end], 0);
    }
}

/* ---- arguments --------------------------------------------------------------------- */

UNIT_TEST(options_are_whole_words)
{
    char value[16] = "same";

    CHECK(!boot_option("", "hz", value, sizeof(value)));
    CHECK(!boot_option("hz1=5 xhz=5 h", "hz", value, sizeof(value)));
    CHECK_STR(value, "same");
    CHECK(boot_option("  a hz=250\tb", "hz", value, sizeof(value)));
    CHECK_STR(value, "250");
    CHECK(boot_option("a quiet b", "quiet", value, sizeof(value)));
    CHECK_STR(value, "");
    CHECK(boot_option("quiet", "quiet", NULL, 0));
}

UNIT_TEST(values_may_be_quoted_and_are_cut)
{
    char value[8];

    CHECK(boot_option("run=\"a b\" c", "run", value, sizeof(value)));
    CHECK_STR(value, "a b");
    CHECK(boot_option("run=\"a b", "run", value, sizeof(value)));
    CHECK_STR(value, "a b");
    CHECK(boot_option("x=123456789", "x", value, sizeof(value)));
    CHECK_STR(value, "1234567");
}

UNIT_TEST(more_arguments_are_appended)
{
    char long_text[5000];

    block_usual();
    CHECK_EQ(block_finish(), 0);
    boot_info_append(&info, "  hz=7");
    CHECK_STR(info.cmdline, "tests=all hz=100 hz=7");
    boot_info_append(&info, " \n");
    CHECK_STR(info.cmdline, "tests=all hz=100 hz=7");
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    boot_info_append(&info, long_text);
    CHECK_EQ(strlen(info.cmdline), BOOT_CMDLINE_MAX - 1);
    boot_info_append(&info, "y");
    CHECK_EQ(strlen(info.cmdline), BOOT_CMDLINE_MAX - 1);
}

UNIT_TESTS()
