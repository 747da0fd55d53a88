/* features.c - switches on protections of the CPU: those that the kernel needs, which
 * boot/cpu_check.asm has checked, and those that a CPU may lack.
 */
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"

void features_init_cpu(void)
{
    uint32_t id[4];
    uint64_t cr4 = read_cr4() | CR4_PGE;

    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_NXE);
    cpuid(1, 0, id);
    /* CPU 0 comes here once more when it has the stack of #MC. */
    if (id[3] & BIT(7) && this_cpu()->tss.ist[2])
        cr4 |= CR4_MCE;
    cpuid(0, 0, id);
    if (id[0] >= 7) {
        cpuid(7, 0, id);
        if (id[1] & BIT(7))
            cr4 |= CR4_SMEP;
        if (id[1] & BIT(20))
            cr4 |= CR4_SMAP;
        if (id[2] & BIT(2))
            cr4 |= CR4_UMIP;
    }
    write_cr4(cr4);
    write_cr0(read_cr0() | CR0_WP);
}
