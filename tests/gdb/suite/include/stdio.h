/* stdio.h - the kernel's, and what programs of gdb's test-suite print with. */
#pragma once

#include "libc/include/stdio.h"

#define EOF (-1)
#define _IONBF 2
#define BUFSIZ 256

typedef struct file_of_program FILE;
extern FILE *stdin, *stdout, *stderr;

int printf(const char *fmt, ...);
int fprintf(FILE *file, const char *fmt, ...);
int sprintf(char *out, const char *fmt, ...);
int puts(const char *text);
int putchar(int c);
int fflush(FILE *file);
int setvbuf(FILE *file, char *buf, int mode, size_t size);
int fileno(FILE *file);
