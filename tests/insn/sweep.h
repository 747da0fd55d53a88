/* sweep.h - compares every opcode of every map. Host only. */
#pragma once

#include <stdint.h>

/* sweep_all - compare each opcode with each modrm byte, and with every prefix that may
 * choose another instruction.
 * @edge:   the end of readable memory; the 15 bytes in front of it are writable
 * Return:  the number of windows that were compared.
 */
unsigned long sweep_all(uint8_t *edge);
