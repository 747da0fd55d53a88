/* test_filter.c - tests of probes/trace/filter: a filter keeps or drops a record, or its
 * text is refused, with the column of the error. Refused texts and columns are as on
 * Linux.
 */
#include "probes/trace/language/filter.h"

#include "tests/unit/trace_host.h"
#include "tests/unit/unit.h"

#define ARGS "a=%di:u32 b=%si:s16 x=%dx:x64 s=+0(%si):string c=%di:u8 d=%di:s8 e=%di:u16"

/* A record as fetch_args() makes it, with the fields of ARGS. */
static uint8_t record[64];
static struct filter_field fields[FILTER_FIELDS_MAX];
static size_t field_count;

static const struct filter_field *field(const char *name)
{
    return filter_field_find(fields, field_count, name, strlen(name));
}

static void set(const char *name, uint64_t value)
{
    memcpy(record + field(name)->offset, &value, field(name)->size);
}

static void set_string(const char *text)
{
    size_t at = sizeof(record) - 16;

    set("s", (strlen(text) + 1) << 16 | at);
    strcpy((char *)record + at, text);
}

static void prepare(void)
{
    static struct def *def; /* static, because the fields use its names */
    struct trace_error error;

    if (def)
        def_free(&trace_host, def);
    CHECK_EQ(def_parse(&trace_host, "p:ev vfs_read " ARGS, &def, &error), 0);
    field_count = filter_fields(def, fields);
    memset(record, 0, sizeof(record));
    set("common_type", 300);
    set("common_flags", 1);
    set("common_pid", (uint64_t)-7);
    set("__probe_ip", VFS_READ);
    set("a", 4000000000u);
    set("b", (uint64_t)-5);
    set("x", UINT64_MAX);
    set("c", 200);
    set("d", (uint64_t)-100);
    set_string("a file");
}

static struct filter *compiled(const char *text)
{
    struct filter_error error;
    struct filter *filter;
    int err = filter_parse(&trace_host, text, fields, field_count, &filter, &error);

    if (err)
        unit_note("%s: %s at %u", text, filter_error_text(error.id), error.column);
    CHECK_EQ(err, 0);
    return filter;
}

static bool matches(const char *text)
{
    struct filter *filter = compiled(text);
    bool answer = filter_match(filter, record, sizeof(record), 3, "init");

    CHECK_STR(filter_text(filter), text);
    filter_free(&trace_host, filter);
    return answer;
}

static void check_matches(const char *const *texts, size_t count, bool want)
{
    prepare();
    for (size_t i = 0; i < count; i++) {
        if (matches(texts[i]) != want)
            unit_note("%s", texts[i]);
        CHECK(matches(texts[i]) == want);
    }
}

UNIT_TEST(comparisons_that_hold)
{
    static const char *const texts[] = {
        "a == 4000000000",
        "a==4000000000",
        "a != 1",
        "a > 3999999999",
        "a >= 4000000000",
        "a <= 0xee6b2800",
        "b == -5",
        "b < 0",
        "b > -6",
        "b <= -5",
        "x == 0xffffffffffffffff",
        "x > 0",
        "x & 0x80",
        "c == 0310",
        "c & 8",
        "d < -99",
        "d == -100",
        "CPU == 3",
        "cpu < 4",
        "common_cpu >= 3",
        "common_cpu & 1",
        "common_pid == -7",
        "common_pid < 0",
        "common_type == 300",
        "common_flags == 1",
        "__probe_ip == 0xffffffff80001000",
        "e == 0",
    };

    check_matches(texts, ARRAY_LEN(texts), true);
}

UNIT_TEST(comparisons_that_do_not)
{
    static const char *const texts[] = {
        "a == 1",   "a < 4000000000", "a > 4000000000", "b == 5",
        "b > 0",    "b < -5",         "x == 1",         "c & 7",
        "c != 200", "d > 0",          "d < -100",       "CPU == 2",
        "CPU != 3", "common_pid > 0", "e > 0",          "e & 0xffff",
    };

    check_matches(texts, ARRAY_LEN(texts), false);
}

UNIT_TEST(addresses_within_functions)
{
    static const char *const yes[] = {
        "__probe_ip.function == vfs_read",
        "__probe_ip.function == 0xffffffff80001020",
        "__probe_ip.function != vfs_write",
        "(x.function != vfs_read)",
    };
    static const char *const no[] = {
        "__probe_ip.function != vfs_read",
        "__probe_ip.function == vfs_write",
        "x.function == jiffies",
    };

    check_matches(yes, ARRAY_LEN(yes), true);
    check_matches(no, ARRAY_LEN(no), false);
    set("__probe_ip", VFS_READ + 0x8f);
    CHECK(matches(yes[0]));
    set("__probe_ip", VFS_READ + 0x90);
    CHECK(!matches(yes[0]));
}

UNIT_TEST(numbers_of_cpus)
{
    static const char *const yes[] = {
        "CPU & CPUS{3}", "CPU == CPUS{3}",   "cpu & CPUS{0,2-3}", "CPU != CPUS{1}",
        "e & CPUS{0}",   "CPU != CPUS{2-3}", "a != CPUS{1}",      "CPU & CPUS{0-3}",
    };
    static const char *const no[] = {
        "CPU & CPUS{0-2}", "CPU == CPUS{2,3}", "CPU != CPUS{3}",
        "c & CPUS{0-3}",   "x & CPUS{3}",
    };

    check_matches(yes, ARRAY_LEN(yes), true);
    check_matches(no, ARRAY_LEN(no), false);
}

UNIT_TEST(strings_and_patterns)
{
    static const char *const yes[] = {
        "s == \"a file\"",  "s == 'a file'",  "s != \"a\"",       "s ~ \"a*\"",
        "s ~ \"*file\"",    "s ~ '*i?e'",     "s ~ \"[a-c] f*\"", "s ~ \"!x*\"",
        "comm == \"init\"", "COMM ~ \"in*\"", "comm != \"sh\"",
    };
    static const char *const no[] = {
        "s == \"\"",     "s == \"a fil\"", "s == \"a file \"", "s ~ \"a\"",
        "s ~ \"file*\"", "s ~ \"!a*\"",    "comm == \"ini\"",  "comm ~ \"x*\"",
    };

    check_matches(yes, ARRAY_LEN(yes), true);
    check_matches(no, ARRAY_LEN(no), false);
}

UNIT_TEST(a_string_that_could_not_be_read_is_empty)
{
    set("s", sizeof(record));
    CHECK(matches("s == \"\""));
    CHECK(!matches("s == \"a\""));
    CHECK(matches("s ~ \"*\""));
    memset(record + 60, 'x', 4);
    set("s", 1000u << 16 | 60u);
    CHECK(matches("s == \"\""));
}

/* ---- how comparisons are joined ---- */

/* A random filter made of e & 1, e & 2, ... The functions value_...() compute its result
 * by a parser of their own.
 */
struct random_filter {
    char text[512];
    const char *p;
};

static void write_random(struct random_filter *filter, unsigned depth)
{
    char *end = filter->text + strlen(filter->text);
    unsigned choice = (unsigned)(unit_random() % 8);

    if (strlen(filter->text) > 300 || depth > 6)
        choice = 7;
    if (choice == 0) {
        strcpy(end, unit_random() % 2 ? "!" : " ! ");
        write_random(filter, depth + 1);
    } else if (choice <= 2) {
        strcpy(end, "(");
        write_random(filter, depth + 1);
        for (unsigned i = (unsigned)(unit_random() % 3); i; i--) {
            strcat(filter->text, unit_random() % 2 ? " && " : "||");
            write_random(filter, depth + 1);
        }
        strcat(filter->text, ") ");
    } else {
        sprintf(end, "e & %u", 1u << unit_random() % 6);
    }
}

static bool value_or(struct random_filter *filter, unsigned e);

static void blanks(struct random_filter *filter)
{
    while (*filter->p == ' ')
        filter->p++;
}

static bool value_term(struct random_filter *filter, unsigned e)
{
    bool answer;

    blanks(filter);
    if (*filter->p == '!') {
        filter->p++;
        return !value_term(filter, e);
    }
    if (*filter->p == '(') {
        filter->p++;
        answer = value_or(filter, e);
        filter->p++;
    } else {
        answer = strtoul(filter->p + 4, (char **)&filter->p, 10) & e;
    }
    blanks(filter);
    return answer;
}

static bool value_and(struct random_filter *filter, unsigned e)
{
    bool answer = value_term(filter, e);

    while (*filter->p == '&') {
        filter->p += 2;
        answer &= value_term(filter, e);
    }
    return answer;
}

static bool value_or(struct random_filter *filter, unsigned e)
{
    bool answer = value_and(filter, e);

    while (*filter->p == '|') {
        filter->p += 2;
        answer |= value_and(filter, e);
    }
    return answer;
}

UNIT_TEST(random_filters_mean_what_their_grammar_says)
{
    for (int i = 0; i < 2000; i++) {
        struct random_filter filter = { .text = "(" };
        struct filter *program;

        write_random(&filter, 0);
        strcat(filter.text, "||e & 32)");
        program = compiled(filter.text);
        for (unsigned e = 0; program && e < 64; e++) {
            bool want;

            filter.p = filter.text;
            want = value_or(&filter, e);
            set("e", e);
            if (filter_match(program, record, sizeof(record), 0, "") != want) {
                unit_note("%s with %u", filter.text, e);
                CHECK(false);
                return;
            }
        }
        filter_free(&trace_host, program);
    }
}

UNIT_TEST(an_operator_at_the_end_is_no_mistake)
{
    CHECK(matches("c == 200 &&"));
    CHECK(matches("c == 200 || "));
    CHECK(!matches("c == 1 ||"));
    CHECK(matches("c == 200 && !"));
}

/* ---- errors ---- */

struct row {
    const char *text;
    int err;
    const char *error;
    unsigned column;
};

static void check_row(const struct row *row)
{
    struct filter_error error;
    struct filter *filter;
    int err = filter_parse(&trace_host, row->text, fields, field_count, &filter, &error);

    if (err != -row->err || error.column != row->column)
        unit_note("%s", row->text);
    CHECK_EQ(err, -row->err);
    CHECK(!filter);
    CHECK_STR(filter_error_text(error.id), row->error);
    CHECK_EQ(error.column, row->column);
}

UNIT_TEST(what_is_refused_and_where)
{
    static const struct row rows[] = {
        { "a == -1", EINVAL, "Illegal integer value", 6 },
        { "a == 0xg", EINVAL, "Illegal integer value", 6 },
        { "a == 09", EINVAL, "Illegal integer value", 6 },
        { "b == 9223372036854775808", EINVAL, "Illegal integer value", 6 },
        { "x == 18446744073709551616", EINVAL, "Illegal integer value", 6 },
        { "x == 123456789012345678901234", EINVAL, "Operand too long", 30 },
        { "a", EINVAL, "Invalid operator", 2 },
        { "a = 1", EINVAL, "Invalid operator", 3 },
        { "1 == a", EINVAL, "Field not found", 2 },
        { "  nosuch == 1", EINVAL, "Field not found", 9 },
        { "c == 1 && nosuch == 1", EINVAL, "Field not found", 17 },
        { "a == 'x'", EINVAL, "Expecting numeric field", 6 },
        { "s == 1", EINVAL, "Expecting string field", 6 },
        { "CPU == 'x'", EINVAL, "Expecting numeric field", 8 },
        { "s < 'x'", EINVAL, "Illegal operation for field type", 5 },
        { "a ~ 1", EINVAL, "Illegal operation for field type", 5 },
        { "s == x", EINVAL, "Invalid value (did you forget quotes)?", 6 },
        { "a && b == 1", EINVAL, "Invalid value (did you forget quotes)?", 4 },
        { "a ==", EINVAL, "Invalid value (did you forget quotes)?", 5 },
        { "a == 1 b == 2", EPERM, "Too many terms in predicate expression", 7 },
        { "a == 1 & b == 2", EPERM, "Too many terms in predicate expression", 7 },
        { "a == 1)", EPERM, "Too few '('", 6 },
        { "(a == 1", ENOENT, "Too many '('", 0 },
        { "c == 1 || (a == 1 && (b == 1)", ENOENT, "Too many '('", 10 },
        { "s == \"x", ESRCH, "Missing matching quote", 5 },
        { "&& a == 1", EPERM, "Error", 0 },
        { "()", EINVAL, "Error", 0 },
        { "&&", EPERM, "Error", 0 },
        { "a == 1 && ()", EPERM, "Error", 0 },
        { "() && a == 1", EPERM, "Error", 0 },
        { "\xc3\xa9 == 1", EINVAL, "Field not found", 2 },
        { "common_comm == \"x\"", EINVAL, "Field not found", 12 },
        { "a.function == vfs_read", EINVAL, "Illegal operation for field type", 15 },
        { "x.function < vfs_read", EINVAL, "Invalid operator", 14 },
        { "x.function == vfs_rea", EINVAL, "Function not found", 22 },
        { "x.function == \"vfs_read\"", EINVAL, "Function not found", 25 },
        { "x.function == 0x10", EINVAL, "Function not found", 19 },
        { "s & CPUS{0}", EINVAL, "Illegal operation for field type", 5 },
        { "CPU > CPUS{0}", EINVAL, "Illegal operation for field type", 7 },
        { "CPU & CPUS", EINVAL, "Missing '{'", 12 },
        { "CPU & CPUS{0", EINVAL, "Missing '}'", 13 },
        { "CPU & CPUS{}", EINVAL, "Invalid cpulist", 12 },
        { "CPU & CPUS{x}", EINVAL, "Invalid cpulist", 13 },
        { "CPU & CPUS{0-4}", EINVAL, "Invalid cpulist", 15 },
        { "CPU & CPUS{2-1}", EINVAL, "Invalid cpulist", 15 },
        { "!= 1", EPERM, "Error", 0 },
        { "", EINVAL, "Error", 0 },
        { "  ", EINVAL, "Error", 0 },
        { "!", EINVAL, "No filter found", 1 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(&rows[i]);
}

UNIT_TEST(operands_and_depths_that_are_too_great)
{
    static char text[FILTER_TEXT_MAX + 1];
    struct row row = { text, EINVAL, "Operand too long", 0 };

    memset(text, 'x', sizeof(text));
    memcpy(text, "s == \"", 6);
    strcpy(text + 6 + FILTER_STRING_MAX, "\"");
    row.column = 6 + FILTER_STRING_MAX + 1;
    check_row(&row);
    strcpy(text + 6 + FILTER_STRING_MAX - 1, "\"");
    CHECK(!matches(text));

    memset(text, '(', 2000);
    strcpy(text + 2000, "a == 4000000000");
    memset(text + 2015, ')', 2000);
    text[4015] = '\0';
    CHECK(matches(text));
    text[1999] = '!';
    text[4014] = '\0';
    CHECK(!matches(text));

    memset(text, ' ', FILTER_TEXT_MAX);
    text[FILTER_TEXT_MAX] = '\0';
    row = (struct row){ text, EINVAL, "Error", 0 };
    check_row(&row);
}

static void check_block(const char *text, const char *want)
{
    struct filter_error error;
    struct filter *filter;
    char block[256];

    CHECK(filter_parse(&trace_host, text, fields, field_count, &filter, &error) < 0);
    CHECK(filter_block(text, &error, block, sizeof(block)) == strlen(block));
    CHECK_STR(block, want);
}

UNIT_TEST(the_block_of_an_error)
{
    check_block("a == -1", "a == -1\n      ^\nparse_error: Illegal integer value\n");
    check_block("a", "a\n ^\nparse_error: Invalid operator\n");
    check_block("1 == a", "1 == a\n  ^\nparse_error: Field not found\n");
    check_block("(a == 1", "(a == 1\n^\nparse_error: Too many '('\n");
    check_block("()", "()\nError: (0)\n");
}

UNIT_TEST(fields_of_return_probes_and_arrays)
{
    struct trace_error error;
    struct filter_error why;
    struct filter *filter;
    struct def *def;

    CHECK_EQ(def_parse(&trace_host, "r:ev vfs_read a=+0(%si):u8[3] b=$retval:s32", &def,
                       &error),
             0);
    field_count = filter_fields(def, fields);
    CHECK_EQ(field("__probe_func")->offset, 8);
    CHECK_EQ(field("__probe_ret_ip")->offset, 16);
    CHECK_EQ(field("a")->offset, 24);
    CHECK_EQ(field("a")->size, 3);
    CHECK_EQ(field("b")->offset, 27);
    CHECK(field("b")->is_signed);
    CHECK(!field("__probe_ip"));
    CHECK_EQ(filter_parse(&trace_host, "a == 1", fields, field_count, &filter, &why),
             -EINVAL);
    CHECK_STR(filter_error_text(why.id), "Illegal operation for field type");
    def_free(&trace_host, def);
}

UNIT_TEST(without_memory_there_is_no_filter)
{
    struct filter_error error;
    struct filter *filter;
    long before = trace_host_blocks();

    before = trace_host_blocks();
    trace_host_fail_after(1);
    CHECK_EQ(filter_parse(&trace_host, "a == 1", fields, field_count, &filter, &error),
             -ENOMEM);
    trace_host_fail_after(2);
    CHECK_EQ(filter_parse(&trace_host, "a == 1", fields, field_count, &filter, &error),
             -ENOMEM);
    CHECK_EQ(filter_parse(&trace_host, "a == x", fields, field_count, &filter, &error),
             -EINVAL);
    CHECK_EQ(trace_host_blocks(), before);
}

UNIT_TESTS_BETWEEN(prepare, NULL)
