/* msr.h - defines model specific registers and control register bits that the kernel
 * uses.
 * Source: SDM vol. 4, "Architectural MSRs"; vol. 3A, "Control Registers".
 */
#pragma once

#include "kernel/base/bits.h"

#define MSR_APIC_BASE 0x1bu
#define MSR_MTRR_CAP 0xfeu
#define MSR_MTRR_FIRST 0x200u /* base and mask of the first variable range */
#define MSR_PAT 0x277u
#define MSR_MTRR_DEFAULT 0x2ffu
#define MSR_X2APIC 0x800u /* + register offset / 16 */
#define MSR_EFER 0xc0000080u
#define MSR_FS_BASE 0xc0000100u
#define MSR_GS_BASE 0xc0000101u

#define EFER_LME BIT(8)
#define EFER_NXE BIT(11)

#define CR0_WP BIT(16)
#define CR0_NW BIT(29)
#define CR0_CD BIT(30)

#define CR4_PSE BIT(4)
#define CR4_PAE BIT(5)
#define CR4_MCE BIT(6)
#define CR4_PGE BIT(7)
#define CR4_UMIP BIT(11)
#define CR4_SMEP BIT(20)
#define CR4_SMAP BIT(21)

#define DR6_BS BIT(14) /* this #DB is a single step */
#define DR6_CLEAR UINT64_C(0xffff0ff0)
