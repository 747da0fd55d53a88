/* gdb_collect.h - says whether a CPU is collecting for a tracepoint. Such a CPU does not
 * stand before it has finished. So while all CPUs stand each frame is complete, and no
 * hit uses a tracepoint.
 */
#pragma once

#include <stdbool.h>

/* gdb_collect_is_busy - is the executing CPU collecting? Context: any, preemption off. */
bool gdb_collect_is_busy(void);

/* gdb_collect_defers - must this NMI wait for a collection? If it must, it is sent again
 * after the collection. Context: nmi. Return: true: it must.
 */
bool gdb_collect_defers(void);
