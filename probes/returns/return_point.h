/* return_point.h - where functions return to that are followed by return probes, besides
 * kretprobe_trampoline: in the cell of the detour that has called them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RETURN_POINT_OFF 10 /* of the cell */

/* return_point_is - is @ip one, or the trampoline? Context: any. */
bool return_point_is(uintptr_t ip);

/* return_points_leave - whoever would return to one returns to the trampoline instead, and
 * nobody is on his way there any more. No jump leads to the detours that are to be freed, and
 * there has been quiescence since.
 *
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void return_points_leave(void);
