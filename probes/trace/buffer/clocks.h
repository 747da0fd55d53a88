/* clocks.h - the clocks that the user can choose for records. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* trace_clock_name - return the name of a clock; NULL: there are no more.
 * @i:         0 for the first clock
 * @is_chosen: set to whether records have its times
 */
const char *trace_clock_name(size_t i, bool *is_chosen);

/* trace_clock_is_cycles - tell whether times are not in nanoseconds. Context: any. */
bool trace_clock_is_cycles(void);

/* trace_set_clock - use the clock @name for records. Earlier records are lost.
 * @name: @len bytes
 * Locks: the trace lock held.  Return: 0; -EINVAL: there is no such clock; -ENOMEM.
 */
int trace_set_clock(const char *name, size_t len);
