/* bench_print.c - prints a figure and, if it has one, its goal. */
#include "probes/bench/bench.h"

#include <stdarg.h>
#include <stdio.h>

#define NAME_MAX 96

/* print_goal - print the rest of the line. @whole: print the goal without a fraction. */
static void print_goal(struct shell *sh, const char *name, uint64_t hundredths,
                       bool whole)
{
    uint64_t limit = bench_goal(name, hundredths);

    if (limit && whole)
        shell_printf(sh, "  goal %lu", limit / 100);
    else if (limit)
        shell_printf(sh, "  goal %lu.%02lu", limit / 100, limit % 100);
    shell_printf(sh, "%s\n", limit && hundredths > limit ? "  MISSED" : "");
}

void bench_print(struct shell *sh, uint64_t value, const char *unit, const char *name,
                 ...)
{
    char text[NAME_MAX];
    va_list args;

    va_start(args, name);
    vscnprintf(text, sizeof(text), name, args);
    va_end(args);
    shell_printf(sh, "sonde.%s %lu %s", text, value, unit);
    print_goal(sh, text, 100 * value, true);
}

void bench_print_hundredths(struct shell *sh, int64_t value, const char *unit,
                            const char *name, ...)
{
    uint64_t shown = value < 0 ? 0 : (uint64_t)value;
    char text[NAME_MAX];
    va_list args;

    va_start(args, name);
    vscnprintf(text, sizeof(text), name, args);
    va_end(args);
    shell_printf(sh, "sonde.%s %lu.%02lu %s", text, shown / 100, shown % 100, unit);
    print_goal(sh, text, shown, false);
}
