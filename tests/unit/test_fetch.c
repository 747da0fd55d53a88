/* test_fetch.c - tests of probes/trace/fetch: fetch arguments are read from registers and
 * memory of the test, and the record is checked.
 */
#include "probes/trace/language/fetch.h"

#include "tests/unit/trace_host.h"
#include "tests/unit/unit.h"

#define HEAD 16 /* bytes in front of the arguments, as in a record of a probe */
#define MEMORY 0x10000ul
#define PAGE 4096
#define RECORD_ROOM 16384

/* Two readable pages. The pages in front of them and behind them cannot be read. */
static uint8_t memory[2 * PAGE];
static unsigned reads;
static bool last_user;

static int read_memory(void *dst, uintptr_t addr, size_t len, bool user)
{
    reads++;
    last_user = user;
    if (addr < MEMORY || addr + len > MEMORY + sizeof(memory) || addr + len < addr)
        return -EFAULT;
    memcpy(dst, memory + (addr - MEMORY), len);
    return 0;
}

static size_t symbol_text(char *buf, size_t size, uintptr_t addr)
{
    if (addr - VFS_READ >= 0x90)
        return 0;
    return (size_t)snprintf(buf, size, "vfs_read+0x%lx/0x90", addr - VFS_READ);
}

static struct pt_regs regs;
static uint8_t record[RECORD_ROOM];
static struct fetch_from from = { .regs = &regs, .comm = "init", .read = read_memory };
static struct fetch_to to;
static struct def *def;

static void put(size_t at, uint64_t word)
{
    memcpy(memory + at, &word, sizeof(word));
}

/* define - parse @line into `def`, and free the definition of the previous line. */
static void define(const char *line)
{
    struct trace_error error;

    if (def)
        def_free(&trace_host, def);
    CHECK_EQ(def_parse(&trace_host, line, &def, &error), 0);
}

/* run_in - fetch the arguments of @line into a record with @room bytes for strings. */
static void run_in(const char *line, size_t room)
{
    char whole[512];

    snprintf(whole, sizeof(whole), "%s", line);
    define(whole);
    memset(record, 0xee, sizeof(record));
    to.record = record;
    to.size = HEAD + def->args_size + room;
    fetch_args(def->args, def->arg_count, HEAD, &from, &to);
    CHECK(to.used <= to.size);
    for (size_t i = 0; i < HEAD; i++)
        CHECK(record[i] == 0xee);
    for (size_t i = to.size; i < sizeof(record); i++)
        CHECK(record[i] == 0xee);
}

static void run(const char *args)
{
    char line[512];

    snprintf(line, sizeof(line), "p:ev vfs_read %s", args);
    run_in(line, RECORD_ROOM / 2);
}

/* number - return element @element of argument @i, sign-extended if its type is
 * signed.
 */
static int64_t number(unsigned i, unsigned element)
{
    const struct fetch_arg *arg = &def->args[i];
    uint64_t value = 0;
    unsigned unused = 64 - 8u * arg->type->size;

    memcpy(&value, record + HEAD + arg->offset + element * arg->type->size,
           arg->type->size);
    if (arg->type->kind == FETCH_SIGNED)
        return (int64_t)(value << unused) >> unused;
    return (int64_t)value;
}

/* text - return string @element of argument @i; NULL: it could not be read. */
static const char *text(unsigned i, unsigned element)
{
    uint32_t word;

    memcpy(&word, record + HEAD + def->args[i].offset + 4 * element, sizeof(word));
    if (!(word >> 16))
        return NULL;
    CHECK((word & 0xffff) >= HEAD + def->args_size);
    CHECK((word & 0xffff) + (word >> 16) <= to.used);
    CHECK(!record[(word & 0xffff) + (word >> 16) - 1]);
    return (const char *)record + (word & 0xffff);
}

static void check_number(const char *args, int64_t want)
{
    run(args);
    if (number(0, 0) != want)
        unit_note("%s", args);
    CHECK_EQ(number(0, 0), want);
    CHECK_EQ(to.faults, 0);
    CHECK_EQ(to.used, HEAD + def->args_size);
}

static void check_text(const char *args, const char *want)
{
    const char *got;

    run(args);
    got = text(0, 0);
    CHECK_STR(got ? got : "(fault)", want);
    CHECK_EQ(to.faults, !got);
}

UNIT_TEST(each_register_by_its_name)
{
    static const struct {
        const char *name;
        unsigned long *reg;
    } rows[] = {
        { "%ax", &regs.ax },           { "%bx", &regs.bx },       { "%cx", &regs.cx },
        { "%dx", &regs.dx },           { "%si", &regs.si },       { "%di", &regs.di },
        { "%bp", &regs.bp },           { "%sp", &regs.sp },       { "%r8", &regs.r8 },
        { "%r9", &regs.r9 },           { "%r10", &regs.r10 },     { "%r11", &regs.r11 },
        { "%r12", &regs.r12 },         { "%r13", &regs.r13 },     { "%r14", &regs.r14 },
        { "%r15", &regs.r15 },         { "%ip", &regs.ip },       { "%cs", &regs.cs },
        { "%ss", &regs.ss },           { "%flags", &regs.flags }, { "$stack", &regs.sp },
        { "%orig_ax", &regs.orig_ax }, { "$arg1", &regs.di },     { "$arg2", &regs.si },
        { "$arg3", &regs.dx },         { "$arg4", &regs.cx },     { "$arg5", &regs.r8 },
        { "$arg6", &regs.r9 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        memset(&regs, 0x11, sizeof(regs));
        *rows[i].reg = 0x123456789abcdef0ul + i;
        check_number(rows[i].name, (int64_t)(0x123456789abcdef0ul + i));
    }
}

UNIT_TEST(the_stack)
{
    regs.sp = MEMORY + 64;
    for (size_t i = 0; i < 32; i++)
        put(64 + 8 * i, 0x1000 + i);
    check_number("$stack0", 0x1000);
    check_number("$stack5", 0x1005);
    check_number("$arg7", 0x1001);
    check_number("$arg9", 0x1003);
    check_number("-8($stack)", 0);
    regs.sp = MEMORY + sizeof(memory);
    run("$stack0 \\7");
    CHECK_EQ(to.faults, 1);
    CHECK_EQ(number(0, 0), 0);
    CHECK_EQ(number(1, 0), 7);
}

/* A value with its type, and the number in the record. */
UNIT_TEST(types_cut_values)
{
    static const struct {
        const char *args;
        int64_t want;
    } rows[] = {
        { "\\-1:u8", 255 },
        { "\\-1:s8", -1 },
        { "\\255:s16", 255 },
        { "\\65535:u8", 255 },
        { "\\65535:s64", 65535 },
        { "\\0x8000:x8", 0 },
        { "\\0x8000:s32", 32768 },
        { "\\4294967295", 0xffffffff },
        { "\\4294967295:s16", -1 },
        { "\\0x80000000:s8", 0 },
        { "\\0x80000000:u32", 2147483648 },
        { "\\-2147483649:u16", 65535 },
        { "\\-2147483649:x32", 0x7fffffff },
        { "\\0x123456789abcdef0:u8", 240 },
        { "\\0x123456789abcdef0:s64", 1311768467463790320 },
        { "\\18446744073709551615:s32", -1 },
        { "\\0x41:char", 'A' },
        { "\\+17", 17 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_number(rows[i].args, rows[i].want);
}

UNIT_TEST(bit_fields)
{
    check_number("\\0xa5:b4@0/8", 5);
    check_number("\\0xa5:b3@2/8", 1);
    check_number("\\0xa5:b8@0/8", 0xa5);
    check_number("\\0x12345678:b1@31/32", 0);
    check_number("\\0x12345678:b4@28/32", 1);
    check_number("\\-1:b33@5/64", 8589934591);
    check_number("\\-1:b64@0/64", -1);
    check_number("\\-1:b1@63/64", 1);
}

UNIT_TEST(memory_through_pointers)
{
    put(0x100, MEMORY + 0x200);
    put(0x210, MEMORY + 0x300);
    put(0x308, 0x8877665544332211);
    regs.di = MEMORY + 0x100;
    check_number("+8(+0x10(+0(%di)))", (int64_t)0x8877665544332211);
    check_number("+8(+0x10(+0(%di))):u16", 0x2211);
    check_number("+12(+0x10(+0(%di))):s32", (int32_t)0x88776655);
    check_number("-8(+0x10(+0(%di))):u8", 0);
    check_number("@0x10308:u32", 0x44332211);
    check_number("+0(\\0x10308):b4@4/8", 1);
    check_number("+u8(+0x10(+0(%di))):u8", 0x11);
    CHECK(last_user);
    check_number("+8(+0x10(+0(%di))):u8", 0x11);
    CHECK(!last_user);
}

UNIT_TEST(what_cannot_be_read_is_zero_and_counted)
{
    regs.di = 0xdead00000000ul;
    regs.si = 77;
    run("+0(%di) +8(+0(%di)):u16 +0(%di):b3@1/8 %si +0(%di):string");
    CHECK_EQ(to.faults, 4);
    CHECK_EQ(number(0, 0), 0);
    CHECK_EQ(number(1, 0), 0);
    CHECK_EQ(number(2, 0), 0);
    CHECK_EQ(number(3, 0), 77);
    CHECK(!text(4, 0));
    CHECK_EQ(to.cut, 0);
    CHECK_EQ(to.used, HEAD + def->args_size);
}

UNIT_TEST(an_array_that_ends_in_nothing)
{
    memset(memory + sizeof(memory) - 4, 9, 4);
    regs.si = MEMORY + sizeof(memory) - 4;
    run("+0(%si):u16[4]");
    CHECK_EQ(number(0, 1), 0x0909);
    CHECK_EQ(number(0, 2), 0);
    CHECK_EQ(to.faults, 2);
}

UNIT_TEST(strings)
{
    strcpy((char *)memory + 0x500, "a file");
    memory[0x520] = '\0';
    put(0x540, MEMORY + 0x500);
    regs.si = MEMORY + 0x500;
    check_text("+0(%si):string", "a file");
    check_text("+2(%si):string", "file");
    check_text("+0x20(%si):string", "");
    check_text("+0(+0x40(%si)):string", "a file");
    check_text("+0(%si):ustring", "a file");
    CHECK(last_user);
    check_text("+u0(%si):string", "a file");
    CHECK(last_user);
    check_text("\\0x10500:string", "a file");
    check_text("$comm", "init");
    check_text("\\\"text\"", "text");
    check_text("\\\"\"", "");
    check_text("%si:symstr", "0x10500");
    from.symbol = symbol_text;
    check_text("%si:symstr", "0x10500");
    regs.di = 0;
    check_text("%di:symstr", "0x0");
    regs.di = UINT64_MAX;
    check_text("%di:symstr", "0xffffffffffffffff");
    regs.di = VFS_READ + 8;
    check_text("%di:symstr", "vfs_read+0x8/0x90");
    from.symbol = NULL;
    run("+0(%si):string %si $comm +2(%si):string");
    CHECK_STR(text(0, 0), "a file");
    CHECK_STR(text(2, 0), "init");
    CHECK_STR(text(3, 0), "file");
    CHECK_EQ(to.used, HEAD + def->args_size + 7 + 5 + 5);
    CHECK_EQ(fetch_strings_size(def->args, def->arg_count, &from), 7 + 5 + 5);
}

UNIT_TEST(arrays_of_strings)
{
    strcpy((char *)memory + 0x600, "one");
    strcpy((char *)memory + 0x610, "three");
    put(0x680, MEMORY + 0x600);
    put(0x688, 1);
    put(0x690, MEMORY + 0x610);
    regs.si = MEMORY + 0x680;
    run("%si +0(%si):string[3]");
    CHECK_EQ(def->args_size, 8 + 3 * 4);
    CHECK_STR(text(1, 0), "one");
    CHECK(!text(1, 1));
    CHECK_STR(text(1, 2), "three");
    CHECK_EQ(to.faults, 1);
    CHECK_EQ(fetch_strings_size(def->args, def->arg_count, &from), 4 + 6);
    regs.si = 1;
    run("+0(%si):string[2]");
    CHECK_EQ(to.faults, 2);
}

UNIT_TEST(a_string_without_an_end_is_cut)
{
    memset(memory, 'x', sizeof(memory));
    regs.si = MEMORY + 8;
    run("+0(%si):string");
    CHECK_EQ(strlen(text(0, 0)), FETCH_STRING_MAX - 1);
    CHECK_EQ(to.cut, 1);
    CHECK_EQ(to.faults, 0);
    CHECK_EQ(fetch_strings_size(def->args, def->arg_count, &from), FETCH_STRING_MAX);
}

UNIT_TEST(a_string_may_end_with_the_last_byte_that_can_be_read)
{
    memset(memory, 'x', sizeof(memory));
    for (size_t len = 1; len < 40; len++) {
        memory[sizeof(memory) - 1] = '\0';
        regs.si = MEMORY + sizeof(memory) - len;
        run("+0(%si):string");
        CHECK_EQ(text(0, 0) ? strlen(text(0, 0)) : SIZE_MAX, len - 1);
        memory[sizeof(memory) - 1] = 'x';
        run("+0(%si):string");
        CHECK(!text(0, 0));
        CHECK_EQ(to.faults, 1);
    }
}

UNIT_TEST(strings_keep_to_the_room_there_is)
{
    strcpy((char *)memory, "0123456789012345678901234567890123456789");
    regs.si = MEMORY;
    for (size_t room = 0; room < 44; room++) {
        run_in("p:ev vfs_read +0(%si):string $comm", room);
        CHECK_EQ(to.cut, room < 41 ? 2 : 1);
        if (!room) {
            CHECK(!text(0, 0));
        } else {
            size_t want = room < 41 ? room - 1 : 40;

            CHECK_EQ(strlen(text(0, 0)), want);
        }
        CHECK_EQ(to.faults, 0);
    }
}

/* A hit reserves room only for strings that it can read. So without room, a string that
 * cannot be read is a fault, and not a string that was cut.
 */
UNIT_TEST(without_room_a_string_that_cannot_be_read_is_a_fault)
{
    regs.si = 1;
    for (size_t room = 0; room < 20; room++) {
        run_in("p:ev vfs_read +0(%si):string", room);
        CHECK(!text(0, 0));
        CHECK_EQ(to.faults, 1);
        CHECK_EQ(to.cut, 0);
    }
    memory[0] = '\0';
    regs.si = MEMORY;
    run_in("p:ev vfs_read +0(%si):string", 0);
    CHECK_EQ(to.faults, 0);
    CHECK_EQ(to.cut, 1);
}

UNIT_TEST(return_values_and_what_was_saved_at_the_entry)
{
    uint64_t saved[FETCH_ENTRY_MAX];

    trace_host.entry_args = true;
    regs = (struct pt_regs){ .di = 1, .si = MEMORY + 0x10, .ax = 99 };
    strcpy((char *)memory + 0x10, "name");
    define("r:ev vfs_read $retval $arg1 +0($arg2):string");
    fetch_entry(def->entry, def->entry_count, &from, saved);
    regs = (struct pt_regs){ .ax = 5 };
    from.entry = saved;
    run_in("r:ev vfs_read $retval $arg1 +0($arg2):string", 64);
    CHECK_EQ(number(0, 0), 5);
    CHECK_EQ(number(1, 0), 1);
    CHECK_STR(text(2, 0), "name");
    from.entry = NULL;
    run_in("r:ev vfs_read $retval $arg1 +0($arg2):string", 64);
    CHECK_EQ(to.faults, 2);
    trace_host.entry_args = false;
}

UNIT_TEST(how_long_a_call_took)
{
    uint64_t saved[FETCH_ENTRY_MAX] = { 0 };

    trace_host.entry_args = true;
    define("r:ev vfs_read $ns:u64");
    from.time = 1000;
    fetch_entry(def->entry, def->entry_count, &from, saved);
    from.time = 1007;
    from.entry = saved;
    run_in("r:ev vfs_read $ns:u64", 64);
    CHECK_EQ(number(0, 0), 7);
    CHECK_EQ(to.faults, 0);
    from.entry = NULL;
    run_in("r:ev vfs_read $ns:u64", 64);
    CHECK_EQ(to.faults, 1);
    trace_host.entry_args = false;
}

static int depth(uintptr_t function)
{
    return function == VFS_READ ? -1 : 5;
}

UNIT_TEST(how_deep_a_call_is)
{
    trace_host.entry_args = true;
    from.depth = depth;
    run_in("r:ev vfs_read $depth(vfs_read):s32 $depth(0x1234):u8", 64);
    CHECK_EQ((int32_t)number(0, 0), -1);
    CHECK_EQ(number(1, 0), 5);
    from.depth = NULL;
    run_in("r:ev vfs_read $depth(vfs_read)", 64);
    CHECK_EQ(to.faults, 1);
    trace_host.entry_args = false;
}

UNIT_TEST(programs_of_gdb)
{
    regs.di = MEMORY + 16;
    put(16, 0x123456789a);
    put(24, 0);
    from.ip = VFS_READ + 4;
    run("a=agent(26000527) b=agent(2600051a27):u32 c=agent(26001027)");
    CHECK_EQ(number(0, 0), MEMORY + 16);
    CHECK_EQ(number(1, 0), 0x3456789a);
    CHECK_EQ(number(2, 0), VFS_READ + 4);
    CHECK_EQ(to.faults, 0);
    strcpy((char *)memory + 64, "a name");
    regs.si = MEMORY + 60;
    run("s=+4(agent(26000427)):string t=agent(26000527) u=%di");
    CHECK_STR(text(0, 0), "a name");
    CHECK_EQ(number(1, 0), number(2, 0));
    CHECK_EQ(to.faults, 0);
}

UNIT_TEST(programs_of_gdb_that_fail_are_zero_and_counted)
{
    regs.di = MEMORY + 24;
    put(24, 0);
    /* a: 1 / 0. b: 1 / *di, which is 0. c: *0. s: the string at the address *0. */
    run("a=agent(220122000527) b=agent(22012600051a0527) c=agent(22001a27) "
        "s=+0(agent(22001a27)):string d=agent(26000527)");
    CHECK_EQ(number(0, 0), 0);
    CHECK_EQ(number(1, 0), 0);
    CHECK_EQ(number(2, 0), 0);
    CHECK(text(3, 0) == NULL);
    CHECK_EQ(number(4, 0), MEMORY + 24);
    CHECK_EQ(to.faults, 4);
}

UNIT_TEST(a_watch_has_an_address_and_what_is_there)
{
    put(0, 0x1122334455667788);
    put(8, 99);
    from.watched = MEMORY;
    run_in("w:ev rw@-1:8 $addr $value $value:u8 +8($addr)", 0);
    CHECK_EQ((uint64_t)number(0, 0), MEMORY);
    CHECK_EQ(number(1, 0), 0x1122334455667788);
    CHECK_EQ(number(2, 0), 0x88);
    CHECK_EQ(number(3, 0), 99);
    from.watched = 0;
}

UNIT_TESTS()
