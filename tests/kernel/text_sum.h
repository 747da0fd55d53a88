/* text_sum.h - lets kernel tests check that the kernel's text is as it was before. */
#pragma once

#include <stdint.h>

/* text_sum - return a hash of the kernel's text. Context: thread. */
uint64_t text_sum(void);
