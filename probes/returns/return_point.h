/* return_point.h - the place in a detour's cell that a function returns to which the detour
 * has called. For return probes it is as good as kretprobe_trampoline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RETURN_POINT_OFF 10 /* of the cell */

/* return_point_is - is @ip one, or the trampoline? Context: any. */
bool return_point_is(uintptr_t ip);

/* return_points_leave - a function that would return to one returns to the trampoline
 * instead, and no thread is on its way there any more. No jump leads to the detours that
 * are to be freed, and there has been quiescence since.
 *
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void return_points_leave(void);
