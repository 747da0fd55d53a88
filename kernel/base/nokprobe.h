/* nokprobe.h - what code says of itself: here is no place for a probe. Pure.
 *
 * NOKPROBE() of compiler.h marks a whole function, as a part of the re-entry core. A range is
 * a part of a function, with a reason of its own; the instructions around it take probes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct nokprobe_range {
    uintptr_t start, end;
    const char *why; /* a sentence; NULL: as of a function that NOKPROBE() marks */
};

struct nokprobe_marks {
    const uintptr_t *functions; /* their addresses */
    size_t function_count;
    const struct nokprobe_range *ranges;
    size_t range_count;
};

/* NOKPROBE_ASM - for the text of an __asm__: no instruction of @code carries a probe.
 * @code, @why: literals
 *
 * There is no such thing for statements: what is between two of them in text, the compiler
 * decides. A routine of NASM has nokprobe_range (proc.inc).
 */
#define NOKPROBE_ASM(code, why)                                                          \
    "771:\n\t" code "\n772:\n\t"                                                         \
    ".pushsection .rodata.nokprobe, \"a\"\n773:\t.asciz \"" why "\"\n\t.popsection\n\t"  \
    ".pushsection .nokprobe_ranges, \"a\"\n\t"                                           \
    ".balign 8\n\t.quad 771b, 772b, 773b\n\t.popsection\n\t"
