/* say.c - runs console lines for kernel tests, and keeps what they print. */
#include "tests/kernel/say.h"

#include "kernel/console/shell.h"
#include "tests/kernel/ktest.h"

#include <stdio.h>

struct seq output;

int say(const char *fmt, ...)
{
    char line[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    seq_free(&output);
    seq_init(&output, NULL, NULL);
    return shell_execute(line, &output);
}

bool said(const char *text)
{
    bool found = strstr(seq_str(&output), text) != NULL;

    if (!found)
        ktest_note("no '%s' in: %.300s", text, seq_str(&output));
    return found;
}
