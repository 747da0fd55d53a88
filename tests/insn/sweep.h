/* sweep.h - every opcode of every map, systematically. Host only. */
#pragma once

#include <stdint.h>

/* sweep_all - compare each opcode with each modrm byte, under every prefix that could
 * matter. @edge: the end of readable memory, 15 writable bytes before it.
 * Return:  windows compared.
 */
unsigned long sweep_all(uint8_t *edge);
