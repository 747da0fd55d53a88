/* say.h - runs console lines for kernel tests, and keeps what they print. */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/fs/vfs.h"

#include <stdbool.h>

/* What the last line has printed. */
extern struct seq output;

/* say - run a command line. Return: its status. */
int say(const char *fmt, ...) PRINTF(1, 2);
/* said - does output contain @text? If it does not, print a comment line of the test. */
bool said(const char *text);
