/* fetch.h - tells how the CPUs of this machine fetch instructions. */
#pragma once

#include <stdbool.h>

/* cpu_fetches_words - does the maker of the CPU (AuthenticAMD, HygonGenuine) promise that an
 * aligned word of 8 bytes is fetched in one piece? QEMU's translator (TCGTCGTCGTCG) takes
 * the name of a maker, but reads the bytes of an instruction one after the other.
 * Context: any.
 * Source:  APM vol. 2, "Cross-Modifying Code".
 */
bool cpu_fetches_words(void);
