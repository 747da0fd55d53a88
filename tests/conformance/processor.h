/* processor.h - control and debug registers, descriptor tables and segments, for fixtures
 * that write them: something to see before, a sum behind, and all as it was.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdint.h>

/* What lgdt and lidt load: made by processor_tables(). */
struct processor_table {
    uint16_t limit;
    uint64_t base;
} PACKED;

extern struct processor_table processor_gdt, processor_idt;

/* processor_tables - those of the executing CPU, the limits @more bytes behind their end.
 * Nothing uses what lies there.
 */
void processor_tables(unsigned more);
/* processor_selector - of the executing CPU's task state. */
unsigned processor_selector(void);

/* processor_prepare - remember everything, and make it something that a fixture changes.
 * processor_sum - of everything that a fixture may have changed.
 * processor_restore - as it was before processor_prepare().
 * Context: thread on a CPU that it stays on; the last two with interrupts off.
 */
void processor_prepare(void);
uint64_t processor_sum(void);
void processor_restore(void);
