/* log.c - keeps the log in a ring of text, and copies lines to the sink.
 *
 * Locks: log.lock guards the ring and keeps lines whole at the sink. A panic does not take
 * it: the CPU that held it may be stopped, and would never let it go.
 */
#include "kernel/debug/log.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/clock.h"

#include <stdarg.h>
#include <stdio.h>

#define RING_LEN (128 * KiB) /* a power of two */

static struct {
    struct spinlock lock;
    uint64_t head; /* [lock] bytes ever written */
    char ring[RING_LEN];
    void (*sink)(const char *line, size_t len); /* set at boot */
    enum log_level sink_level;
} log = { .lock = SPINLOCK_INIT };

static void log_ring_put(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        log.ring[(log.head + i) % RING_LEN] = line[i];
    log.head += len;
}

static size_t format_line(char *line, const char *fmt, va_list args)
{
    uint64_t us = clock_ns() / 1000;
    int n = scnprintf(line, LOG_LINE_MAX - 1,
                      "[%5llu.%06llu] C%u: ", (unsigned long long)(us / 1000000),
                      (unsigned long long)(us % 1000000), cpu_id());

    n += vscnprintf(line + n, (size_t)(LOG_LINE_MAX - 1 - n), fmt, args);
    line[n++] = '\n';
    return (size_t)n;
}

void log_print(enum log_level level, const char *fmt, ...)
{
    char line[LOG_LINE_MAX];
    unsigned long flags;
    va_list args;
    size_t len;

    va_start(args, fmt);
    len = format_line(line, fmt, args);
    va_end(args);
    spin_lock_irqsave(&log.lock, &flags);
    log_ring_put(line, len);
    if (log.sink && level <= log.sink_level)
        log.sink(line, len);
    spin_unlock_irqrestore(&log.lock, flags);
}

INIT void log_set_sink(void (*fn)(const char *line, size_t len), enum log_level level)
{
    log.sink = fn;
    log.sink_level = level;
}

size_t log_read(uint64_t *pos, char *buf, size_t len)
{
    unsigned long flags;
    size_t n = 0;

    spin_lock_irqsave(&log.lock, &flags);
    if (log.head > RING_LEN && *pos < log.head - RING_LEN) {
        *pos = log.head - RING_LEN;
        while (*pos < log.head && log.ring[(*pos)++ % RING_LEN] != '\n')
            continue; /* the oldest line has lost its start */
    }
    while (n < len && *pos < log.head)
        buf[n++] = log.ring[(*pos)++ % RING_LEN];
    spin_unlock_irqrestore(&log.lock, flags);
    return n;
}
