/* short_ones.h - a function to be probed, for tests. */
#pragma once

#include "kernel/base/compiler.h"

/* Many short instructions, each of whose jumps reads the next ones. Return: 2 * @x + 3. */
static NOINLINE long short_ones(long x)
{
    long y = 1;

    __asm__ volatile("pushq %%rbx\n\t"
                     "xchg %%rax, %%rbx\n\t"
                     "leaq (%%rbx, %%rbx), %%rax\n\t"
                     "cwtl\n\t"
                     "cltq\n\t"
                     "popq %%rbx\n\t"
                     "incl %%eax\n\t"
                     "addq %%rax, %1\n\t"
                     "nop\n\t"
                     "stc\n\t"
                     "adcq $0, %1"
                     : "+a"(x), "+r"(y)
                     :
                     : "cc");
    return y;
}
