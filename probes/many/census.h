/* census.h - counts how many instructions of the kernel's text the rules accept and
 * refuse.
 */
#pragma once

#include "kernel/base/nokprobe.h"
#include "probes/core/platform.h"
#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>

/* The counts. They are made once: code that is loaded later is not counted. */
struct census {
    size_t functions;
    size_t boundaries;                  /* all instructions */
    size_t refused[PROBE_REASON_COUNT]; /* refused ones by rule; [PROBE_OK]: accepted */
};

/* census_get - return the counts. The first call counts; later calls return the same
 * result. Counting takes a tenth of a second, but a thousand times as long with probes on
 * every instruction.
 * @stop: called with @arg while it counts; true ends the counting
 * @out:  receives a pointer to the result, which is never freed
 * Context: thread or held.  Return: 0; -ENOMEM; -EINTR after @stop.
 */
int census_get(bool (*stop)(void *arg), void *arg, const struct census **out);

/* census_blacklist - call @fn for each range of code that can never carry a probe,
 * function by function: @range is all of @function, or a part of it.
 */
typedef void (*census_range_t)(const struct plat_symbol *function,
                               const struct nokprobe_range *range, void *arg);
void census_blacklist(census_range_t fn, void *arg);

/* census_text_bytes - return the size of all functions, in bytes. */
size_t census_text_bytes(void);
