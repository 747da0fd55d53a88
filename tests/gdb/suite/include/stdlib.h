/* stdlib.h - the kernel's, and what programs of gdb's test-suite call. */
#pragma once

#include "libc/include/stdlib.h"

void *malloc(size_t len);
void *calloc(size_t count, size_t len);
void free(void *mem);
int atoi(const char *text);
_Noreturn void exit(int status);
_Noreturn void abort(void);
