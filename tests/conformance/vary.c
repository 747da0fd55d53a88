/* vary.c - the families of vary.h. */
#include "tests/conformance/vary.h"

#include "kernel/cpu/msr.h"
#include "tests/conformance/processor.h"
#include "tests/kernel/ktest.h"

#define FLAGS_STATUS (FLAGS_CF | FLAGS_PF | FLAGS_AF | FLAGS_ZF | FLAGS_SF | FLAGS_OF)
#define CR0_TS BIT(3)
#define CR3_PWT BIT(3)
#define CR4_TSD BIT(2)
#define CR4_DE BIT(3)
#define DR6_NOTHING 0xffff0ff0u
#define DR7_NOTHING 0x400u
#define DR7_WRITE_0 BIT(16) /* the condition of breakpoint 0, which is not enabled */
#define MSR_KERNEL_GS_BASE 0xc0000102u /* not used by a kernel without user mode */
#define NOWHERE UINT64_C(0x10)
#define NOT_CANONICAL UINT64_C(0x8000000000000010)

static uint64_t seed;

void vary_seed(uint64_t to)
{
    seed = to;
}

static uint64_t mixed(uint64_t x)
{
    x += seed; /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static unsigned long place(unsigned off)
{
    return (unsigned long)fixture_memory + off;
}

/* regs_set - set the fifteen general registers, in the order of the image. */
static void regs_set(struct image *image,
                     unsigned long (*value)(unsigned reg, unsigned i), unsigned i)
{
    unsigned long *reg = &image->r15;

    for (unsigned n = 0; n < IMAGE_REGS; n++)
        reg[n] = value(n, i);
}

/* ---- flags ---- */

/* some_flags - return flags number @i: the first are chosen, the others random. IF is set
 * in about half of them, TF in none.
 */
static unsigned long some_flags(unsigned i)
{
    static const unsigned long chosen[] = {
        FLAGS_IF,
        FLAGS_STATUS | FLAGS_IF,
        FLAGS_CF,
        FLAGS_ZF | FLAGS_PF | FLAGS_IF | FLAGS_AC,
        FLAGS_SF | FLAGS_OF | FLAGS_AF | FLAGS_DF,
        FLAGS_CF | FLAGS_DF | FLAGS_IF | FLAGS_ID,
        FLAGS_OF | FLAGS_NT | FLAGS_IOPL,
        FLAGS_STATUS | FLAGS_NT | FLAGS_AC | FLAGS_IF,
    };
    unsigned long any = FLAGS_STATUS | FLAGS_IF | FLAGS_DF | FLAGS_AC | FLAGS_ID;

    if (i < ARRAY_LEN(chosen))
        return chosen[i] | FLAGS_FIXED;
    return (mixed(i) & any) | FLAGS_FIXED;
}

static unsigned long condition_flags(unsigned i)
{
    unsigned long flags = FLAGS_FIXED | FLAGS_IF;

    flags |= i & 1 ? FLAGS_CF : 0;
    flags |= i & 2 ? FLAGS_PF : 0;
    flags |= i & 4 ? FLAGS_ZF : 0;
    flags |= i & 8 ? FLAGS_SF : 0;
    flags |= i & 16 ? FLAGS_OF : 0;
    return flags;
}

/* ---- registers ---- */

static unsigned long edge_value(unsigned reg, unsigned i)
{
    static const unsigned long edges[] = {
        0,
        1,
        UINT64_C(0xffffffffffffffff),
        UINT64_C(0x8000000000000000),
        UINT64_C(0x7fffffffffffffff),
        UINT64_C(0x0123456789abcdef),
        UINT64_C(0xfedcba9876543210),
        0x80,
        0x7f,
        0xffffffff,
        0x80000000,
    };
    unsigned n = reg * 7 + i * 3;

    return i < 8 ? edges[n % ARRAY_LEN(edges)] : mixed(n + 1000 * i);
}

static unsigned long small_value(unsigned reg, unsigned i)
{
    return (unsigned long)(long)((int)((reg * 5 + i * 3) % 24) - 8);
}

static unsigned long place_of(unsigned reg, unsigned i)
{
    return place(256 + 32 * reg + 8 * (i % 4));
}

static unsigned long target_of(unsigned reg UNUSED, unsigned i UNUSED)
{
    return (unsigned long)exit_taken;
}

static unsigned long nowhere_of(unsigned reg, unsigned i)
{
    return (i & 1 ? NOT_CANONICAL : NOWHERE) + 16 * reg;
}

/* The registers that most fixtures use as addresses. */
static void places_set(struct image *image, unsigned i)
{
    image->bx = place(256) + 8 * (i % 3);
    image->bp = place(320);
    image->si = place(384);
    image->di = place(448);
    image->r12 = place(512);
    image->r13 = place(576);
    image->r14 = place(640);
    image->r15 = place(704);
}

static void begin(struct setup *setup, unsigned i)
{
    setup->memory_len = 1024;
    setup->image.flags = some_flags(i);
    setup->image.sp = fixture_sp(i);
}

/* ---- the families ---- */

static bool vary_regs(struct setup *setup, unsigned i, unsigned count,
                      unsigned long (*value)(unsigned reg, unsigned i))
{
    begin(setup, i);
    regs_set(&setup->image, value, i);
    return i < count;
}

#define VALUES 500

static void values_set(struct setup *setup, unsigned i)
{
    vary_regs(setup, i, VALUES, edge_value);
    places_set(&setup->image, i);
}

/* The usual run has some of the values of a long one, from another place at each boot. */
bool vary_values(struct setup *setup, unsigned i)
{
    static unsigned first;

    if (!first)
        first = 1 + (unsigned)(ktest_random() % VALUES);
    values_set(setup, (first - 1 + i) % VALUES);
    return i < ktest_count(3, VALUES);
}

bool vary_indices(struct setup *setup, unsigned i)
{
    bool is_one = vary_regs(setup, i, (unsigned)ktest_count(8, 24), small_value);

    places_set(&setup->image, i);
    return is_one;
}

bool vary_places(struct setup *setup, unsigned i)
{
    return vary_regs(setup, i, 8, place_of);
}

bool vary_gs(struct setup *setup, unsigned i)
{
    bool is_one = vary_indices(setup, i);

    setup->image.r8 = setup->image.bx - rdmsr(MSR_GS_BASE);
    setup->word = (uint64_t)exit_taken;
    return is_one;
}

bool vary_flags(struct setup *setup, unsigned i)
{
    values_set(setup, i % 8);
    setup->image.flags = condition_flags(i);
    return i < 32;
}

bool vary_counters(struct setup *setup, unsigned i)
{
    static const unsigned long counters[] = {
        0,
        1,
        2,
        3,
        UINT64_C(0x100000000),
        UINT64_C(0x100000001),
        UINT64_C(0x100000002),
        UINT64_C(0xffffffff00000003),
        UINT64_C(0xffffffff),
        UINT64_C(0xffffffffffffffff),
        UINT64_C(0x8000000000000000),
        UINT64_C(0x80000000),
    };

    values_set(setup, i % 8);
    setup->image.cx = counters[i / 4 % ARRAY_LEN(counters)];
    setup->image.flags &= ~FLAGS_ZF;
    setup->image.flags |= i & 1 ? FLAGS_ZF : 0;
    setup->image.flags ^= i & 2 ? FLAGS_CF | FLAGS_SF : 0;
    return i < 4 * ARRAY_LEN(counters);
}

bool vary_strings(struct setup *setup, unsigned i)
{
    static const unsigned char counts[] = { 0, 1, 2, 100 };

    begin(setup, i / 16);
    regs_set(&setup->image, edge_value, 5 + i / 16);
    setup->memory_len = 4096;
    setup->image.cx = counts[i % 4];
    setup->image.si = place(1024 + 3);
    setup->image.di = place(3072);
    setup->image.flags &= ~FLAGS_DF;
    setup->image.flags |= i & 4 ? FLAGS_DF : 0;
    setup->word = i & 8 ? UINT64_C(0x4141414141414141) : 0;
    setup->image.ax = i & 8 ? setup->word : 0;
    return i < 16 * ktest_count(1, 8);
}

bool vary_long_strings(struct setup *setup, unsigned i)
{
    begin(setup, i);
    setup->memory_len = FIXTURE_MEMORY_LEN;
    setup->image.flags &= ~FLAGS_DF;
    setup->image.flags |= i & 1 ? FLAGS_DF : 0;
    setup->image.ax = edge_value(0, 5);
    setup->image.cx = 4096;
    setup->image.si = place(4096 + 40 + (i & 1 ? 4095 : 0));
    setup->image.di = place(8192 + 80 + (i & 1 ? 4095 : 0));
    return i < ktest_count(2, 8);
}

bool vary_targets(struct setup *setup, unsigned i)
{
    bool is_one = vary_regs(setup, i, 8, target_of);

    setup->word = (uint64_t)exit_taken;
    setup->image.sp = fixture_sp(i % 2); /* aligned, so that each word is exit_taken */
    return is_one;
}

bool vary_tables(struct setup *setup, unsigned i)
{
    bool is_one = vary_indices(setup, i);

    setup->word = (uint64_t)exit_taken;
    setup->image.sp = fixture_sp(i % 2);
    return is_one;
}

bool vary_nowhere(struct setup *setup, unsigned i)
{
    return vary_regs(setup, i, 8, nowhere_of);
}

bool vary_popped_flags(struct setup *setup, unsigned i)
{
    values_set(setup, i % 8);
    setup->image.flags = some_flags(i);
    setup->top[0] = some_flags(i + 1 + i / 8);
    return i < ktest_count(40, 1000);
}

bool vary_popped_tf(struct setup *setup, unsigned i)
{
    vary_popped_flags(setup, i);
    setup->steps = true;
    setup->top[0] |= FLAGS_TF;
    return i < 16;
}

bool vary_equal(struct setup *setup, unsigned i)
{
    bool is_one = vary_values(setup, i);

    setup->word = UINT64_C(0x0101010101010101) * (i + 1);
    setup->image.ax = setup->image.dx = setup->word;
    return is_one;
}

bool vary_frames(struct setup *setup, unsigned i)
{
    bool is_one = vary_values(setup, i);

    setup->image.bp = setup->image.sp + 64;
    setup->top[0] = setup->image.sp + 32;
    return is_one;
}

bool vary_reserved(struct setup *setup, unsigned i)
{
    bool is_one = vary_frames(setup, i);

    setup->reserves = true;
    return is_one;
}

bool vary_interrupted(struct setup *setup, unsigned i)
{
    values_set(setup, i);
    setup->image.flags &= ~FLAGS_IF;
    setup->interrupt = true;
    setup->image.cx = 3;
    setup->image.ax = (unsigned long)exit_taken;
    setup->top[0] = (uint64_t)exit_taken;
    return i < ktest_count(8, 200);
}

bool vary_interrupted_popf(struct setup *setup, unsigned i)
{
    bool is_one = vary_interrupted(setup, i);

    setup->top[0] = some_flags(i) | FLAGS_IF;
    return is_one;
}

bool vary_stepping(struct setup *setup, unsigned i)
{
    values_set(setup, i);
    setup->steps = true;
    setup->image.flags |= FLAGS_TF;
    setup->image.cx = 3;
    setup->image.ax = (unsigned long)exit_taken;
    setup->top[0] = (uint64_t)exit_taken;
    return i < ktest_count(8, 100);
}

bool vary_port(struct setup *setup, unsigned i)
{
    bool is_one = vary_values(setup, i);

    setup->image.dx = 0xcf8;
    setup->image.ax = UINT64_C(0x80000000) | (mixed(i) & 0xfffffc);
    return is_one;
}

bool vary_port_strings(struct setup *setup, unsigned i)
{
    bool is_one = vary_strings(setup, i);

    setup->image.dx = 0x80;
    return is_one;
}

bool vary_system(struct setup *setup, unsigned i)
{
    static const unsigned long readable[] = { MSR_EFER, 0x277 /* PAT */, 0x174, 0 };

    values_set(setup, i);
    setup->image.cx = readable[i % ARRAY_LEN(readable)];
    setup->image.ax = i & 1 ? 0x80000002 : 0;
    return i < 8;
}

bool vary_written_msr(struct setup *setup, unsigned i)
{
    static const unsigned kept[] = { MSR_GS_BASE, MSR_FS_BASE, MSR_EFER };
    uint64_t value = mixed(i) & UINT64_C(0x7fffffffffff);

    values_set(setup, i);
    setup->image.cx = MSR_KERNEL_GS_BASE;
    if (i % 4 == 1)
        value |= NOT_CANONICAL;
    if (i % 4 == 2) {
        setup->image.cx = kept[i / 4 % ARRAY_LEN(kept)];
        value = rdmsr((uint32_t)setup->image.cx);
    }
    setup->image.ax = (uint32_t)value;
    setup->image.dx = value >> 32;
    return i < ktest_count(24, 96);
}

bool vary_selectors(struct setup *setup, unsigned i)
{
    values_set(setup, i);
    setup->image.ax = 8 * (i % 3);
    setup->image.cx = 8 * (i / 3 % 3);
    return i < 9;
}

bool vary_processor(struct setup *setup, unsigned i)
{
    values_set(setup, i);
    setup->processor = true;
    processor_tables(i & 1 ? 16 : 0);
    setup->image.ax = (read_cr0() & ~CR0_TS) | (i & 1 ? CR0_TS : 0);
    setup->image.cx = read_cr3() ^ (i & 2 ? CR3_PWT : 0);
    setup->image.dx = read_cr4() ^ (i & 1 ? CR4_TSD : 0) ^ (i & 2 ? CR4_DE : 0);
    setup->image.r8 = i % 3;
    setup->image.r9 = place(8 * i);
    setup->image.r10 = DR6_NOTHING | (i & 15);
    setup->image.r11 = DR7_NOTHING | (i & 1 ? DR7_WRITE_0 : 0);
    setup->image.si = (unsigned long)&processor_gdt;
    setup->image.di = (unsigned long)&processor_idt;
    return i < 8;
}

bool vary_loaded_selectors(struct setup *setup, unsigned i)
{
    values_set(setup, i);
    setup->processor = true;
    setup->word = BIT(32) | (i % 8 == 7 ? processor_selector() : 8 * (i % 8));
    setup->image.ax = setup->word;
    return i < 16;
}

bool vary_halted(struct setup *setup, unsigned i)
{
    values_set(setup, i);
    setup->image.flags |= FLAGS_IF;
    return i < ktest_count(4, 50);
}

bool vary_vectors(struct setup *setup, unsigned i)
{
    bool is_one = vary_values(setup, i);

    setup->vectors = true;
    return is_one && i < ktest_count(4, 16);
}
