/* leaky_pointer.c - a module that blacklists a function which calls through a pointer.
 * Loading it must be refused.
 */
#include "kernel/base/compiler.h"

extern void (*volatile leaks)(void);
void (*volatile leaks)(void);
void leaky_pointer(void);

NOINLINE void leaky_pointer(void)
{
    leaks();
    __asm__ volatile(""); /* so that it is a call, not a jump */
}
NOKPROBE(leaky_pointer);
