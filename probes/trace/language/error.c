/* error.c - holds the table of error texts, and keeps the log of refused lines. */
#include "probes/trace/language/error.h"

#include "kernel/base/compiler.h"
#include "libc/include/extra.h"

#include <stdio.h>
#include <string.h>

#define COMMAND_PREFIX "  Command: "

const char *trace_error_text(enum trace_error_id id)
{
#define TEXT_ROW(name, text) [TRACE_##name] = (text),
    static const char *const texts[] = { [TRACE_NO_ERROR] = "", TRACE_ERRORS(TEXT_ROW) };

    return (size_t)id < ARRAY_LEN(texts) ? texts[id] : "";
}

void error_log_add(struct error_log *log, uint64_t ns, const char *subsystem,
                   const char *text, const char *command, unsigned column)
{
    struct error_entry *entry = &log->entry[log->next];

    entry->ns = ns;
    entry->subsystem = subsystem;
    entry->text = text;
    entry->column = column;
    strlcpy(entry->command, command, sizeof(entry->command));
    log->next = (log->next + 1) % ERROR_LOG_KEPT;
    if (log->count < ERROR_LOG_KEPT)
        log->count++;
}

void error_log_clear(struct error_log *log)
{
    log->next = 0;
    log->count = 0;
}

size_t error_log_print(const struct error_log *log, unsigned index, char *buf,
                       size_t size)
{
    const struct error_entry *entry;
    unsigned long long us;
    unsigned oldest;

    if (index >= log->count)
        return 0;
    oldest = (log->next + ERROR_LOG_KEPT - log->count) % ERROR_LOG_KEPT;
    entry = &log->entry[(oldest + index) % ERROR_LOG_KEPT];
    us = entry->ns / 1000;
    return (size_t)snprintf(
        buf, size, "[%5llu.%06llu] %s: error: %s\n" COMMAND_PREFIX "%s\n%*s^\n",
        us / 1000000, us % 1000000, entry->subsystem, entry->text, entry->command,
        (int)(sizeof(COMMAND_PREFIX) - 1 + entry->column), "");
}
