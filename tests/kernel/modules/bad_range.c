/* bad_range.c - a module with a blacklisted range that ends inside of an instruction. */
#include "kernel/base/compiler.h"

long cut_range(long a);
extern const char cut_why[];

const char cut_why[] = "cut";

NOINLINE long cut_range(long a)
{
    return a * 3;
}

__asm__(".pushsection .nokprobe_ranges, \"a\"\n\t"
        ".balign 8\n\t"
        ".quad cut_range, cut_range + 2, cut_why\n\t"
        ".popsection");
