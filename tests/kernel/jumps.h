/* jumps.h - jumps for a test: kernel tests run without them unless they ask. */
#pragma once

#include "probes/jump/optimize.h"

/* jumps_by - from here on by @method, until jumps_as_before(). Context: thread. */
void jumps_by(enum optimize_method method);
void jumps_as_before(void);
