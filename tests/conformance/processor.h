/* processor.h - control and debug registers, descriptor tables and segments, for
 * fixtures that write them. They are prepared before the fixture, and hashed and
 * restored after it.
 */
#pragma once

#include "kernel/base/compiler.h"

#include <stdint.h>

/* The operands of lgdt and lidt; processor_tables() fills them. */
struct processor_table {
    uint16_t limit;
    uint64_t base;
} PACKED;

extern struct processor_table processor_gdt, processor_idt;

/* processor_tables - set processor_gdt and processor_idt to the tables of the executing
 * CPU, with limits that are @more bytes larger. No code uses the bytes behind the tables.
 */
void processor_tables(unsigned more);
/* processor_selector - return the selector of the executing CPU's task state segment. */
unsigned processor_selector(void);

/* processor_prepare - save this state, and set parts of it to values
 * that fixtures change.
 * processor_sum - return a hash of all that a fixture may have changed.
 * processor_restore - restore the state that processor_prepare() has saved.
 * Context: thread on a CPU that it stays on; the last two with interrupts off.
 */
void processor_prepare(void);
uint64_t processor_sum(void);
void processor_restore(void);
