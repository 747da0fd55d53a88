/* short_ones.h - a function of short instructions, which tests probe. */
#pragma once

#include "kernel/base/compiler.h"

/* A jump at any of these short instructions reads bytes of the next ones.
 * Return: 2 * @x + 3.
 */
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
