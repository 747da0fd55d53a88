/* test_compile.c - what is compiled says the same as what is interpreted: random definitions
 * with filters and histograms, and random hits of each. The entries of the histograms, and
 * the records, are the same. A program that is refused is no difference, but most are not.
 */
#include "probes/trace/language/compile.h"

#include "probes/program/platform_program.h"
#include "probes/trace/language/hist_parts.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/trace_host.h"

#define HITS 48
#define ADDRESS 0xffffffff80001000ul
#define RETURN_IP 0xffffffff80002010ul
#define TYPE 300

static uint64_t state;
static uint8_t record[512], by_program[512];
static uint64_t words[KPROBE_PROGRAM_WORDS + 1], entry_words[FETCH_ENTRY_MAX];
static uint64_t keys[8192] __attribute__((aligned(128)));
/* Loads may read eight bytes that end with the field. */
static uint64_t memory[20] = { 0, 0, 0, 1, 2, 0xff, 0x8000, 0x80000000, 1ul << 63, ~0ul };
static uint64_t *const numbers = &memory[2], *const pointers = &memory[16];
#define NUMBERS 12
static unsigned commits;
static struct kprobe probe;

static uint64_t rnd(void)
{
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static unsigned below(unsigned n)
{
    return (unsigned)(rnd() % n);
}

static uint64_t any_number(void)
{
    return below(3) ? numbers[below(NUMBERS)] : rnd() >> below(64);
}

/* ---- definitions ---- */

static const char *const types[] = {
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"
};

#define PICK(array) (array)[below(ARRAY_LEN(array))]

/* Memory is read at the numbers of this file, and at 0, where there is none. */
static size_t put_argument(char *out, size_t size, unsigned i, bool is_return)
{
    static const char *const registers[] = { "%ax", "%di", "%si", "%dx",
                                             "%r8", "%bx", "%ip" };
    const char *from = is_return && below(3) == 0
                           ? PICK(((const char *[]){ "$ns", "$arg2" }))
                           : PICK(registers);

    if (below(3) == 0)
        return (size_t)snprintf(out, size, " a%u=+%u(%%r15):%s", i, 8 * below(NUMBERS),
                                PICK(types));
    if (below(6) == 0)
        return (size_t)snprintf(out, size, " a%u=+0(+%u(%%r14)):%s", i, 8 * below(2),
                                PICK(types));
    return (size_t)snprintf(out, size, " a%u=%s:%s", i, from, PICK(types));
}

static struct def *any_def(unsigned *args)
{
    struct trace_error error;
    struct def *def;
    char line[512];
    bool is_return = below(3) == 0;
    size_t len =
        (size_t)snprintf(line, sizeof(line), "%s:ev vfs_read", is_return ? "r" : "p");

    *args = 1 + below(4);
    for (unsigned i = 0; i < *args; i++)
        len += put_argument(line + len, sizeof(line) - len, i, is_return);
    if (def_parse(&trace_host, line, &def, &error))
        unit_note("%s", line);
    CHECK(def);
    return def;
}

static const char *any_field(char *name, unsigned args)
{
    static const char *const facts[] = { "common_pid", "cpu", "__probe_ip",
                                         "__probe_func", "common_type" };

    if (below(4) == 0)
        strcpy(name, PICK(facts));
    else
        sprintf(name, "a%u", below(args));
    return name;
}

static struct filter *any_filter(const struct filter_field *fields, size_t count,
                                 unsigned args)
{
    static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
    char text[512], name[16], other[16];
    struct filter_error error;
    struct filter *filter = NULL;
    int64_t value = (int64_t)(below(2) ? numbers[below(4)] : below(100));

    if (below(2))
        snprintf(text, sizeof(text), "%s %s %lld", any_field(name, args), PICK(ops),
                 (long long)value);
    else
        snprintf(text, sizeof(text), "%s %s %lld %s !(%s %s %u)", any_field(name, args),
                 PICK(ops), (long long)value, below(2) ? "&&" : "||",
                 any_field(other, args), PICK(ops), below(256));
    if (filter_parse(&trace_host, text, fields, count, &filter, &error))
        return NULL; /* a value that the field cannot have */
    return filter;
}

static struct hist *any_hist(const struct filter_field *fields, size_t count,
                             unsigned args)
{
    static const char *const shows[] = { "", "", "", ".log2", ".hex", ".buckets=16" };
    static const char *const vals[] = { "", ".min", ".max" };
    char text[256], key[16], val[16];
    struct hist_error error;
    struct hist *hist;

    any_field(key, args);
    any_field(val, args);
    snprintf(text, sizeof(text), "keys=%s%s%s:size=%u:vals=%s%s", key, PICK(shows),
             below(3) ? "" : ",cpu", below(100) ? 256 : 16384,
             below(3) ? val : "hitcount", val[0] == 'a' ? PICK(vals) : "");
    if (hist_parse(&trace_host, text, fields, count, NULL, &hist, &error))
        return NULL;
    return hist;
}

/* ---- hits ---- */

static int read_here(void *dst, uintptr_t addr, size_t len, bool user UNUSED)
{
    if (addr < 4096)
        return -1;
    memcpy(dst, (const void *)addr, len);
    return 0;
}

static struct kprobe_room reserve(struct kprobe *p UNUSED, uintptr_t ip,
                                  const struct pt_regs *regs UNUSED)
{
    memset(by_program, 0, sizeof(by_program));
    memcpy(by_program + 8, &ip, sizeof(ip));
    return (struct kprobe_room){ by_program, by_program };
}

static void commit(void *token UNUSED)
{
    commits++;
}

static uint64_t *new_keys(unsigned bits UNUSED)
{
    memset(keys, 0, sizeof(keys));
    return keys;
}

static uint64_t word_of(const struct kprobe_program *program UNUSED, unsigned cpu UNUSED,
                        size_t i)
{
    return words[i];
}

/* A hit that has a record of its own. */
struct one {
    struct pt_regs regs;
    struct program_hit hit;
    struct fetch_from from;
    size_t size;
};

static void any_hit(struct one *one, const struct def *def)
{
    uint64_t *regs = (uint64_t *)&one->regs;
    size_t head = def->is_return ? 24 : 16;
    uint64_t at[2] = { ADDRESS, RETURN_IP };
    int32_t pid = (int32_t)plat_fact(PLAT_FACT_THREAD);
    struct fetch_to to = { .record = record, .size = head + def->args_size };

    for (size_t i = 0; i < sizeof(one->regs) / 8; i++)
        regs[i] = any_number();
    one->regs.r15 = (uintptr_t)numbers;
    one->regs.r14 = (uintptr_t)pointers; /* the second one is 0 */
    one->regs.ip = def->is_return ? RETURN_IP : ADDRESS + 1;
    for (size_t i = 0; i < FETCH_ENTRY_MAX; i++)
        entry_words[i] = below(1000);
    one->hit = (struct program_hit){ .p = &probe,
                                     .ip = ADDRESS,
                                     .regs = &one->regs,
                                     .ret = RETURN_IP,
                                     .entry = entry_words };
    one->from = (struct fetch_from){ .regs = &one->regs,
                                     .entry = def->is_return ? entry_words : NULL,
                                     .time = plat_clock_ns(),
                                     .read = read_here };
    memset(record, 0, sizeof(record));
    memcpy(record, &(uint16_t){ TYPE }, sizeof(uint16_t));
    memcpy(record + 4, &pid, sizeof(pid));
    memcpy(record + 8, at, head - 8);
    fetch_args(def->args, def->arg_count, head, &one->from, &to);
    one->size = to.size;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

#define LINE 128

/* shown - the entries, sorted as lines, and the totals. */
static const char *shown(const struct hist *hist)
{
    static char text[2][(HITS + 1) * LINE], lines[HITS][LINE];
    static unsigned turn;
    static uint32_t numbers_of[HIST_SIZE_MAX];
    char *out = text[turn++ % 2];
    size_t count = hist_sorted(hist, numbers_of), len = 0;

    for (size_t i = 0; i < count && i < HITS; i++)
        hist_print_entry(hist, numbers_of[i], NULL, lines[i], LINE);
    qsort(lines, count, LINE, by_text);
    for (size_t i = 0; i < count && i < HITS; i++)
        len += (size_t)sprintf(out + len, "%s", lines[i]);
    hist_print_totals(hist, out + len, LINE);
    return out;
}

/* ---- both ways ---- */

static unsigned refused, differences;

static struct {
    struct def *def;
    struct filter *filter;
    struct hist *hist, *copy;
    struct kprobe_op ops[KPROBE_OPS_MAX];
    struct compile compile;
    struct compile_table table;
    struct kprobe_program program;
} it;

static bool compile_it(void)
{
    it.compile = (struct compile){ .def = it.def,
                                   .type = TYPE,
                                   .one_address = true,
                                   .ops = it.ops,
                                   .new_keys = new_keys };
    compile_begin_part(&it.compile);
    if (it.filter)
        compile_filter(&it.compile, it.filter);
    compile_hist(&it.compile, it.hist, &it.table);
    compile_end_part(&it.compile);
    compile_begin_part(&it.compile);
    compile_record(&it.compile, it.def->is_return ? 24 : 16, reserve, commit);
    compile_end_part(&it.compile);
    it.program = (struct kprobe_program){ .ops = it.ops,
                                          .count = (uint16_t)it.compile.count,
                                          .words = (uint16_t)it.compile.words,
                                          .in_c = it.def->is_return,
                                          .entry_words = (uint8_t)it.def->entry_count };
    return !it.compile.unable && !program_verify(&it.program, NULL);
}

static void hit_both(void)
{
    struct one one;
    struct hist_hit hit = { .record = record,
                            .cpu = plat_fact(PLAT_FACT_CPU),
                            .comm = "" };
    unsigned before = commits;

    any_hit(&one, it.def);
    hit.len = one.size;
    if (!it.filter || filter_match(it.filter, record, one.size, hit.cpu, ""))
        hist_add(it.hist, &hit);
    program_run(&it.program, words, &one.hit);
    differences += commits != before + 1;
    memcpy(by_program, record, 8); /* the ring's */
    differences += memcmp(by_program, record, one.size) != 0;
}

static void compare(void)
{
    char line[DEF_LINE_MAX], text[128];
    const char *want, *got;

    compile_fold(it.copy, it.hist, &it.table, &it.compile, ADDRESS,
                 plat_fact(PLAT_FACT_CPU), word_of, &it.program);
    want = shown(it.hist);
    got = shown(it.copy);
    differences += strcmp(want, got) != 0;
    if (!differences)
        return;
    def_print(it.def, line, sizeof(line));
    unit_note("%s\nwant %sgot %s", line, want, got);
    for (unsigned i = 0; i < it.program.count; i++) {
        program_op_text(&it.program, i, text, sizeof(text));
        unit_note("  %2u %s", i, text);
    }
}

static void one_question(void)
{
    struct filter_field fields[FETCH_ARGS_MAX + 2];
    unsigned args;
    size_t count;

    it.def = any_def(&args);
    count = filter_fields(it.def, fields);
    it.filter = below(3) ? any_filter(fields, count, args) : NULL;
    it.hist = any_hist(fields, count, args);
    if (it.hist) {
        it.copy = hist_copy(&trace_host, it.hist);
        if (compile_it()) {
            differences += it.table.key_bits && hist_size(it.hist) > 8192;
            for (size_t i = 0; i < program_words(&it.program); i++)
                words[i] = program_word_begins(&it.program, i);
            for (unsigned i = 0; i < HITS; i++, fake.ns += below(100))
                hit_both();
            compare();
        } else {
            refused++;
        }
        hist_copy_free(&trace_host, it.copy);
        hist_free(&trace_host, it.hist);
    }
    filter_free(&trace_host, it.filter);
    def_free(&trace_host, it.def);
}

UNIT_TEST(programs_and_interpreters_say_the_same)
{
    unsigned questions = 4000;

    state = unit_seed();
    pointers[0] = (uintptr_t)&numbers[3];
    trace_host.entry_args = true;
    fake.ns = 5000;
    fake_bad(0, 4096);
    for (unsigned i = 0; i < questions && !differences; i++)
        one_question();
    CHECK_EQ(differences, 0);
    unit_note("%u questions, %u refused", questions, refused);
    CHECK(refused < questions / 2);
}

UNIT_TESTS()
