/* return_point.h - return points. The detour of a return probe calls the probed function.
 * The return point is the place in the detour's cell behind that call, where the function
 * returns to. Code that looks at return addresses treats a return point like
 * kretprobe_trampoline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RETURN_POINT_OFF 10 /* bytes from the start of the cell */

/* return_point_is - is @ip a return point, or the trampoline? Context: any. */
bool return_point_is(uintptr_t ip);

/* return_points_leave - let all functions that would return to a return point return to the
 * trampoline instead, so that the cells of detours can be freed. On return no thread is on
 * its way to one of the old return points. The caller has made sure that no jump leads to
 * the detours that it will free, and has waited for quiescence after that.
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void return_points_leave(void);
