/* say.h - console lines, said by kernel tests, and what they print. */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/fs/vfs.h"

#include <stdbool.h>

/* What the last line has printed. */
extern struct seq output;

/* say - run a command line. Return: its status. */
int say(const char *fmt, ...) PRINTF(1, 2);
/* said - has it printed @text, among others? Noted when it has not. */
bool said(const char *text);
