/* test_def.c - tests of probes/trace/def: a line becomes a definition, or an error with
 * the column where it is.
 *
 * As far as the grammar of Linux goes, the lines and their results are those of Linux.
 */
#include "probes/trace/language/def.h"

#include "tests/unit/trace_host.h"
#include "tests/unit/unit.h"

#define S8 "ssssssss"
#define S32 S8 S8 S8 S8
#define S64 S32 S32

struct row {
    const char *line;
    int err; /* 0: accepted */
    const char
        *answer; /* the line as it is listed, or the text of the error; NULL: no text */
    unsigned column;
};

/* What the last line has been parsed to. */
static struct trace_error error;
static struct def *def;

static void check_row(const struct row *row)
{
    static char listed[DEF_LINE_MAX * 2];
    int err = def_parse(&trace_host, row->line, &def, &error);

    if (err != -row->err)
        unit_note("%s: %d", row->line, err);
    CHECK_EQ(err, -row->err);
    CHECK_EQ(error.err, err);
    if (err) {
        CHECK(!def);
        CHECK_STR(trace_error_text(error.id), row->answer ? row->answer : "");
        if (row->answer && error.column != row->column)
            unit_note("%s", row->line);
        if (row->answer)
            CHECK_EQ(error.column, row->column);
        return;
    }
    CHECK(!!def == !!row->answer);
    if (!def || !row->answer)
        return;
    CHECK(def_print(def, listed, sizeof(listed)) == strlen(listed));
    CHECK_STR(listed, row->answer);
    def_free(&trace_host, def);
}

#define CHECK_ROWS(rows)                                                                 \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                        \
    check_row(&(rows)[i])

UNIT_TEST(lines_with_nothing_on_them)
{
    static const struct row rows[] = { { "", 0, NULL, 0 }, { " \t ", 0, NULL, 0 } };

    CHECK_ROWS(rows);
}

UNIT_TEST(lines_that_are_no_command)
{
    static const struct row rows[] = {
        { "x:ev vfs_read", EINVAL, NULL, 0 },
        { "p", EINVAL, NULL, 0 },
        { "p:ev", EINVAL, NULL, 0 },
        { "vfs_read", EINVAL, NULL, 0 },
        { "p:ev /bin/sh:0x10", EINVAL, NULL, 0 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(places)
{
    static const struct row rows[] = {
        { "   p:ev   vfs_read", 0, "p:kprobes/ev vfs_read", 0 },
        { "p:ev vfs_read+0x0", 0, "p:kprobes/ev vfs_read", 0 },
        { "p:ev vfs_read+0x10", 0, "p:kprobes/ev vfs_read+16", 0 },
        { "p:ev vfs_read+010", 0, "p:kprobes/ev vfs_read+8", 0 },
        { "p:ev 0xffffffff80001000", 0, "p:kprobes/ev 0xffffffff80001000", 0 },
        { "p:ev 0", 0, "p:kprobes/ev 0x0", 0 },
        { "p:ev do.part.0", 0, "p:kprobes/ev do.part.0", 0 },
        { "p:ev mod:mod_init", 0, "p:kprobes/ev mod:mod_init", 0 },
        { "p:ev gone:anything+8", 0, "p:kprobes/ev gone:anything+8", 0 },
        { "r:ev vfs_read", 0, "r:kprobes/ev vfs_read", 0 },
        { "p:ev vfs_read%return", 0, "r:kprobes/ev vfs_read", 0 },
        { "p:ev vfs_read+zz", EINVAL, "Invalid probed address or symbol", 5 },
        { "p:ev vfs_read-4", EINVAL, "Invalid probed address or symbol", 5 },
        { "p:ev vfs_read+10-10", EINVAL, "Invalid probed address or symbol", 5 },
        { "p:ev vfs_read+4294967296", EINVAL, "Invalid probed address or symbol", 5 },
        { "p:ev nosuch", ENOENT, "Invalid probed address or symbol", 5 },
        { "p:ev mod:nosuch", ENOENT, "Invalid probed address or symbol", 5 },
        { "p twice", EADDRNOTAVAIL, "The symbol is not unique", 2 },
        { "p:ev vfs_read%hoge", EINVAL, "Invalid probed address suffix", 13 },
        { "r:ev vfs_read+4", EINVAL, "Retprobe address must be an function entry", 5 },
        { "p:ev vfs_read+4%return", EINVAL, "Retprobe address must be an function entry",
          5 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(watches)
{
    static const struct row rows[] = {
        { "w:ev w@jiffies", 0, "w:wprobes/ev w@jiffies:4", 0 },
        { "w @jiffies:8", 0, "w:wprobes/jiffies rw@jiffies:8", 0 },
        { "w:g/ev rw@jiffies+8:8 $addr", 0, "w:g/ev rw@jiffies+8:8 arg1=$addr", 0 },
        { "w:ev w@jiffies-4:2 v=$value:u16", 0, "w:wprobes/ev w@jiffies-4:2 v=$value:u16",
          0 },
        { "w w@0xffffffff80009000:1", 0,
          "w:wprobes/w_0xffffffff80009000 w@0xffffffff80009000:1", 0 },
        { "w:ev w@-1:8 c=$comm d=+8($addr)", 0, "w:wprobes/ev w@-1:8 c=$comm d=+8($addr)",
          0 },
        { "w:ev w@0:8", 0, "w:wprobes/ev w@-1:8", 0 },
        { "w:ev w@mod:mod_init", 0, "w:wprobes/ev w@mod:mod_init:4", 0 },
        { "w:ev w@mod:mod_init+2:2", 0, "w:wprobes/ev w@mod:mod_init+2:2", 0 },
        { "w", EINVAL, NULL, 0 },
        { "w:ev", EINVAL, NULL, 0 },
        { "w2:ev w@jiffies", EINVAL, "Maxactive is only for function exit", 1 },
        { "w symbol", EINVAL, "Access memory address requires @", 2 },
        { "w a@symbol", EINVAL, "Bad memory access type", 2 },
        { "w r@jiffies", EINVAL, "Bad memory access type", 2 },
        { "w x@jiffies", EINVAL, "Bad memory access type", 2 },
        { "w w@symbol", ENOENT, "Invalid access memory address", 4 },
        { "w w@", ENOENT, "Invalid access memory address", 4 },
        { "w w@jiffies+offset", EINVAL, "Invalid probed address or symbol", 11 },
        { "w w@jiffies:100", EINVAL, "This memory access length is not supported", 12 },
        { "w w@jiffies:3", EINVAL, "This memory access length is not supported", 12 },
        { "w w@jiffies:", EINVAL, "This memory access length is not supported", 12 },
        { "w w@jiffies:x", EINVAL, "This memory access length is not supported", 12 },
        { "w w@jiffies+1:2", EINVAL, "Invalid access memory address", 4 },
        { "w w@0x1000", EINVAL, "Invalid access memory address", 4 },
        { "w w@twice", EADDRNOTAVAIL, "The symbol is not unique", 4 },
        { "w w@jiffies $arg1", EINVAL, "Invalid $-variable specified", 12 },
        { "w w@jiffies $retval", EINVAL, "Invalid $-variable specified", 12 },
        { "w w@jiffies $stack", EINVAL, "Invalid $-variable specified", 12 },
        { "w w@jiffies %ax", EINVAL, "Invalid $-variable specified", 12 },
        { "p vfs_read $addr", EINVAL, "Invalid $-variable specified", 11 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(numbers_of_instances)
{
    static const struct row rows[] = {
        { "r1:ev vfs_read", 0, "r1:kprobes/ev vfs_read", 0 },
        { "r4096:ev vfs_read", 0, "r4096:kprobes/ev vfs_read", 0 },
        { "r5 vfs_read", 0, "r5:kprobes/r_vfs_read_0 vfs_read", 0 },
        { "r0:ev vfs_read", EINVAL, "Invalid maxactive number", 1 },
        { "r1x:ev vfs_read", EINVAL, "Invalid maxactive number", 1 },
        { "r99999999999:ev vfs_read", EINVAL, "Invalid maxactive number", 1 },
        { "r4097:ev vfs_read", EINVAL, "Maxactive is too big", 1 },
        { "p5:ev vfs_read", EINVAL, "Maxactive is only for function exit", 1 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(names)
{
    static const struct row rows[] = {
        { "p vfs_read", 0, "p:kprobes/p_vfs_read_0 vfs_read", 0 },
        { "p vfs_read+0x14", 0, "p:kprobes/p_vfs_read_20 vfs_read+20", 0 },
        { "p do.part.0", 0, "p:kprobes/p_do_part_0_0 do.part.0", 0 },
        { "r:grp/ vfs_read", 0, "r:grp/r_vfs_read_0 vfs_read", 0 },
        { "p 0xffffffff80001000", 0, "p:kprobes/p_0xffffffff80001000 0xffffffff80001000",
          0 },
        { "p:my-grp/ev vfs_read", 0, "p:my-grp/ev vfs_read", 0 },
        { "p:grp.ev vfs_read", 0, "p:grp/ev vfs_read", 0 },
        { "p:" S32 S8 S8 S8 "sssssss vfs_read", 0,
          "p:kprobes/" S32 S8 S8 S8 "sssssss vfs_read", 0 },
        { "p:" S64 " vfs_read", EINVAL, "Event name is too long", 2 },
        { "p:grp/" S64 " vfs_read", EINVAL, "Event name is too long", 6 },
        { "p:" S64 "/ev vfs_read", EINVAL, "Group name is too long", 2 },
        { "p:/ev vfs_read", EINVAL, "Group name is not specified", 2 },
        { "p: vfs_read", EINVAL, "Event name is not specified", 2 },
        { "p:1grp/ev vfs_read", EINVAL,
          "Group name must follow the same rules as C identifiers", 2 },
        { "p:ev-1 vfs_read", EINVAL,
          "Event name must follow the same rules as C identifiers", 2 },
        { "p:grp/1ev vfs_read", EINVAL,
          "Event name must follow the same rules as C identifiers", 6 },
        { "r5:1ev vfs_read", EINVAL,
          "Event name must follow the same rules as C identifiers", 3 },
    };

    CHECK_ROWS(rows);
}

#define LISTED(text) "p:kprobes/ev vfs_read " text

UNIT_TEST(registers_and_variables)
{
    static const struct row rows[] = {
        { "p:ev vfs_read %bx", 0, LISTED("arg1=%bx"), 0 },
        { "p:ev vfs_read %r15 %flags", 0, LISTED("arg1=%r15 arg2=%flags"), 0 },
        { "p:ev vfs_read %orig_ax", 0, LISTED("arg1=%orig_ax"), 0 },
        { "p:ev vfs_read %AX", EINVAL, "Invalid register name", 14 },
        { "p:ev vfs_read a=%rax", EINVAL, "Invalid register name", 16 },
        { "p:ev vfs_read $stack $stack0", 0, LISTED("arg1=$stack arg2=$stack0"), 0 },
        { "p:ev vfs_read $stack2048", 0, LISTED("arg1=$stack2048"), 0 },
        { "p:ev vfs_read $stack2049", EINVAL, "Invalid stack number", 14 },
        { "p:ev vfs_read $stack-1", EINVAL, "Invalid $-variable specified", 14 },
        { "p:ev vfs_read $none", EINVAL, "Invalid $-variable specified", 14 },
        { "p:ev vfs_read $comm $COMM:string", 0, LISTED("arg1=$comm arg2=$COMM:string"),
          0 },
        { "p:ev vfs_read $comm:u8", EINVAL,
          "$comm and immediate-string only accepts string type", 20 },
        { "p:ev vfs_read $comm:string[2]", EINVAL,
          "$comm and immediate-string only accepts string type", 20 },
        { "p:ev vfs_read $arg1 +0($arg2):string", 0,
          LISTED("arg1=$arg1 arg2=+0($arg2):string"), 0 },
        { "p:ev vfs_read $arg0", EINVAL, "Invalid argument number", 14 },
        { "p:ev vfs_read $arg10000", EINVAL, "Invalid argument number", 14 },
        { "p:ev vfs_read $argx", EINVAL, "Invalid $-variable specified", 14 },
        { "p:ev vfs_read $arg*", EINVAL, "Invalid $-variable specified", 14 },
        { "p:ev vfs_read+4 $arg1", EINVAL,
          "$arg* can be used only on function entry or exit", 16 },
        { "r:ev vfs_read $arg1", EINVAL, "Invalid $-variable specified", 14 },
        { "r:ev vfs_read $retval", 0, "r:kprobes/ev vfs_read arg1=$retval", 0 },
        { "p:ev vfs_read $retval", EINVAL, "$retval is not available on probe", 14 },
        { "r:ev vfs_read $retval:string", EINVAL, "String accepts only memory argument",
          22 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(memory)
{
    static const struct row rows[] = {
        { "p:ev vfs_read @jiffies:u32", 0, LISTED("arg1=@jiffies:u32"), 0 },
        { "p:ev vfs_read @jiffies+8 @jiffies-8", 0,
          LISTED("arg1=@jiffies+8 arg2=@jiffies-8"), 0 },
        { "p:ev vfs_read @0xffffffff80009000", 0, LISTED("arg1=@0xffffffff80009000"), 0 },
        { "p:ev vfs_read @mod", ENOENT, "Invalid probed address or symbol", 5 },
        { "p:ev vfs_read @", ENOENT, "Invalid probed address or symbol", 5 },
        { "p:ev vfs_read @jiffies+x", EINVAL, "Failed to register probe event", 5 },
        { "p:ev vfs_read @12345678abcde", EINVAL, "Invalid memory address", 14 },
        { "p:ev vfs_read @99999999999999999999", ERANGE, "Invalid memory address", 14 },
        { "p:ev vfs_read @+10", EINVAL, "File offset is not available with kprobe", 14 },
        { "p:ev vfs_read -8(%sp)", 0, LISTED("arg1=-8(%sp)"), 0 },
        { "p:ev vfs_read +u8(%si) -u8(%si)", 0, LISTED("arg1=+u8(%si) arg2=-u8(%si)"),
          0 },
        { "p:ev vfs_read +0(%si):ustring", 0, LISTED("arg1=+0(%si):ustring"), 0 },
        { "p:ev vfs_read +0(+8(-16(%di)))", 0, LISTED("arg1=+0(+8(-16(%di)))"), 0 },
        { "p:ev vfs_read +0(\\1)", 0, LISTED("arg1=+0(\\1)"), 0 },
        { "p:ev vfs_read +0u(%di)", EINVAL, "Invalid dereference offset", 14 },
        { "p:ev vfs_read +0ab1(@0)", EINVAL, "Invalid dereference offset", 14 },
        { "p:ev vfs_read -+8(%di)", EINVAL, "Invalid dereference offset", 14 },
        { "p:ev vfs_read +0@0)", EINVAL, "Dereference needs a brace", 14 },
        { "p:ev vfs_read +0(+0(@0)", EINVAL, "Dereference brace is not closed", 22 },
        { "p:ev vfs_read +0($comm)", EINVAL, "$comm can not be dereferenced", 17 },
        { "p:ev vfs_read +0(%none)", EINVAL, "Invalid register name", 17 },
        { "p:ev vfs_read "
          "+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di))))))))))))))",
          0, LISTED("arg1=+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di))))))))))))))"),
          0 },
        { "p:ev vfs_read "
          "a=+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))))))))))",
          EINVAL, "Dereference is too much nested", 19 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(constants_and_what_is_no_argument)
{
    static const struct row rows[] = {
        { "p:ev vfs_read a=\\-1:s8 \\0x10", 0, LISTED("a=\\-1:s8 arg2=\\0x10"), 0 },
        { "p:ev vfs_read a=\\\"abc\"", 0, LISTED("a=\\\"abc\""), 0 },
        { "p:ev vfs_read a=\\\"abc\":string", 0, LISTED("a=\\\"abc\":string"), 0 },
        { "p:ev vfs_read a=\\\"abc\":u8", EINVAL,
          "$comm and immediate-string only accepts string type", 23 },
        { "p:ev vfs_read a=\\\"abcd", EINVAL, "String is not closed with '\"'", 22 },
        { "p:ev vfs_read a=\\x", EINVAL, "Invalid immediate value", 17 },
        { "p:ev vfs_read \\99999999999999999999", ERANGE, "Invalid immediate value", 15 },
        { "p:ev vfs_read 123", EINVAL, "Invalid fetch argument", 14 },
        { "p:ev vfs_read &1", EINVAL, "Invalid fetch argument", 14 },
        { "p:ev vfs_read a=b=%di", EINVAL, "Invalid fetch argument", 16 },
        { "p:ev vfs_read a =%di", EINVAL, "Invalid fetch argument", 14 },
        { "p:ev vfs_read a=", EINVAL, "No argument expression", 16 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(types)
{
    static const struct row rows[] = {
        { "p:ev vfs_read %di:u16 %di:x8 %di:char %di:symbol", 0,
          LISTED("arg1=%di:u16 arg2=%di:x8 arg3=%di:char arg4=%di:symbol"), 0 },
        { "p:ev vfs_read %di:symstr", 0, LISTED("arg1=%di:symstr"), 0 },
        { "p:ev vfs_read +u0(%di):symstr", EINVAL,
          "Symbol String doesn't accept data/userdata", 26 },
        { "p:ev vfs_read %di:int", EINVAL, "Unknown type is specified", 18 },
        { "p:ev vfs_read %di::u8", EINVAL, "Unknown type is specified", 18 },
        { "p:ev vfs_read +0(%di):nosuch", EINVAL, "Unknown type is specified", 22 },
        { "p:ev vfs_read %di:string", EINVAL, "String accepts only memory argument", 18 },
        { "p:ev vfs_read %di:u8[4]", EINVAL, "String accepts only memory argument", 18 },
        { "p:ev vfs_read +0(%di):u8[64] +0(%si):string[2]", 0,
          LISTED("arg1=+0(%di):u8[64] arg2=+0(%si):string[2]"), 0 },
        { "p:ev vfs_read +0(%di):u8[4", EINVAL, "Array is not closed", 26 },
        { "p:ev vfs_read +0(@11):u8[10]a", EINVAL, "Array has wrong suffix", 28 },
        { "p:ev vfs_read +0(@11):u8[10a]", EINVAL, "Invalid array size", 25 },
        { "p:ev vfs_read +0(@11):u8[0]", EINVAL, "Invalid array size", 25 },
        { "p:ev vfs_read +0(@11):u8[65]", EINVAL, "Array number is too big", 25 },
        { "p:ev vfs_read %di:b4@0/8 %di:b64@0/64", 0,
          LISTED("arg1=%di:b4@0/8 arg2=%di:b64@0/64"), 0 },
        { "p:ev vfs_read %di:b8@28/32", EINVAL, "Invalid bitfield", 18 },
        { "p:ev vfs_read %di:b@0/8", EINVAL, "Invalid bitfield", 18 },
        { "p:ev vfs_read %di:b10@a/16", EINVAL, "Invalid bitfield", 18 },
        { "p:ev vfs_read %di:b1@0/24", EINVAL, "Unknown type is specified", 18 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(limits_of_arguments)
{
    static const struct row rows[] = {
        { "p:ev vfs_read " S32 "=%di", 0, LISTED(S32 "=%di"), 0 },
        { "p:ev vfs_read s" S32 "=%di", EINVAL, "Argument name is too long", 14 },
        { "p:ev vfs_read =%di", EINVAL, "Argument name is not specified", 14 },
        { "p:ev vfs_read 1a=%di", EINVAL,
          "Argument name must follow the same rules as C identifiers", 14 },
        { "p:ev vfs_read a.b=%di", EINVAL,
          "Argument name must follow the same rules as C identifiers", 14 },
        { "p:ev vfs_read common_type=%di", EINVAL, "This argument name is already used",
          14 },
        { "p:ev vfs_read a=%di a=%si", EINVAL, "This argument name is already used", 20 },
        { "p:ev vfs_read %di arg1=%si", EINVAL, "This argument name is already used",
          18 },
        { "p:ev vfs_read a=\\\"" S32 S8 S8 S8 "ssss\"", 0,
          LISTED("a=\\\"" S32 S8 S8 S8 "ssss\""), 0 },
        { "p:ev vfs_read a=\\\"" S32 S8 S8 S8 "sssss\"", E2BIG,
          "Argument expression is too long", 16 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(programs_of_gdb)
{
    static const struct row rows[] = {
        { "p:ev vfs_read a=agent(26000527):u32", 0, LISTED("a=agent(26000527):u32"), 0 },
        { "p:ev vfs_read s=+8(agent(26000527)):string", 0,
          LISTED("s=+8(agent(26000527)):string"), 0 },
        { "p:ev vfs_read agent(26000527)", 0, LISTED("arg1=agent(26000527)"), 0 },
        { "p:ev vfs_read a=agent(2600052)", EINVAL, "Invalid program of gdb", 16 },
        { "p:ev vfs_read a=agent(26000527", EINVAL, "Invalid program of gdb", 16 },
        { "p:ev vfs_read a=agent()", EINVAL, "Invalid program of gdb", 16 },
        { "p:ev vfs_read a=agent(26zz0527)", EINVAL, "Invalid program of gdb", 24 },
        { "p:ev vfs_read a=agent(27)", EINVAL, "Invalid program of gdb", 16 },
        { "p:ev vfs_read a=agent(26000527):u8[3]", EINVAL,
          "String accepts only memory argument", 32 },
    };

    CHECK_ROWS(rows);
}

UNIT_TEST(programs_of_gdb_have_a_length)
{
    static char line[2 * 1024 + 4096];

    for (int i = 0; i < 2; i++) {
        size_t len = i ? 1025 : 1024; /* of the program, in bytes */

        strcpy(line, "p:ev vfs_read a=agent(2201");
        for (size_t k = 3; k < len; k++)
            strcat(line, "0e");
        strcat(line, "27)");
        CHECK_EQ(def_parse(&trace_host, line, &def, &error), i ? -EINVAL : 0);
        if (!i)
            def_free(&trace_host, def);
    }
    /* A long program does not allow more text in front of it: 200 parentheses are
     * refused. */
    strcpy(line, "p:ev vfs_read a=");
    for (int i = 0; i < 200; i++)
        strcat(line, "+0(");
    strcat(line, "agent(220127)");
    for (int i = 0; i < 200; i++)
        strcat(line, ")");
    CHECK_EQ(def_parse(&trace_host, line, &def, &error), -E2BIG);
}

UNIT_TEST(as_many_arguments_as_there_may_be)
{
    char line[1024] = "p:ev vfs_read", listed[2048];

    for (int i = 0; i < 128; i++)
        strcat(line, " %di");
    CHECK_EQ(def_parse(&trace_host, line, &def, &error), 0);
    CHECK_EQ(def->arg_count, 128);
    CHECK_EQ(def->args_size, 128 * 8);
    CHECK(def_print(def, listed, sizeof(listed)) < sizeof(listed));
    CHECK(strstr(listed, " arg128=%di"));
    def_free(&trace_host, def);

    strcat(line, " %di");
    CHECK_EQ(def_parse(&trace_host, line, &def, &error), -E2BIG);
    CHECK_EQ(error.id, TRACE_TOO_MANY_ARGS);
    CHECK_EQ(error.column, strlen("p:ev vfs_read "));
}

UNIT_TEST(return_probes_may_record_arguments_of_the_call)
{
    char line[512] = "r:ev vfs_read";

    trace_host.entry_args = true;
    CHECK_EQ(def_parse(&trace_host, "r:ev vfs_read $arg2 $retval +0($arg1):u8 $arg2",
                       &def, &error),
             0);
    CHECK_EQ(def->entry_count, 2);
    CHECK_EQ(def->entry[0], 1);
    CHECK_EQ(def->entry[1], 0);
    def_free(&trace_host, def);
    for (int i = 1; i <= FETCH_ENTRY_MAX + 1; i++)
        snprintf(line + strlen(line), 32, " $arg%d", i);
    CHECK_EQ(def_parse(&trace_host, line, &def, &error), -E2BIG);
    CHECK_STR(trace_error_text(error.id), "Too many entry arguments specified");
    trace_host.entry_args = false;
}

static struct def *parsed(const char *line)
{
    CHECK_EQ(def_parse(&trace_host, line, &def, &error), 0);
    return def;
}

static void check_append(const char *old, const char *line, const char *text,
                         unsigned column)
{
    struct def *first = parsed(old), *def = parsed(line);
    int err = def_append(def, first, line, &error);

    CHECK_EQ(err, *text ? -EEXIST : 0);
    CHECK_STR(trace_error_text(error.id), text);
    CHECK_EQ(error.column, column);
    def_free(&trace_host, first);
    def_free(&trace_host, def);
}

UNIT_TEST(an_event_of_a_watch_has_one_probe)
{
    struct def *first = parsed("w:ev w@jiffies"), *def = parsed("w:ev w@jiffies+8");

    CHECK_EQ(def_append(def, first, "w:ev w@jiffies+8", &error), -EBUSY);
    CHECK_STR(trace_error_text(error.id), "A wprobe event has one probe only");
    def_free(&trace_host, first);
    def_free(&trace_host, def);
}

UNIT_TEST(several_probes_of_one_event)
{
    check_append("p:ev vfs_read", "w:ev w@jiffies",
                 "Probe type is different from existing probe", 0);
    static const char other[] = "Argument type or name is different from existing probe";
    static const char same[] = "There is already the exact same probe event";

    check_append("p:ev vfs_read", "p:ev vfs_write", "", 0);
    check_append("p:ev vfs_read a=%di", "p:ev vfs_read a=%si", "", 0);
    check_append("p:ev vfs_read a=%di", "p:ev vfs_read a=%di", same, 0);
    check_append("p:ev vfs_read", "r:ev vfs_write",
                 "Probe type is different from existing probe", 0);
    check_append("p:ev vfs_read a=%di:u32", "p:ev vfs_write a=%di:s32", other, 15);
    check_append("p:ev vfs_read a=%di c=%si", "p:ev  vfs_write a=%di b=%si", other, 21);
    check_append("p:ev vfs_read a=%di", "p:ev vfs_write", other, 15);
    check_append("p:ev vfs_read", "p:ev vfs_write a=%di", other, 15);
    check_append("p:ev vfs_read a=%di", "p:ev vfs_write a=%di b=%si", other, 21);
    check_append("p:ev vfs_read", "p:ev vfs_read+4", "", 0);
    check_append("p:ev vfs_read", "p:ev 0xffffffff80001000", "", 0);
    check_append("p:ev 0xffffffff80001000", "p:ev vfs_read", "", 0);
    check_append("p:ev 0xffffffff80001000", "p:ev 0xffffffff80001001", "", 0);
    check_append("p:ev 0xffffffff80001000", "p:ev 0xffffffff80001000", same, 0);
}

static void check_delete(const char *line, const char *of, bool matches)
{
    struct def_delete delete;
    struct def *def = parsed(of);

    CHECK(def_is_delete(line));
    CHECK_EQ(def_delete_parse(line, &delete), 0);
    if (def_delete_matches(&delete, def) != matches)
        unit_note("%s of %s", line, of);
    CHECK(def_delete_matches(&delete, def) == matches);
    def_free(&trace_host, def);
}

UNIT_TEST(deletions)
{
    check_delete("-:wprobes/ev", "w:ev w@jiffies:8", true);
    check_delete("-:ev w@jiffies:8", "w:ev w@jiffies:8", true);
    check_delete("-:ev w@jiffies:4", "w:ev w@jiffies:8", false);
    check_delete("-:ev rw@jiffies:8", "w:ev w@jiffies:8", false);
    check_delete("-:ev w@-1:8", "w:ev w@0:8", true);
    static const char of[] = "p:grp/ev vfs_read+4 a=%di b=+0(%si):string";
    struct def_delete delete;

    check_delete("-:ev", of, true);
    check_delete("-:grp/ev", of, true);
    check_delete("-:grp/", of, true);
    check_delete("-:other/ev", of, false);
    check_delete("-:grp/e", of, false);
    check_delete("-:ev vfs_read+4", of, true);
    check_delete("-:ev vfs_read+0x4", of, false);
    check_delete("-:ev vfs_read", of, false);
    check_delete("-:ev  vfs_read+4  a=%di ", of, true);
    check_delete("-:ev vfs_read+4 a=%di b=+0(%si):string", of, true);
    check_delete("-:ev vfs_read+4 a=%di b=+0(%si):string c=%di", of, false);
    check_delete("-:ev vfs_read+4 b=+0(%si):string", of, false);
    check_delete("-:ev gone:" S64 S64 S64 S64 S64 S64 S64 S64 S64 S64 S64 "+1",
                 "p:ev gone:" S64 S64 S64 S64 S64 S64 S64 S64 S64 S64 S64 "+1", true);
    check_delete("-:ev 0xffffffff80001000", "p:ev 0xffffffff80001000", true);
    check_delete("-:ev 0xffffffff80001000", "p:ev vfs_read", false);
    CHECK_EQ(def_delete_parse("-", &delete), -EINVAL);
    CHECK_EQ(def_delete_parse("-:", &delete), -EINVAL);
    CHECK_EQ(def_delete_parse("-ev", &delete), -EINVAL);
}

UNIT_TEST(what_is_listed_can_be_read_again)
{
    static const char *const lines[] = {
        "p vfs_read+20 a=%di:u8 +0(+8(%si)):string $comm",
        "r7:grp/ev vfs_write $retval:s32",
        "p:ev 0xffffffff80001000 \\\"text\" @jiffies-8:b3@2/8",
    };
    char once[512], again[512];

    for (size_t i = 0; i < 3; i++) {
        struct def *def = parsed(lines[i]);

        def_print(def, once, sizeof(once));
        def_free(&trace_host, def);
        def = parsed(once);
        def_print(def, again, sizeof(again));
        def_free(&trace_host, def);
        CHECK_STR(again, once);
    }
}

UNIT_TEST(what_was_written_is_cut_into_lines)
{
    static const char text[] = "p:a vfs_read # why\n\n#all\np:b vfs_read#x";
    static const char *const lines[] = { "p:a vfs_read ", "", "", "p:b vfs_read" };
    const char *rest = text;
    char line[DEF_LINE_MAX];
    size_t len = strlen(text);
    int err;

    for (size_t i = 0; i < 4; i++) {
        CHECK(def_next_line(&rest, &len, line, &err));
        CHECK_STR(line, lines[i]);
    }
    CHECK(!def_next_line(&rest, &len, line, &err));
    CHECK_EQ(err, 0);
}

UNIT_TEST(lines_that_are_too_long_or_have_a_nul)
{
    static char text[2 * DEF_LINE_MAX];
    const char *rest = text;
    char line[DEF_LINE_MAX];
    size_t len = DEF_LINE_MAX - 1;
    int err;

    memset(text, 'x', sizeof(text));
    text[DEF_LINE_MAX - 2] = '\n';
    CHECK(def_next_line(&rest, &len, line, &err));
    CHECK_EQ(strlen(line), DEF_LINE_MAX - 2);
    CHECK_EQ(len, 0);

    text[DEF_LINE_MAX - 2] = 'x';
    text[DEF_LINE_MAX - 1] = '\n';
    rest = text;
    len = DEF_LINE_MAX;
    CHECK(!def_next_line(&rest, &len, line, &err));
    CHECK_EQ(err, -EINVAL);

    rest = "p:ev\0vfs_read";
    len = 13;
    CHECK(!def_next_line(&rest, &len, line, &err));
    CHECK_EQ(err, -EINVAL);
}

static void check_refused(int err, const char *text)
{
    def_refused("p:ev  vfs_read+3 %di", err, &error);
    CHECK_EQ(error.err, err);
    CHECK_STR(trace_error_text(error.id), text);
    CHECK_EQ(error.column, 5);
}

UNIT_TEST(refusals_of_the_engine_are_told_at_the_place)
{
    check_refused(-EILSEQ, "Probe point is not an instruction boundary");
    check_refused(-ENOENT, "Invalid probed address or symbol");
    check_refused(-EINVAL, "Failed to register probe event");
    check_refused(-EPERM, "Failed to register probe event");
    check_refused(-ENOMEM, "");
}

UNIT_TEST(without_memory_nothing_is_left)
{
    long before = trace_host_blocks();

    trace_host_fail_after(1);
    CHECK_EQ(def_parse(&trace_host, "p:ev vfs_read %di", &def, &error), -ENOMEM);
    CHECK_STR(trace_error_text(error.id), "");
    CHECK(!def);
    CHECK_EQ(trace_host_blocks(), before);
    CHECK_EQ(def_parse(&trace_host, "p:ev vfs_read %none", &def, &error), -EINVAL);
    CHECK_EQ(trace_host_blocks(), before);
}

UNIT_TESTS()
