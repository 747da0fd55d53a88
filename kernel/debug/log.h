/* log.h - writes the log of the kernel, to a ring for dmesg and to a sink. */
#pragma once

#include "kernel/base/compiler.h"

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

#define LOG_LINE_MAX 512 /* bytes of one line, prefix and LF included; longer is cut */

/* log_print - log a line, prefixed with the time and the CPU: "[    0.012345] C0: text".
 * Context: boot or thread or irq or panic, interrupts on or off.
 * Locks:   takes the log's lock.
 */
void log_print(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...) log_print(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_print(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_print(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_print(LOG_DEBUG, __VA_ARGS__)

/* log_set_sink - pass each line with level <= @level to @fn, too; @fn must not log. */
void log_set_sink(void (*fn)(const char *line, size_t len), enum log_level level);

/* log_read - copy lines out of the ring, oldest first.
 * @pos: 0 to start; moves on behind the copied bytes (and past overwritten bytes)
 *
 * Context: thread or held.  Return: bytes copied; 0 at the end.
 */
size_t log_read(uint64_t *pos, char *buf, size_t len);
