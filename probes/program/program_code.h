/* program_code.h - makes machine code of the programs of all probes at a place, which stand
 * one behind the other. The code lies in a detour, in front of the copy of the instruction.
 *
 *     push rax                 what the operations change is saved, and nothing else:
 *     lahf; seto al            rax, rcx, rdx; the status flags only where they are live
 *     push rcx
 *     inc %gs:hits             of each probe
 *     ...                      its operations
 *     pop rcx
 *     add al, 0x7f; sahf
 *     pop rax
 *
 * Where a program calls functions, the code stands in the frame of a light handler
 * (detour_light.asm), which has saved all registers that C code changes, and holds the probe
 * for the handling of faults.
 *
 * Behind each load, and each call of KPROBE_CALL, stands a NOP with a displacement that no
 * compiler makes: it leads to where the program goes on if the memory cannot be read, or the
 * function is given up. So a fault needs no table, and finds its way also in code whose
 * probes have gone meanwhile.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "probes/insn/builder.h"
#include "probes/program/program.h"

#define PROGRAM_PROBES_MAX 8 /* at a place; if there are more, C code runs them */

struct programs {
    struct {
        struct kprobe *probe;
        const struct kprobe_program *program; /* NULL: the probe only counts */
        int32_t hits;                         /* displacement from GS to its counter */
        int32_t words;                        /* to word 0 of its program */
    } of[PROGRAM_PROBES_MAX];
    unsigned count;
    uintptr_t addr;   /* of the probed instruction */
    bool flags_live;  /* the program may still read the status flags from before */
    uint8_t returned; /* bytes that a probed call has pushed: 8, or 0 */
    int32_t below; /* if a program calls: bytes from rsp to where r11 is saved; the other
                       * registers lie above it, as detour_light.asm shows */
    struct kprobe_op light_op[PROGRAM_PROBES_MAX]; /* of light handlers: a call */
    struct kprobe_program light[PROGRAM_PROBES_MAX];
};

/* programs_call - does a program call functions?
 * programs_caller - the first that does; @p->count: none.
 */
bool programs_call(const struct programs *p);
unsigned programs_caller(const struct programs *p);
/* programs_flags - the status flags that the code changes. */
uint32_t programs_flags(const struct programs *p);
/* programs_build - append the code. It is the same at any address, but for calls, which need
 * @b->at. Context: any.
 */
void programs_build(struct insn_builder *b, const struct programs *p);

/* nop dword [rsp + displacement], with 5 in the field for a register. */
#define PROGRAM_MARK 0x24ac1f0f

/* program_is_mark - are the bytes @code, which stand behind a load or call, a mark?
 * program_mark_leads - the address to which the mark at @at leads.
 */
NOKPROBE_INLINE bool program_is_mark(uint64_t code)
{
    return (uint32_t)code == PROGRAM_MARK;
}

NOKPROBE_INLINE uintptr_t program_mark_leads(uintptr_t at, uint64_t code)
{
    return at + sizeof(code) + (code >> 32);
}

/* program_load_fails - a fault has come: if a load of a program has failed, change regs->ip
 * to where the program goes on. Code that can be probed must not run before: a program there
 * may have a load that fails as well, and so on without an end.
 * Context: trap.  Return: false: the instruction is no load of a program.
 */
bool program_load_fails(struct pt_regs *regs);
