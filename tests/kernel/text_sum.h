/* text_sum.h - is the text what it was? For kernel tests. */
#pragma once

#include <stdint.h>

/* text_sum - a sum of all of the kernel's text. Context: thread. */
uint64_t text_sum(void);
