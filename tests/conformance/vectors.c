/* vectors.c - switches x87 and vector registers on for fixtures, loads and hashes them.
 *
 * The kernel does not use these registers, so they need not be saved. Control registers
 * are changed on this CPU; its other threads do not depend on the changed bits.
 * Source: SDM vol. 1, "XSAVE Area"; vol. 3A, "Control Registers".
 */
#include "tests/conformance/vectors.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"

#include <string.h>

#define CR0_MP BIT(1)
#define CR0_EM BIT(2)
#define CR0_TS BIT(3)
#define CR0_NE BIT(5)
#define CR4_OSFXSR BIT(9)
#define CR4_OSXMMEXCPT BIT(10)
#define CR4_OSXSAVE BIT(18)

#define XCR0_X87 BIT(0)
#define XCR0_SSE BIT(1)
#define XCR0_AVX BIT(2)

#define CPUID1_ECX_XSAVE BIT(26)
#define CPUID1_ECX_AVX BIT(28)

/* The standard form of the XSAVE area: x87 and SSE registers as FXSAVE stores them, 64
 * bytes of header, and the upper halves of the ymm registers.
 */
struct area {
    uint16_t fcw, fsw;
    uint8_t ftw, reserved;
    uint16_t fop; /* fop, fip and fdp tell where the last x87 instruction was */
    uint64_t fip, fdp;
    uint32_t mxcsr, mxcsr_mask;
    uint8_t st[8][16], xmm[16][16], unused[96];
    uint64_t xstate_bv, xcomp_bv, header[6];
    uint8_t ymm_upper[16][16];
} ALIGNED(64);

_Static_assert(sizeof(struct area) == 832, "the SDM's layout");

static struct area area;
static uint64_t cr0, cr4;
static uint32_t components;

static void xsetbv(uint32_t index, uint32_t low)
{
    __asm__ volatile("xsetbv" ::"c"(index), "a"(low), "d"(0));
}

bool vectors_on(void)
{
    uint32_t id[4];

    cpuid(1, 0, id);
    if (!(id[2] & CPUID1_ECX_XSAVE))
        return false;
    components = XCR0_X87 | XCR0_SSE | (id[2] & CPUID1_ECX_AVX ? XCR0_AVX : 0);
    cr0 = read_cr0();
    cr4 = read_cr4();
    write_cr0((cr0 & ~(CR0_EM | CR0_TS)) | CR0_MP | CR0_NE);
    write_cr4(cr4 | CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_OSXSAVE);
    xsetbv(0, components);
    return true;
}

void vectors_off(void)
{
    write_cr4(cr4);
    write_cr0(cr0);
}

/* area_fill - fill the registers, so that most of them are small floating-point numbers:
 * then arithmetic on them has useful results.
 */
static void area_fill(void)
{
    static const uint16_t extended[5] = { 0, 0, 0, 0xc000, 0x3fff };

    memset(&area, 0, sizeof(area));
    area.fcw = 0x37f;
    area.mxcsr = 0x1f80;
    area.ftw = 0xff;
    area.xstate_bv = components;
    for (unsigned i = 0; i < 8; i++) {
        memcpy(area.st[i], extended, sizeof(extended));
        area.st[i][6] = (uint8_t)i;
    }
    for (unsigned i = 0; i < 16; i++)
        for (unsigned byte = 0; byte < 16; byte++) {
            area.xmm[i][byte] = (uint8_t)(byte % 4 == 3 ? 0x3f + i % 2 : 17 * i + byte);
            area.ymm_upper[i][byte] = (uint8_t)(13 * i + 7 * byte);
        }
}

void vectors_load(void)
{
    area_fill();
    __asm__ volatile("xrstor64 %0" ::"m"(area), "a"(components), "d"(0));
}

uint64_t vectors_sum(void)
{
    const uint64_t *words = (const uint64_t *)&area;
    uint64_t sum = 0;

    memset(&area, 0, sizeof(area));
    __asm__ volatile("xsave64 %0" : "+m"(area) : "a"(components), "d"(0));
    area.fop = 0;
    area.fip = area.fdp = 0; /* addresses of the last x87 instruction: those of a copy */
    for (unsigned i = 0; i < sizeof(area) / 8; i++)
        sum = (sum ^ words[i]) * UINT64_C(0x100000001b3);
    return sum;
}
