/* test_region_copy.c - tests of the copies of displaced instructions, and of the jump
 * back.
 */
#include "probes/core/life.h"
#include "probes/region/region.h"
#include "tests/unit/unit.h"

static struct region region;
static struct probe_reject why;

#define TO UINT64_C(0xffffffff7e000100)
#define AT UINT64_C(0xffffffff80200400)

static uint8_t code[REGION_COPY_MAX];

static size_t code_len;

/* copy - make a region at AT of the instructions @hex, and its copies. */
static int copy(const char *hex)
{
    uint8_t bytes[64];
    struct insn insn;
    size_t len = 0, at = 0;

    for (const char *p = hex; *p; p += p[2] ? 3 : 2)
        bytes[len++] = (uint8_t)strtoul(p, NULL, 16);
    region = (struct region){ .addr = AT, .cell = (uint8_t *)TO };
    while (at < len) {
        CHECK_EQ(insn_decode(&insn, bytes + at, len - at, AT + at), 0);
        region.starts[region.count++] = (uint8_t)at;
        at += insn.len;
    }
    memcpy(region.bytes, bytes, len);
    region.len = (uint8_t)len;
    memset(code, 0xcc, sizeof(code));
    return region_copy(&region, TO, code, &code_len, &why);
}

UNIT_TEST(displacements_are_counted_anew)
{
    CHECK_EQ(copy("55 48 8b 05 10 00 00 00"), 0);
    CHECK_BYTES(code, "55 48 8b 05 10 03 20 02 e9");
    CHECK_EQ(copy("31 c0 74 10 90"), 0);
    CHECK_BYTES(code, "31 c0 0f 84 0c 03 20 02 90 e9");
    CHECK_EQ(region.copies[2], 8);
}

UNIT_TEST(no_jump_back_where_the_program_does_not_go_on)
{
    CHECK_EQ(copy("31 c0 31 c9 c3"), 0);
    CHECK_EQ(code_len, 5);
    CHECK_EQ(copy("31 c0 31 c9 eb 10"), 0);
    CHECK_EQ(code_len, 9);
}

UNIT_TEST(a_call_returns_behind_the_original)
{
    CHECK_EQ(copy("31 c0 e8 10 00 00 00"), 0);
    /* push $AT+7; jmp AT+7+0x10 */
    CHECK_BYTES(code, "31 c0 68 07 04 20 80 e9 0b 03 20 02");
    CHECK_EQ(code_len, 12);
    CHECK_EQ(region_original(&region, 2), AT + 2);
    CHECK_EQ(region_original(&region, 7), AT + 2);
}

UNIT_TEST(the_longest_copies_fit)
{
    CHECK_EQ(copy("e2 10 e3 10 2e 2e 2e 2e 2e 2e 2e 0f 1f 84 00 00 00 00 00"), 0);
    CHECK(code_len <= REGION_COPY_MAX);
    CHECK_EQ(copy("e2 10 67 e3 10"), 0);
    CHECK_EQ(copy("90 90 90 90 2e 2e 2e 2e 2e 2e 2e 0f 1f 84 00 00 00 00 00"), 0);
}

UNIT_TEST(out_of_reach_is_refused)
{
    CHECK_EQ(copy("31 c0 31 c9 90"), 0);
    region.addr = 0x1000;
    CHECK_EQ(region_copy(&region, TO - ((uintptr_t)3 << 32), code, &code_len, &why),
             -ERANGE);
    CHECK_EQ(why.reason, PROBE_OUT_OF_REACH);
    CHECK_EQ(copy("31 c0 e8 10 00 00 00"), 0);
    region.addr = (uintptr_t)1 << 40;
    CHECK_EQ(region_copy(&region, region.addr, code, &code_len, &why), -ERANGE);
}

UNIT_TESTS()
