/* test_def_mark.c - tests of probes/trace/def_mark: which fields the format of a marker
 * gives.
 */
#include "probes/trace/language/def_mark.h"

#include "tests/unit/trace_host.h"
#include "tests/unit/unit.h"

static int read_here(void *dst, uintptr_t addr, size_t len, bool user UNUSED)
{
    memcpy(dst, (const void *)addr, len);
    return 0;
}

/* fields - return the fields of @format as "name:type@offset ...", or "refused". */
static const char *fields(const char *format)
{
    static char text[256];
    struct def *def;
    int len = 0;

    if (def_of_mark(&trace_host, "mark", format, &def))
        return "refused";
    text[0] = '\0';
    for (unsigned i = 0; i < def->arg_count; i++)
        len +=
            snprintf(text + len, sizeof(text) - (size_t)len, "%s%s:%s@%u", i ? " " : "",
                     def->args[i].name, def->args[i].type->name, def->args[i].offset);
    def_free(&trace_host, def);
    return text;
}

UNIT_TEST(a_field_is_called_as_the_word_before_it)
{
    CHECK_STR(fields("path %s flags 0x%x result %d"),
              "path:string@0 flags:x32@4 result:s32@8");
    CHECK_STR(fields("count=%zu, pos: %lu"), "count:u64@0 pos:u64@8");
    CHECK_STR(fields("of the kind_2 %u"), "kind_2:u32@0");
    CHECK_STR(fields("a_name_of_just_thirty_two_chars_ %d"),
              "a_name_of_just_thirty_two_chars_:s32@0");
    CHECK_STR(fields("nothing"), "");
}

UNIT_TEST(or_by_its_number)
{
    CHECK_STR(fields("%d %d"), "arg1:s32@0 arg2:s32@4");
    CHECK_STR(fields("0x%x 7 %u"), "arg1:x32@0 arg2:u32@4");
    CHECK_STR(fields("n %d n %d"), "n:s32@0 arg2:s32@4");
    CHECK_STR(fields("a_name_that_is_far_too_long_for_a_field %d"), "arg1:s32@0");
    CHECK_STR(fields("half 50%% of %d"), "of:s32@0");
}

UNIT_TEST(its_type_is_that_of_the_conversion)
{
    CHECK_STR(fields("a %hhd b %hd c %d d %ld e %lld"),
              "a:s8@0 b:s16@1 c:s32@3 d:s64@7 e:s64@15");
    CHECK_STR(fields("a %hhu b %hx c %-8.3lo d %#lX"), "a:u8@0 b:x16@1 c:x64@3 d:x64@11");
    CHECK_STR(fields("a %c b %p c %10s"), "a:char@0 b:x64@1 c:string@9");
}

UNIT_TEST(what_no_marker_has_is_refused)
{
    CHECK_STR(fields("a %f"), "refused");
    CHECK_STR(fields("a %*d"), "refused");
    CHECK_STR(fields("a %"), "refused");
    CHECK_STR(fields("%d%d%d%d%d%d%d%d"),
              "arg1:s32@0 arg2:s32@4 arg3:s32@8 arg4:s32@12 arg5:s32@16 arg6:s32@20 "
              "arg7:s32@24 arg8:s32@28");
    CHECK_STR(fields("%d%d%d%d%d%d%d%d%d"), "refused");
}

UNIT_TEST(values_are_fetched_as_words)
{
    static const char text[32] __attribute__((aligned(16))) = "some text";
    const uint64_t words[] = { (uint64_t)text, 0x1122334455667788, (uint64_t)-2 };
    struct fetch_from from = { .entry = words, .read = read_here };
    uint8_t record[64] = { 0 };
    struct fetch_to to = { .record = record, .size = sizeof(record) };
    struct def *def;

    CHECK_EQ(def_of_mark(&trace_host, "mark", "path %s low 0x%x result %ld", &def), 0);
    CHECK_STR(def->group, "markers");
    CHECK_STR(def->event, "mark");
    fetch_args(def->args, def->arg_count, 8, &from, &to);
    CHECK_BYTES(record + 8, "18 00 0a 00 88 77 66 55 fe ff ff ff ff ff ff ff");
    CHECK_STR((const char *)record + 0x18, "some text");
    CHECK_EQ(to.faults, 0);
    def_free(&trace_host, def);
}

UNIT_TEST(without_memory_there_is_none)
{
    struct def *def;

    trace_host_fail_after(1);
    CHECK_EQ(def_of_mark(&trace_host, "mark", "path %s", &def), -ENOMEM);
    CHECK_EQ(trace_host_blocks(), 0);
}

UNIT_TESTS()
