/* test_program.c - a program says the same in C and as machine code. Fixtures run with
 * random programs at random instructions: first as breakpoints, where C runs them, then as
 * jumps, where their code does. The words of all programs are the same, and the fixtures
 * compute the same as without probes.
 */
#define _GNU_SOURCE
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "tests/hosted/fixture.h"
#include "tests/hosted/posix.h"
#include "tests/hosted/probe_all.h"
#include "tests/unit/unit.h"

#define FIXTURES_MAX 128
#define INPUTS 2
#define PROBES 96 /* in a round */
#define OPS 12    /* of a program, at most */
#define WORDS 80  /* enough for a key of 64 */
#define RECORD 64 /* bytes */
#define TABLE 64  /* places */

struct one {
    struct kprobe p;
    struct kprobe_program program;
    struct kprobe_op ops[OPS];
    uint64_t words[WORDS + 1]; /* what C has left */
    uint64_t hits;
    /* What the functions do that its program calls. */
    struct effects {
        uint64_t calls, reserved, commits, record[RECORD / 8];
    } effects, in_c;
};

static uint8_t switches[2] = { 0, 1 };
static uint64_t tables[2][TABLE] __attribute__((aligned(128)));
static struct one ones[PROBES];
static struct kprobe *set[PROBES];
static struct bench bench;
static struct outcome results[FIXTURES_MAX * INPUTS];
static uint64_t state;
static unsigned differences;
static size_t codes[KPROBE_OPCODES]; /* how often each operation was in a program */

static uint64_t rnd(void)
{
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t any_number(void)
{
    static const uint64_t often[] = {
        0,   1,    2,          63,         64,         100,       127,
        128, 0xff, 0x7fffffff, 0x80000000, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN
    };

    if (rnd() % 3)
        return often[rnd() % (sizeof(often) / sizeof(often[0]))];
    return rnd() >> rnd() % 64;
}

/* The clock of the CPU is another at each run. */
static uint8_t any_source(void)
{
    uint8_t source = (uint8_t)(rnd() % KPROBE_SOURCES);

    return source == KPROBE_CYCLES ? KPROBE_CPU : source;
}

/* ---- functions that programs call ---- */

/* spoil - change what a function may change. */
static void spoil(void)
{
    __asm__ volatile("mov $-1, %%rcx; mov $-1, %%rdx; mov $-1, %%rsi; mov $-1, %%rdi;"
                     "mov $-1, %%r8; mov $-1, %%r9; mov $-1, %%r10; mov $-1, %%r11" ::
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

static uint64_t called(struct kprobe *p, uintptr_t ip)
{
    struct one *one = (struct one *)(void *)p; /* its first field */

    differences += ip != p->addr;
    spoil();
    return one->effects.calls++ * 7 + 1;
}

/* Every third time there is no room. */
static struct kprobe_room reserve(struct kprobe *p, uintptr_t ip,
                                  const struct pt_regs *regs UNUSED)
{
    struct one *one = (struct one *)(void *)p;

    differences += ip != p->addr;
    spoil();
    if (++one->effects.reserved % 3 == 0)
        return (struct kprobe_room){ 0 };
    return (struct kprobe_room){ one->effects.record, one };
}

static void commit(void *token)
{
    ((struct one *)token)->effects.commits++;
    spoil();
}

static struct kprobe_op random_store(void)
{
    static const uint8_t sizes[] = { 1, 2, 4, 8 };
    uint8_t size = sizes[rnd() % 4];

    return (struct kprobe_op){ KPROBE_OP_STORE,
                               (uint8_t)(rnd() % (KPROBE_ADDRESS + 1)),
                               (uint8_t)(size << 4),
                               0,
                               (uint32_t)(rnd() % (RECORD - size + 1u)),
                               any_number() };
}

/* random_op - an operation at random; the verifier refuses many of them. Operations without
 * numbers of their own here get any numbers, so that a new one is tested, too.
 */
static struct kprobe_op random_op(unsigned left)
{
    static const uint8_t sizes[] = { 0x10, 0x20, 0x40, 0x80 };
    static unsigned turn;
    struct kprobe_op op = { .code = (uint8_t)(1 + turn++ % (KPROBE_OPCODES - 1)),
                            .source = any_source(),
                            .skip = (uint8_t)(rnd() % (left + 1)),
                            .at = (uint32_t)(rnd() % 12),
                            .imm = any_number() };

    switch (op.code) {
    case KPROBE_OP_LOAD:
        op.sub = (uint8_t)(sizes[rnd() % 4] | (rnd() % 2 ? KPROBE_SIGNED : 0) |
                           (rnd() % 2 ? KPROBE_OR_ZERO : 0));
        op.at = (uint32_t)(rnd() % 256 - 128);
        op.skip = op.sub & KPROBE_OR_ZERO ? op.skip : 0;
        break;
    case KPROBE_OP_EXTEND:
        op.sub = (uint8_t)(sizes[rnd() % 3] | (rnd() % 2 ? KPROBE_SIGNED : 0));
        break;
    case KPROBE_OP_CALL:
        op.imm = (uintptr_t)called;
        break;
    case KPROBE_OP_RESERVE:
        op.imm = (uintptr_t)reserve;
        break;
    case KPROBE_OP_STORE:
        return random_store();
    case KPROBE_OP_COMMIT:
        op.imm = (uintptr_t)commit;
        break;
    case KPROBE_OP_SHL:
    case KPROBE_OP_SHR:
    case KPROBE_OP_SAR:
        op.imm %= 64;
        break;
    case KPROBE_OP_IF:
        op.sub = (uint8_t)(rnd() % 18);
        break;
    case KPROBE_OP_EVERY:
        op.imm = 1 + rnd() % 5;
        break;
    case KPROBE_OP_LINEAR:
        op.at = (uint32_t)any_number();
        op.imm = (1 + any_number() % 100000) | (1 + rnd() % 60) << 32;
        break;
    case KPROBE_OP_SMALL:
        op.imm = rnd() % 64;
        break;
    case KPROBE_OP_UNLESS:
        op.imm = (uintptr_t)&switches[rnd() % 2];
        break;
    case KPROBE_OP_LOG2:
        op.sub = rnd() % 2 ? KPROBE_UP : 0;
        break;
    case KPROBE_OP_BY:
        return (struct kprobe_op)KPROBE_BY(tables[rnd() % 2], 5 + (uint32_t)(rnd() % 2));
    default:
        op.sub = (uint8_t)(rnd() % 4);
    }
    return op;
}

/* any_address - an address in the fixtures' memory, or an address of no memory. */
static uint64_t any_address(void)
{
    static const uint64_t bad[] = { 0, 0xfff, UINT64_C(1) << 47, UINT64_MAX - 3 };

    return rnd() % 4 ? (uintptr_t)bench.mem + 128 + rnd() % 768
                     : bad[rnd() % (sizeof(bad) / sizeof(bad[0]))];
}

/* is_repeatable - do all loads read memory that has the same content each time? The stack
 * below the program's own and the probed text have not: so each load comes right behind its
 * address, on every way.
 */
static bool is_repeatable(const struct kprobe_program *program)
{
    const struct kprobe_op *ops = program->ops;

    for (unsigned i = 0; i < program->count; i++) {
        unsigned next = i + 1u + ops[i].skip;

        if (ops[i].code == KPROBE_OP_LOAD &&
            (!i || ops[i - 1].code != KPROBE_OP_GET || ops[i - 1].source != KPROBE_IMM))
            return false;
        if (ops[i].skip && next < program->count && ops[next].code == KPROBE_OP_LOAD)
            return false;
    }
    return true;
}

/* make - a random program that the verifier accepts. */
static void make(struct one *one)
{
    struct kprobe_program *program = &one->program;
    struct kprobe_program_problem problem;
    unsigned count = 1 + (unsigned)(rnd() % OPS);

    *program = (struct kprobe_program){ .ops = one->ops,
                                        .count = (uint16_t)count,
                                        .words = WORDS };
    for (unsigned i = 0; i < count; i++)
        one->ops[i] = i % 2 ? (struct kprobe_op)KPROBE_LOAD(4, 8)
                            : (struct kprobe_op)KPROBE_CONST(any_address());
    if (count > 5 && rnd() % 2) {
        unsigned at = (unsigned)(rnd() % (count - 3)), end = at + 2 + rnd() % 2;

        one->ops[at] = (struct kprobe_op)KPROBE_RESERVE(reserve, (uint8_t)(end - at));
        for (unsigned i = at + 1; i < end; i++)
            one->ops[i] = random_store();
        one->ops[end] = (struct kprobe_op)KPROBE_COMMIT(commit);
    }
    for (unsigned tries = 0; tries <= 2 * count; tries++) {
        bool is_last = tries == 2 * count;
        unsigned i = is_last ? count - 1 : (unsigned)(rnd() % count);
        struct kprobe_op before = one->ops[i];

        one->ops[i] = is_last ? (struct kprobe_op)KPROBE_SUM(11, KPROBE_VALUE, 0)
                              : random_op(count - i - 1);
        if (program_verify(program, &problem) || !is_repeatable(program))
            one->ops[i] = before;
    }
    for (unsigned i = 0; i < count; i++)
        codes[one->ops[i].code]++;
}

static void tell(const struct one *one)
{
    char text[128];

    unit_note("at 0x%lx:", one->p.addr);
    for (unsigned i = 0; i < one->program.count; i++) {
        program_op_text(&one->program, i, text, sizeof(text));
        unit_note("  %2u %s", i, text);
    }
}

static void run_all(bool compare)
{
    struct fixture f;

    for (size_t i = 0; fixture_get(i, &f); i++)
        for (unsigned input = 0; input < INPUTS; input++) {
            struct outcome *right = &results[i * INPUTS + input];
            struct outcome got = bench_run(&bench, &f, 1000003 * i + input);

            if (!compare)
                *right = got;
            else if (outcomes_differ(got, *right, false) && !differences++)
                unit_note("%s, input %u, differs", f.name, input);
        }
}

/* choose - give each probe an instruction and a program. Some instructions have two. */
static void choose(void)
{
    for (size_t i = 0; i < PROBES; i++) {
        struct one *one = &ones[i];
        size_t at = rnd() % probe_all_count();

        memset(one, 0, sizeof(*one));
        one->p.addr = i && rnd() % 4 == 0 ? ones[i - 1].p.addr : counters[at].kp.addr;
        if (rnd() % 8)
            one->p.program = &one->program;
        make(one);
        set[i] = &one->p;
    }
}

static void words_of(const struct one *one, uint64_t *out)
{
    for (size_t i = 0; i < program_words(&one->program); i++)
        out[i] = program_sum(&one->program, i);
}

static size_t run_probed(enum optimize_method method, bool by_code)
{
    size_t jumps = 0;

    optimize_set_method(method);
    memset(tables, 0, sizeof(tables));
    CHECK_EQ(register_kprobes(set, PROBES), 0);
    optimize_run();
    run_all(true);
    for (size_t i = 0; i < PROBES; i++) {
        uint64_t words[WORDS + 1] = { 0 };

        jumps += ones[i].p.flags & KPROBE_FLAG_OPTIMIZED ? 1 : 0;
        if (ones[i].p.program)
            words_of(&ones[i], words);
        if (by_code &&
            (memcmp(words, ones[i].words, sizeof(words)) ||
             memcmp(&ones[i].effects, &ones[i].in_c, sizeof(ones[i].in_c)) ||
             kprobe_hits(&ones[i].p) != ones[i].hits) &&
            !differences++)
            tell(&ones[i]);
        ones[i].in_c = ones[i].effects;
        memset(&ones[i].effects, 0, sizeof(ones[i].effects));
        memcpy(ones[i].words, words, sizeof(words));
        ones[i].hits = kprobe_hits(&ones[i].p);
    }
    CHECK_EQ(unregister_kprobes(set, PROBES), 0);
    for (size_t i = 0; i < PROBES; i++)
        ones[i].p =
            (struct kprobe){ .addr = ones[i].p.addr, .program = ones[i].p.program };
    return jumps;
}

UNIT_TEST(in_c_and_as_code_programs_do_the_same)
{
    size_t jumps = 0, rounds = posix_rounds(60, 10000), never = 0;

    posix_init();
    state = unit_seed();
    bench_init(&bench);
    run_all(false);
    counters_init();
    counters_reset(ASK_JUMP_COUNT);
    for (size_t round = 0; round < rounds && !differences; round++) {
        choose();
        run_probed(OPTIMIZE_OFF, false);
        jumps += run_probed(OPTIMIZE_PUN, true);
    }
    run_all(true);
    CHECK_EQ(differences, 0);
    for (size_t i = 1; i < KPROBE_OPCODES; i++)
        never += !codes[i];
    unit_note("%zu programs, %zu of them jumps", rounds * PROBES, jumps);
    CHECK_EQ(never, 0);
    CHECK(jumps > rounds * PROBES * 9 / 10);
}

UNIT_TESTS()
