/* regs.h - defines the register image that entry code builds and probe handlers see.
 * Pure.
 *
 * Field names are Linux's. The last field is what the CPU pushes first, and the first
 * field is what kernel/cpu/entry.asm pushes last. kernel/cpu/asm_offsets.c turns the
 * offsets into numbers for NASM, so the pushes need not be counted by hand.
 */
#pragma once

#include <stdint.h>

struct pt_regs {
    /* pushed by the common entry */
    uint64_t r15, r14, r13, r12, bp, bx;
    uint64_t r11, r10, r9, r8, ax, cx, dx, si, di;
    union {           /* saved by entry code, before any code that can be probed */
        uint64_t cr2; /* #PF */
        uint64_t dr6; /* #DB; the upper half: percpu.debug_changes, see debug_reg.h */
        uint64_t aux;
    };
    union {
        uint64_t orig_ax;
        struct {
            uint32_t error_code; /* pushed by the CPU; or 0, pushed by entry code */
            uint32_t vector;     /* stored by entry code */
        };
    };
    /* pushed by the CPU */
    uint64_t ip, cs, flags, sp, ss;
};

_Static_assert(sizeof(struct pt_regs) == 22 * 8, "entry.asm pushes 22 words");

#define FLAGS_CF (1ul << 0)
#define FLAGS_FIXED (1ul << 1)
#define FLAGS_PF (1ul << 2)
#define FLAGS_AF (1ul << 4)
#define FLAGS_ZF (1ul << 6)
#define FLAGS_SF (1ul << 7)
#define FLAGS_TF (1ul << 8)
#define FLAGS_IF (1ul << 9)
#define FLAGS_DF (1ul << 10)
#define FLAGS_OF (1ul << 11)
#define FLAGS_IOPL (3ul << 12)
#define FLAGS_NT (1ul << 14)
#define FLAGS_RF (1ul << 16)
#define FLAGS_AC (1ul << 18)
#define FLAGS_ID (1ul << 21)

static inline unsigned long regs_return_value(const struct pt_regs *regs)
{
    return regs->ax;
}
