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
 * Behind each load stands a NOP with a displacement that no compiler makes: it leads to where
 * the program goes on if the memory cannot be read. So a fault needs no table, and finds its
 * way also in code whose probes have gone meanwhile.
 */
#pragma once

#include "probes/insn/builder.h"
#include "probes/program/program.h"

#define PROGRAM_PROBES_MAX 8 /* at a place; if there are more, C code runs them */

struct programs {
    struct {
        const struct kprobe_program *program; /* NULL: the probe only counts */
        int32_t hits;                         /* displacement from GS to its counter */
        int32_t words;                        /* to word 0 of its program */
    } of[PROGRAM_PROBES_MAX];
    unsigned count;
    uintptr_t addr;   /* of the probed instruction */
    bool flags_live;  /* the program may still read the status flags from before */
    uint8_t returned; /* bytes that a probed call has pushed: 8, or 0 */
};

/* programs_flags - the status flags that the code changes. */
uint32_t programs_flags(const struct programs *p);
/* programs_build - append the code. It is the same at any address. Context: any. */
void programs_build(struct insn_builder *b, const struct programs *p);

#define PROGRAM_LOAD_LEN (INSN_MAX_LEN + 8)
/* program_load_end - the load at @ip has failed.
 * @code: the PROGRAM_LOAD_LEN bytes at @ip
 * Context: any.
 * Return:  where the CPU goes on; 0: the instruction is no load of a program.
 */
uintptr_t program_load_end(const uint8_t *code, uintptr_t ip);
