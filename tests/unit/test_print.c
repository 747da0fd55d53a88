/* test_print.c - tests of the lines that show records, and of the texts that describe
 * events: both are as on Linux.
 */
#include "probes/trace/ring/format.h"
#include "probes/trace/ring/page_merge.h"
#include "probes/trace/ring/print.h"
#include "tests/unit/ring_memory.h"
#include "tests/unit/unit.h"

static char said[65536];
static size_t said_len;

static void say(void *to UNUSED, const char *text, size_t len)
{
    memcpy(said + said_len, text, len);
    said_len += len;
    said[said_len] = '\0';
}

static size_t symbol(char *buf, size_t size, uintptr_t addr)
{
    if (addr < 0x1000 || addr >= 0x2000)
        return 0;
    if (addr >= 0x1090)
        return (size_t)snprintf(buf, size, "vfs_write+0x%lx/0x80", addr - 0x1090);
    return (size_t)snprintf(buf, size, "vfs_read+0x%lx/0x90", addr - 0x1000);
}

static bool comm(int pid, char *buf)
{
    if (pid != 7)
        return false;
    strcpy(buf, "init");
    return true;
}

static const struct print print = { .write = say, .symbol = symbol, .comm = comm };

static void quiet(void)
{
    said_len = 0;
    said[0] = '\0';
}

/* ---- arguments ---- */

static const struct fetch_type u8_type = { "u8", "u8", 1, FETCH_UNSIGNED },
                               s16_type = { "s16", "s16", 2, FETCH_SIGNED },
                               x32_type = { "x32", "u32", 4, FETCH_HEX },
                               x64_type = { "x64", "u64", 8, FETCH_HEX },
                               s64_type = { "s64", "s64", 8, FETCH_SIGNED },
                               char_type = { "char", "u8", 1, FETCH_CHAR },
                               symbol_type = { "symbol", "u64", 8, FETCH_SYMBOL },
                               string_type = { "string", "__data_loc char[]", 4,
                                               FETCH_STRING };

static struct fetch_arg args[] = {
    { .name = "a", .type = &u8_type, .offset = 0 },
    { .name = "b", .type = &s16_type, .offset = 1 },
    { .name = "c", .type = &x32_type, .offset = 3 },
    { .name = "d", .type = &char_type, .offset = 7 },
    { .name = "e", .type = &symbol_type, .offset = 8 },
    { .name = "s", .type = &string_type, .offset = 16 },
    { .name = "v", .type = &s16_type, .offset = 20, .count = 3 },
    { .name = "t", .type = &string_type, .offset = 26, .count = 2 },
};

static struct event probe = { .id = 300,
                              .group = "kprobes",
                              .name = "ev",
                              .shape = EVENT_PROBE,
                              .arg_count = 8,
                              .args = args };

/* record - make a record of `probe`. The string "hello" is in s and in t; the second
 * string of t could not be read.
 */
static size_t record(uint8_t *out)
{
    static const uint8_t values[] = { 255,  0xfe, 0xff, 0xef, 0xbe, 0,    0, 'x', 0x04,
                                      0x10, 0,    0,    0,    0,    0,    0, 50,  0,
                                      6,    0,    1,    0,    0xff, 0xff, 3, 0,   50,
                                      0,    6,    0,    0,    0,    0,    0 };
    struct record_probe head = { { 300, RECORD_IRQS_OFF, 1, 7 }, 0x1000 };

    memcpy(out, &head, 16);
    memcpy(out + 16, values, sizeof(values));
    memcpy(out + 50, "hello", 6);
    return 56;
}

UNIT_TEST(a_probe_is_a_line)
{
    uint8_t bytes[64];
    size_t len = record(bytes);

    print_record(&print, &probe, 3, 1234567890499, bytes, len);
    CHECK_STR(said, "            init-7       [003] d..1.  1234.567890: ev: "
                    "(vfs_read+0x0/0x90) a=255 b=-2 c=0xbeef d='x' e=vfs_read+0x4/0x90 "
                    "s=\"hello\" v={1,-1,3} t={\"hello\",(fault)}\n");
}

UNIT_TEST(a_string_does_not_leave_its_record)
{
    uint8_t bytes[64];
    size_t len = record(bytes);

    print_args(&print, args + 5, 1, bytes, 16, len - 1);
    CHECK_STR(said, " s=(fault)");
}

UNIT_TEST(a_return_names_the_function_last)
{
    struct record_return r = { { 301, RECORD_HARDIRQ | RECORD_NMI, 0x21, 0 },
                               0x1000,
                               0x1005 };
    struct event event = { .name = "out", .shape = EVENT_RETURN };

    print_record(&print, &event, 0, 1000500, &r, sizeof(r));
    CHECK_STR(said, "          <idle>-0       [000] ..Z12     0.001001: out: "
                    "(vfs_read+0x5/0x90 <- vfs_read)\n");
}

UNIT_TEST(places_may_have_the_first_tracers_style)
{
    struct record_probe r = { { 302, 0, 0, 9 }, 0x1005 };
    struct record_return back = { { 301, 0, 0, 9 }, 0x1000, 0x1005 };
    struct event event = { .name = "in", .shape = EVENT_PROBE };
    struct event out = { .name = "out", .shape = EVENT_RETURN };
    struct print classic = print;

    classic.brief = classic.classic = true;
    quiet();
    print_record(&classic, &event, 0, 0, &r, sizeof(r));
    CHECK_STR(said, "vfs_read: @vfs_read+0x5\n");
    quiet();
    print_record(&classic, &out, 0, 0, &back, sizeof(back));
    CHECK_STR(said, "vfs_read: <-vfs_read+0x0\n");
}

UNIT_TEST(what_is_unknown_is_shown_as_a_number)
{
    struct record_probe r = { { 302, RECORD_NEED_RESCHED, 0, 9 }, 0xdead };
    struct event event = { .name = "e", .shape = EVENT_PROBE };

    quiet();
    print_record(&print, &event, 0, 0, &r, sizeof(r));
    CHECK_STR(said, "           <...>-9       [000] .n...     0.000000: e: (0xdead)\n");
    quiet();
    print_record(&print, NULL, 0, 0, &r, sizeof(r));
    CHECK_STR(said,
              "           <...>-9       [000] .n...     0.000000: Unknown type 302\n");
}

UNIT_TEST(a_marker_is_its_text)
{
    struct {
        struct record_text r;
        char more[16];
    } bytes = { { { EVENT_ID_PRINT, 0, 0, 7 }, 0x1000 }, "" };

    memcpy(bytes.r.text, "hello\n", 7);
    quiet();
    print_record(&print, &event_print, 1, 5000, &bytes, sizeof(bytes));
    CHECK_STR(said,
              "            init-7       [001] .....     0.000005: vfs_read: hello\n");
}

UNIT_TEST(options_leave_out)
{
    struct record_probe r = { { 302, 0, 0, 7 }, 0x1000 };
    struct event event = { .name = "e", .shape = EVENT_PROBE };
    struct print p = print;

    quiet();
    p.no_irq_info = true;
    p.cycles = true;
    print_record(&p, &event, 0, 77, &r, sizeof(r));
    p.brief = true;
    print_record(&p, &event, 0, 77, &r, sizeof(r));
    CHECK_STR(said,
              "            init-7       [000]            77: e: (vfs_read+0x0/0x90)\n"
              "e: (vfs_read+0x0/0x90)\n");
    quiet();
    p.addresses = true;
    print_record(&p, &event, 0, 77, &r, sizeof(r));
    CHECK_STR(said, "e: (vfs_read+0x0/0x90 <0000000000001000>)\n");
}

/* The last caller has ended with a call that does not return. */
UNIT_TEST(stacks_have_offsets_if_wanted)
{
    struct {
        struct record_stack r;
        uint64_t caller[3];
    } bytes = { { { EVENT_ID_STACK, 0, 0, 7 }, 3, 0 }, { 0x1000, 0x1005, 0x1090 } };
    struct print p = print;

    quiet();
    p.brief = true;
    print_record(&p, &event_stack, 1, 0, &bytes, sizeof(bytes));
    p.offsets = true;
    print_record(&p, &event_stack, 1, 0, &bytes, sizeof(bytes));
    CHECK_STR(said, "<stack trace>\n => vfs_read\n => vfs_read\n => vfs_read\n"
                    "<stack trace>\n => vfs_read+0x0/0x90\n => vfs_read+0x5/0x90\n"
                    " => vfs_read+0x90/0x90\n");
    for (bytes.r.size = 2; bytes.r.size <= 4; bytes.r.size += 2) {
        quiet();
        print_record(&p, &event_stack, 1, 0, &bytes, sizeof(bytes));
        CHECK_STR(said, bytes.r.size == 2 ? "<stack trace>\n => vfs_read+0x0/0x90\n"
                                            " => vfs_read+0x5/0x90\n"
                                          : "<stack trace>\n => vfs_read+0x0/0x90\n"
                                            " => vfs_read+0x5/0x90\n"
                                            " => vfs_read+0x90/0x90\n");
    }
}

UNIT_TEST(the_header_is_linuxs)
{
    print_header(&print, "nop", 12, 34, 2);
    CHECK_STR(said, "# tracer: nop\n"
                    "#\n"
                    "# entries-in-buffer/entries-written: 12/34   #P:2\n"
                    "#\n"
                    "#                                _-----=> irqs-off/BH-disabled\n"
                    "#                               / _----=> need-resched\n"
                    "#                              | / _---=> hardirq/softirq\n"
                    "#                              || / _--=> preempt-depth\n"
                    "#                              ||| / _-=> migrate-disable\n"
                    "#                              |||| /     delay\n"
                    "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
                    "#              | |         |   |||||     |         |\n");
}

UNIT_TEST(losses_have_a_line)
{
    print_lost(&print, 2, 0);
    print_lost(&print, 2, 17);
    print_lost(&print, 2, PAGE_MISSED_SOME);
    CHECK_STR(said, "CPU:2 [LOST 17 EVENTS]\nCPU:2 [LOST EVENTS]\n");
}

/* ---- descriptions ---- */

#define COMMON                                                                           \
    "format:\n"                                                                          \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"               \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"               \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"       \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

UNIT_TEST(formats_are_linuxs)
{
    format_event(&print, &probe);
    CHECK_STR(said, "name: ev\nID: 300\n" COMMON
                    "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
                    "\tfield:u8 a;\toffset:16;\tsize:1;\tsigned:0;\n"
                    "\tfield:s16 b;\toffset:17;\tsize:2;\tsigned:1;\n"
                    "\tfield:u32 c;\toffset:19;\tsize:4;\tsigned:0;\n"
                    "\tfield:u8 d;\toffset:23;\tsize:1;\tsigned:0;\n"
                    "\tfield:u64 e;\toffset:24;\tsize:8;\tsigned:0;\n"
                    "\tfield:__data_loc char[] s;\toffset:32;\tsize:4;\tsigned:1;\n"
                    "\tfield:s16 v[];\toffset:36;\tsize:6;\tsigned:1;\n"
                    "\tfield:__data_loc char[][2] t;\toffset:42;\tsize:8;\tsigned:1;\n\n"
                    "print fmt: \"(%lx) a=%u b=%d c=0x%x d='%c' e=%pS s=\\\"%s\\\" "
                    "v={%d,%d,%d} t={\\\"%s\\\",\\\"%s\\\"}\", REC->__probe_ip, REC->a, "
                    "REC->b, REC->c, REC->d, REC->e, __get_str(s), REC->v[0], REC->v[1], "
                    "REC->v[2], __get_str(t[0]), __get_str(t[1])\n");
}

UNIT_TEST(a_return_has_two_addresses)
{
    struct fetch_arg two[] = { { .name = "x", .type = &x64_type },
                               { .name = "y", .type = &s64_type, .offset = 8 } };
    struct event event = {
        .id = 9, .name = "r", .shape = EVENT_RETURN, .arg_count = 2, .args = two
    };

    format_event(&print, &event);
    CHECK_STR(said,
              "name: r\nID: 9\n" COMMON
              "\tfield:unsigned long __probe_func;\toffset:8;\tsize:8;\tsigned:0;\n"
              "\tfield:unsigned long __probe_ret_ip;\toffset:16;\tsize:8;\tsigned:0;\n"
              "\tfield:u64 x;\toffset:24;\tsize:8;\tsigned:0;\n"
              "\tfield:s64 y;\toffset:32;\tsize:8;\tsigned:1;\n\n"
              "print fmt: \"(%lx <- %lx) x=0x%Lx y=%Ld\", REC->__probe_func, "
              "REC->__probe_ret_ip, REC->x, REC->y\n");
}

UNIT_TEST(pages_are_described)
{
    format_page(&print);
    CHECK_STR(said, "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
                    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
                    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n");
}

/* ---- numbers of events ---- */

UNIT_TEST(each_of_many_has_its_number)
{
    static struct event many[600];
    struct record_head head = { 0 };
    unsigned wrong = 0;

    for (unsigned i = 0; i < ARRAY_LEN(many); i++)
        wrong += event_add(&many[i], 0) != 0;
    for (unsigned i = 0; i < ARRAY_LEN(many); i += 3)
        event_remove(&many[i]);
    for (unsigned i = 0; i < ARRAY_LEN(many); i++) {
        head.type = many[i].id;
        wrong += event_of(&head, 16, 1) != (i % 3 ? &many[i] : NULL);
    }
    CHECK_EQ(wrong, 0);
    for (unsigned i = 0; i < ARRAY_LEN(many); i++)
        if (i % 3)
            event_remove(&many[i]);
}

UNIT_TEST(a_number_is_given_again_after_all_others)
{
    struct event first = { .name = "first" }, second = { .name = "second" }, many = { 0 };
    struct record_head head = { 0 };
    int others = 0;

    CHECK_EQ(event_add(&first, 10), 0);
    head.type = first.id;
    CHECK(!event_of(&head, sizeof(head), 10));
    CHECK(event_of(&head, 16, 10) == &first);
    CHECK(!event_of(&head, 16, 9));
    CHECK_EQ(event_add(&second, 20), 0);
    CHECK(second.id != first.id);
    event_remove(&first);
    CHECK(!event_of(&head, 16, 30));
    do {
        CHECK_EQ(event_add(&many, 40), 0);
        CHECK(many.id != second.id);
        event_remove(&many);
        others++;
    } while (many.id != head.type);
    CHECK_EQ(others, EVENT_ID_LAST - EVENT_ID_FIRST);
    CHECK(!event_of(&head, 16, 30));
    event_remove(&second);
    head.type = EVENT_ID_PRINT;
    CHECK(event_of(&head, 16, 0) == &event_print);
}

UNIT_TEST(a_record_too_short_for_its_event_is_none)
{
    struct record_head head = { 0 };

    CHECK_EQ(event_add(&probe, 0), 0);
    head.type = probe.id;
    CHECK(event_of(&head, 50, 0) == &probe);
    CHECK(!event_of(&head, 49, 0));
    event_remove(&probe);
}

/* ---- several rings as one ---- */

static uint64_t now = 1;

static uint64_t clock_now(void)
{
    return now++;
}

static const struct ring_ops ops = { clock_now, host_page_new, host_page_free,
                                     host_block_new, free };

#define RINGS 3

static void merge_of(struct merge_ring *rings, enum merge_how how, uint64_t want)
{
    uint64_t last = 0, seen = 0, missed = 0;
    struct merge m;
    struct merged one;

    for (merge_init(&m, rings, RINGS, how); merge_next(&m, &one); seen++) {
        uint32_t ring;

        memcpy(&ring, one.event.data, 4);
        CHECK_EQ(ring, one.ring);
        CHECK(one.event.time > last);
        last = one.event.time;
        missed += one.missed;
    }
    CHECK_EQ(seen + missed, want);
}

UNIT_TEST(rings_are_merged_by_time)
{
    struct merge_ring rings[RINGS] = { 0 };

    for (unsigned i = 0; i < RINGS - 1; i++) {
        rings[i].ring = ring_new(4 + 20 * i, true, &ops);
        rings[i].page = host_page_new();
    }
    for (int i = 0; i < 10000; i++) {
        uint32_t ring = unit_random() % (RINGS - 1),
                 *to = ring_write(rings[ring].ring, 8);

        *to = ring;
        ring_commit(rings[ring].ring);
    }
    merge_of(rings, MERGE_LOOK, 10000);
    merge_of(rings, MERGE_TAKE, 10000);
    merge_of(rings, MERGE_TAKE, 0);
    for (unsigned i = 0; i < RINGS - 1; i++) {
        ring_free(rings[i].ring);
        host_page_free(rings[i].page);
    }
}

UNIT_TESTS_BETWEEN(quiet, NULL)
