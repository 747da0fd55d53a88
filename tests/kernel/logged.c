/* logged.c - looks through the log line by line. */
#include "tests/kernel/logged.h"

#include "kernel/debug/log.h"

#include <stdbool.h>
#include <string.h>

static bool has(const char *line, const char *a, const char *b)
{
    const char *found = strstr(line, a);

    return found && strstr(found + strlen(a), b);
}

unsigned logged(const char *a, const char *b)
{
    static char line[LOG_LINE_MAX + 1];
    size_t len = 0;
    uint64_t pos = 0;
    unsigned count = 0;

    while (log_read(&pos, &line[len], 1) > 0) {
        if (line[len] != '\n' && len < LOG_LINE_MAX - 1) {
            len++;
            continue;
        }
        line[len] = '\0';
        count += has(line, a, b);
        len = 0;
    }
    return count;
}
