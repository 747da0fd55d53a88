/* nokprobe.h - marks code that can carry no probe. Pure.
 *
 * NOKPROBE() of compiler.h marks a whole function, as a part of the re-entry core. A
 * range marks a part of a function, and has a reason of its own; the instructions around
 * the range can carry probes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct nokprobe_range {
    uintptr_t start, end;
    const char *why; /* a sentence; NULL: that of struct nokprobe_marks */
};

struct nokprobe_marks {
    const uintptr_t *functions; /* their addresses */
    size_t function_count;
    const struct nokprobe_range *ranges;
    size_t range_count;
    const char *why; /* of functions, and of ranges without; NULL: the re-entry core's */
};

/* NOKPROBE_ASM - make the text of an __asm__, with instructions that can carry no probe.
 * @code, @why: string literals
 *
 * C statements cannot be marked: the compiler decides which instructions lie between two
 * statements. A routine in NASM uses nokprobe_range (proc.inc).
 */
#define NOKPROBE_ASM(code, why)                                                          \
    "771:\n\t" code "\n772:\n\t"                                                         \
    ".pushsection .rodata.nokprobe, \"a\"\n773:\t.asciz \"" why "\"\n\t.popsection\n\t"  \
    ".pushsection .nokprobe_ranges, \"a\"\n\t"                                           \
    ".balign 8\n\t.quad 771b, 772b, 773b\n\t.popsection\n\t"
