/* gdb_collect.h - a CPU that collects for a tracepoint does not stand before it is done. So
 * while all CPUs stand each frame is whole, and no hit looks at a tracepoint.
 */
#pragma once

#include <stdbool.h>

/* gdb_collect_is_busy - does the executing CPU collect? Context: any, preemption off. */
bool gdb_collect_is_busy(void);

/* gdb_collect_defers - an NMI: if the CPU collects, it comes again when that is done.
 * Context: nmi.  Return: whether.
 */
bool gdb_collect_defers(void);
