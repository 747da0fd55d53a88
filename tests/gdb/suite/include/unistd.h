/* unistd.h - what programs of gdb's test-suite call. */
#pragma once

#include <stddef.h>

long read(int file, void *out, size_t len);
long write(int file, const void *bytes, size_t len);
int isatty(int file);
unsigned sleep(unsigned seconds);
int usleep(unsigned us);
unsigned alarm(unsigned seconds);
int getpid(void);
