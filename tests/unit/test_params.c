/* test_params.c - tests of the lookup in a table like that of the build. */
#include "kernel/debug/ksyms.h"
#include "kernel/debug/params.h"

#include "tests/unit/unit.h"

struct row {
    uint32_t addr, line;
};

extern const struct row params_table[];
extern const uint32_t params_total;
extern const char params_lines[];

const char params_lines[] = "void\0s64 file:x64 buf:string\0x64 len:u64";
const struct row params_table[] = {
    { 0x80200010, 5 }, { 0x80200020, 0 }, { 0x80200040, 29 }, { 0x80200050, 5 }
};
const uint32_t params_total = 4;

#define ADDR(low) (0xffffffff00000000ul | (low))

/* A module whose function at 0x80700000 has a line. */
int ksyms_at(uintptr_t addr, struct ksym *out)
{
    *out = (struct ksym){ .offset = addr - ADDR(0x80700000), .params = "u32 mask:x64" };
    return addr >> 20 == ADDR(0x80700000) >> 20 ? 0 : -1;
}

static bool is(const char *text, size_t len, const char *want)
{
    return strlen(want) == len && !memcmp(text, want, len);
}

UNIT_TEST(each_function_has_its_line)
{
    struct param param;
    const char *type;
    size_t len = 0;

    CHECK(params_get(ADDR(0x80200010), 0, &param));
    CHECK(is(param.name, param.name_len, "file") &&
          is(param.type, param.type_len, "x64"));
    CHECK(params_get(ADDR(0x80200050), 1, &param));
    CHECK(is(param.name, param.name_len, "buf") &&
          is(param.type, param.type_len, "string"));
    CHECK(params_get(ADDR(0x80200040), 0, &param));
    CHECK(is(param.name, param.name_len, "len") && is(param.type, param.type_len, "u64"));
    type = params_return(ADDR(0x80200050), &len);
    CHECK(type && is(type, len, "s64"));
    type = params_return(ADDR(0x80200020), &len);
    CHECK(type && is(type, len, "void"));
}

UNIT_TEST(a_module_brings_its_own)
{
    struct param param;
    size_t len = 0;
    const char *type = params_return(ADDR(0x80700000), &len);

    CHECK(type && is(type, len, "u32"));
    CHECK(params_get(ADDR(0x80700000), 0, &param));
    CHECK(is(param.name, param.name_len, "mask"));
    CHECK(!params_get(ADDR(0x80700001), 0, &param));
}

UNIT_TEST(there_are_no_others)
{
    static const uint32_t others[] = { 0, 0x80200011, 0x80200030, 0x80200060 };
    struct param param;
    size_t len;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        CHECK(!params_get(ADDR(others[i]), 0, &param));
        CHECK(!params_return(ADDR(others[i]), &len));
    }
    CHECK(!params_get(ADDR(0x80200010), 2, &param));
    CHECK(!params_get(ADDR(0x80200020), 0, &param));
    CHECK(!params_get(0x80200010, 0, &param));
}

UNIT_TESTS()
