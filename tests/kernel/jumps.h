/* jumps.h - lets probes become jumps during one test. Kernel tests are booted with
 * kprobes-jump=off, so otherwise all probes are breakpoints.
 */
#pragma once

#include "probes/jump/optimize.h"

/* jumps_by - make jumps by @method until the end of the test; OPTIMIZE_OFF: make none.
 * jumps_as_before - set the method that was used before the first jumps_by(), now.
 * Context: thread.
 */
void jumps_by(enum optimize_method method);
void jumps_as_before(void);
