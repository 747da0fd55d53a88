/* test_lines.c - tests of the lookup in a table like that of the build. */
#include "kernel/debug/lines.h"

#include "tests/unit/unit.h"

struct row {
    uint32_t name, places, count;
};

extern const struct row lines_files[];
extern const uint32_t lines_total;
extern const char lines_names[];
extern const uint8_t lines_places[];

const char lines_names[] =
    "kernel/fs/vfs.c\0probes/fs.c\0probes/jump/copy.c\0tests/copy.c";
const struct row lines_files[] = {
    { 0, 0, 4 }, { 16, 14, 1 }, { 28, 19, 1 }, { 47, 22, 0 }
};
const uint32_t lines_total = 4;
/* vfs.c: line 7 at +0x200000 and +0x200100, lines 300 and 301 at +0x1fffff. */
const uint8_t lines_places[] = {
    7,    0x80, 0x80, 0x80, 0x02, /* +0x200000 */
    0,    0x80, 0x04,             /* +0x100 */
    0xa5, 0x02, 0x81, 0x04,       /* +293, ~0x100 */
    1,    0,                      /* the same address */
    2,    0xfe, 0xff, 0xff, 0x07, /* fs.c: +0x7fffff */
    1,    0x90, 0x01,             /* copy.c: +0x48 */
};

static int file(const char *name)
{
    size_t iter = 0;

    return lines_file(name, strlen(name), &iter);
}

UNIT_TEST(files_by_the_end_of_their_path)
{
    size_t iter = 0;

    CHECK_EQ(file("vfs.c"), 0);
    CHECK_EQ(file("fs/vfs.c"), 0);
    CHECK_EQ(file("kernel/fs/vfs.c"), 0);
    CHECK_EQ(file("fs.c"), 1);
    CHECK_EQ(file("s.c"), -ENOENT);
    CHECK_EQ(file("/kernel/fs/vfs.c"), -ENOENT);
    CHECK_EQ(file("x/kernel/fs/vfs.c"), -ENOENT);
    CHECK_EQ(file(""), -ENOENT);
    CHECK_EQ(lines_file("copy.c", 6, &iter), 2);
    CHECK_EQ(lines_file("copy.c", 6, &iter), 3);
    CHECK_EQ(lines_file("copy.c", 6, &iter), -ENOENT);
    CHECK_STR(lines_path(2), "probes/jump/copy.c");
}

static uintptr_t place(int number, unsigned line, size_t i)
{
    uintptr_t addr = 1;
    int err = lines_get(number, line, i, &addr);

    CHECK(err == -ENOENT ? addr == 1 : !err);
    return err ? 0 : addr;
}

UNIT_TEST(places_of_a_line)
{
    CHECK_EQ(place(0, 7, 0), 0xffffffff80200000);
    CHECK_EQ(place(0, 7, 1), 0xffffffff80200100);
    CHECK_EQ(place(0, 7, 2), 0);
    CHECK_EQ(place(0, 300, 0), 0xffffffff801fffff);
    CHECK_EQ(place(0, 301, 0), 0xffffffff801fffff);
    CHECK_EQ(place(0, 301, 1), 0);
    CHECK_EQ(place(1, 2, 0), 0xffffffff807fffff);
    CHECK_EQ(place(2, 1, 0), 0xffffffff80000048);
}

UNIT_TEST(lines_without_code)
{
    CHECK_EQ(place(0, 6, 0), 0);
    CHECK_EQ(place(0, 8, 0), 0);
    CHECK_EQ(place(0, 302, 0), 0);
    CHECK_EQ(place(3, 1, 0), 0);
    CHECK_EQ(lines_next(0, 0), 7);
    CHECK_EQ(lines_next(0, 7), 300);
    CHECK_EQ(lines_next(0, 300), 301);
    CHECK_EQ(lines_next(0, 301), 0);
    CHECK_EQ(lines_next(3, 0), 0);
}

UNIT_TESTS()
