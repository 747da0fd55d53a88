/* test_extable.c - the table of instructions that may fault, and where
 * they continue then.
 */
#include "kernel/mm/extable.h"

#include "kernel/mm/paging.h"
#include "tests/kernel/ktest.h"

extern const struct extable_entry extable_start[], extable_end[];

#define UNMAPPED ((char *)0x10)
#define NOT_CANONICAL ((char *)0x0100000000000000)

static uintptr_t insn_of(const struct extable_entry *e)
{
    return (uintptr_t)&e->insn_off + (uintptr_t)(intptr_t)e->insn_off;
}

KTEST(extable, the_table_is_sorted_and_names_text)
{
    bool sorted = true, in_text = true;

    for (const struct extable_entry *e = extable_start; e < extable_end; e++) {
        uintptr_t fixup = extable_find(insn_of(e));

        sorted &= e == extable_start || insn_of(e - 1) < insn_of(e);
        in_text &= insn_of(e) >= (uintptr_t)_text && insn_of(e) < (uintptr_t)_etext;
        in_text &= fixup >= (uintptr_t)_text && fixup < (uintptr_t)_etext;
    }
    ktest_report(extable_end - extable_start >= 4, "there are entries");
    ktest_report(sorted, "each is above the one before");
    ktest_report(in_text, "both addresses of each lie in text");
    ktest_report(extable_find((uintptr_t)ktest_report) == 0, "other text has none");
}

KTEST(extable, copy_of_bad_memory_answers_efault)
{
    char buf[64] = { 0 };

    ktest_report(copy_nofault(UNMAPPED, buf, 0) == 0, "no byte, no fault");
    ktest_report(copy_nofault(buf, UNMAPPED, 8) == -EFAULT, "from an absent page");
    ktest_report(copy_nofault(UNMAPPED, buf, 8) == -EFAULT, "to an absent page");
    ktest_report(copy_nofault(buf, NOT_CANONICAL, 8) == -EFAULT,
                 "from an address that is not canonical");
    ktest_report(copy_nofault(NOT_CANONICAL, buf, 8) == -EFAULT, "to such an address");
    ktest_report(copy_nofault((void *)(uintptr_t)memset, buf, 8) == -EFAULT, "to text");
    ktest_report(copy_nofault((void *)(uintptr_t)extable_start, buf, 8) == -EFAULT,
                 "to the table itself");
    ktest_report(copy_nofault(buf, (void *)-4, 8) == -EFAULT, "past the last address");
}

KTEST(extable, bytes_before_a_bad_page_are_copied)
{
    char *p = vmap_alloc(PAGE_SIZE, PROT_W);
    char buf[32] = { 0 };

    memset(p, 'a', PAGE_SIZE);
    ktest_report(copy_nofault(buf, p + PAGE_SIZE - 16, 32) == -EFAULT,
                 "the page behind is absent");
    ktest_report(buf[0] == 'a' && buf[15] == 'a' && buf[16] == 0, "16 bytes came first");
    vmap_free(p, PAGE_SIZE);
}

/* load_faults - does a load from @addr fault? Its table entry is made by the macro for C.
 */
static bool load_faults(const void *addr)
{
    int faulted = 1;

    __asm__ volatile("1: movb (%1), %%al\n\t"
                     "xorl %0, %0\n\t"
                     "2:\n\t" EXTABLE("1b", "2b")
                     : "+r"(faulted)
                     : "r"(addr)
                     : "al", "cc");
    return faulted;
}

static void copy_in_interrupt(void *result)
{
    char c;

    *(int *)result = copy_nofault(&c, UNMAPPED, 1);
}

KTEST(extable, works_with_interrupts_off_and_in_interrupts)
{
    unsigned long flags = irq_save();
    int err = 0;
    char c;

    err = copy_nofault(&c, UNMAPPED, 1);
    irq_restore(flags);
    ktest_report(err == -EFAULT, "with interrupts off");
    err = 0;
    smp_call(cpu_count() - 1, copy_in_interrupt, &err);
    ktest_report(err == -EFAULT, "in a call from another CPU");
    ktest_report(load_faults(UNMAPPED) && !load_faults("x"), "with the macro for C");
}
