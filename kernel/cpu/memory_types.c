/* memory_types.c - gives every CPU the same values in the registers that say which memory
 * is cached, and how.
 *
 * Owns PAT, a table of memory types: a page table entry selects one of them (PROT_NOCACHE
 * selects entry 3). Owns the MTRRs of all CPUs but CPU 0: they get the values that the
 * firmware has left in the MTRRs of CPU 0. Firmware does that itself, so usually there is
 * nothing to write. But QEMU's TCG clears the MTRRs at INIT; by the manual, INIT does not
 * change them.
 *
 * Source: SDM vol. 3A, "MTRR Considerations in MP Systems", "Programming the PAT".
 */
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"

#define FEATURE_MTRR BIT(12) /* edx of leaf 1 */
#define FEATURE_PAT BIT(16)
#define MTRR_CAP_FIXED BIT(8)
#define MTRR_CAP_RANGES 0xffu
#define MTRR_ENABLE BIT(11) /* of MSR_MTRR_DEFAULT */

/* The value of PAT after a reset: WB, WT, UC-, UC, and the same four again. */
#define PAT_RESET UINT64_C(0x0007040600070406)

static const uint32_t fixed_mtrrs[] = {
    0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f,
};

#define RANGES_MAX 32
#define MTRRS_MAX (ARRAY_LEN(fixed_mtrrs) + 2 * RANGES_MAX)

/* The registers of one CPU. A register that the CPU does not have is 0. */
struct memory_types {
    bool has_pat, has_mtrrs;
    unsigned count;
    uint32_t numbers[MTRRS_MAX]; /* of the MTRRs, without MSR_MTRR_DEFAULT */
    uint64_t values[MTRRS_MAX];
    uint64_t default_type, pat;
};

static struct memory_types first; /* CPU 0's; [I] once it has been read */

static void mtrr_read(struct memory_types *t, uint32_t number)
{
    t->numbers[t->count] = number;
    t->values[t->count++] = rdmsr(number);
}

static void mtrrs_read(struct memory_types *t)
{
    uint64_t cap = rdmsr(MSR_MTRR_CAP);
    uint32_t ranges = cap & MTRR_CAP_RANGES;

    for (size_t i = 0; cap & MTRR_CAP_FIXED && i < ARRAY_LEN(fixed_mtrrs); i++)
        mtrr_read(t, fixed_mtrrs[i]);
    for (uint32_t i = 0; i < ranges && i < RANGES_MAX; i++) {
        mtrr_read(t, MSR_MTRR_FIRST + 2 * i);
        mtrr_read(t, MSR_MTRR_FIRST + 2 * i + 1);
    }
    t->default_type = rdmsr(MSR_MTRR_DEFAULT);
}

static void types_read(struct memory_types *t)
{
    uint32_t id[4];

    __builtin_memset(t, 0, sizeof(*t));
    cpuid(1, 0, id);
    t->has_mtrrs = id[3] & FEATURE_MTRR;
    t->has_pat = id[3] & FEATURE_PAT;
    if (t->has_mtrrs)
        mtrrs_read(t);
    if (t->has_pat)
        t->pat = rdmsr(MSR_PAT);
}

/* types_write - write the registers. While the types change, the caches are off and
 * empty, and the TLB is empty.
 */
static void types_write(const struct memory_types *t)
{
    uint64_t cr0 = read_cr0(), cr4 = read_cr4();

    write_cr0((cr0 | CR0_CD) & ~CR0_NW);
    wbinvd();
    write_cr4(cr4 & ~CR4_PGE);
    write_cr3(read_cr3());
    if (t->has_pat)
        wrmsr(MSR_PAT, t->pat);
    if (t->has_mtrrs)
        wrmsr(MSR_MTRR_DEFAULT, t->default_type & ~MTRR_ENABLE);
    for (unsigned i = 0; i < t->count; i++)
        wrmsr(t->numbers[i], t->values[i]);
    if (t->has_mtrrs)
        wrmsr(MSR_MTRR_DEFAULT, t->default_type);
    wbinvd();
    write_cr3(read_cr3());
    write_cr0(cr0);
    write_cr4(cr4);
}

void memory_types_init_cpu(void)
{
    static struct memory_types mine; /* one CPU at a time comes here */

    types_read(&mine);
    if (cpu_id() == 0) {
        first = mine;
        if (first.has_pat)
            first.pat = PAT_RESET;
    }
    if (__builtin_memcmp(&mine, &first, sizeof(first)) != 0)
        types_write(&first);
}

static uint64_t sum_add(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * UINT64_C(0x100000001b3); /* FNV-1a, by words */
}

uint64_t memory_types_sum(void)
{
    struct memory_types mine;
    uint64_t sum;

    types_read(&mine);
    sum = sum_add(sum_add(0, mine.default_type), mine.pat);
    for (unsigned i = 0; i < mine.count; i++)
        sum = sum_add(sum, mine.values[i]);
    return sum;
}
