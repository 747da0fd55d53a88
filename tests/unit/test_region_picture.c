/* test_region_picture.c - tests of the picture of a region, and of whatever is in its
 * way.
 */
#include "probes/kprobe.h"
#include "probes/region/region.h"
#include "tests/unit/region_text.h"

#include <string.h>

static struct region region;

static char drawn[2048];

static void note_line(const char *text, void *arg)
{
    CHECK(arg == &region);
    CHECK(strlen(text) < REGION_LINE_MAX);
    strcat(strcat(drawn, text), "\n");
}

static const char *draw(uintptr_t addr)
{
    drawn[0] = '\0';
    region_draw(addr, note_line, &region);
    return drawn;
}

UNIT_TEST(a_region_is_drawn)
{
    fn = fake_function("fn", "55 48 89 e5 41 57 90 c3");
    CHECK_STR(draw(fn), "IA\n"
                        "|\n"
                        "[ 0][ 1][ 2][ 3][ 4][ 5]\n"
                        "[55][48  89  e5][41  57]\n"
                        "[<- DCR -------------->]\n"
                        "    [<- JTPR ----->]\n");
}

UNIT_TEST(obstacles_are_drawn)
{
    struct kprobe inner = { 0 };

    fn = fake_function("fn", "31 c0 31 c9 31 d2 c3");
    fake_target(fn + 2);
    fake_opaque(fn + 3, fn + 4);
    inner.addr = fn + 4;
    CHECK_EQ(register_kprobe(&inner), 0);
    CHECK_STR(draw(fn),
              "IA\n"
              "|\n"
              "[ 0][ 1][ 2][ 3][ 4][ 5]\n"
              "[31  c0][31  c9][31  d2]\n"
              "[<- DCR -------------->]\n"
              "    [<- JTPR ----->]\n"
              "         T              T: a branch, a pointer or a fix-up leads there\n"
              "             ?          ?: it is not known what leads there\n"
              "                 P      P: another probe\n");
    CHECK_EQ(unregister_kprobe(&inner), 0);
}

UNIT_TEST(what_is_too_narrow_for_a_name_has_none)
{
    twins("90 31 c0", 1, 0);
    CHECK(strstr(draw(fn), "\n[90]\n[--]\n    [<- JTPR ----->]\n"));
    twins("31 c0 31 c0", 2, 0);
    CHECK(strstr(draw(fn), "\n[31  c0]\n[------]\n    [<- JTPR ----->]\n"));
    CHECK(!strcmp(draw(fn + 1), "IA\n|\n[ 0][ 1][ 2][ 3][ 4]\n    [<- JTPR ----->]\n"));
}

UNIT_TEST(padding_and_what_is_missing_are_drawn)
{
    twins("31 c0 c3 90 90 90 31 c0 c3", 3, 3);
    CHECK(strstr(draw(fn), "\n[31  c0][c3](90)(90)\n[<- DCR ---------->]\n"));
    twins("31 c0 31 c9 31 c0 c3", 4, 0);
    CHECK(strstr(draw(fn), "\n[ 0][ 1][ 2][ 3][ 4]\n[31  c0][31  c9]\n[<- DCR ------>]\n"
                           "    [<- JTPR ----->]\n"));
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
