/* debugcon.c - output that needs no initialisation: for the first lines of a boot and the
 * last lines of a panic.
 */
#include "drivers/debugcon.h"

#include "kernel/cpu/instr.h"

#define DEBUGCON_PORT 0xe9
#define DEBUGCON_PRESENT 0xe9 /* the value that a read gives */

void debugcon_write(const char *text, size_t len)
{
    if (inb(DEBUGCON_PORT) != DEBUGCON_PRESENT)
        return;
    for (size_t i = 0; i < len; i++)
        outb(DEBUGCON_PORT, (uint8_t)text[i]);
}
