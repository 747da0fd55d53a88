/* tracer.h - a small event tracer: a control file that is written, and probes that count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TRACER_LINE_MAX 127 /* characters of a line, without its end */

struct writer;

/* tracer_open - somebody opens the control file to write. Never fails.
 * @clear: all probes go first, those that other writers are just adding as well
 */
struct writer *tracer_open(bool clear);

/* tracer_write - some of the text that is written to the file. Each line is
 *
 *     p PLACE     a probe: at a function (alpha), inside (alpha+0x10), at an address (0x1000)
 *     r PLACE     a probe at the returns of a function
 *     # ...       nothing; and so is an empty line
 *
 * A line may come in pieces, and several may come at once. Numbers are as in C.
 *
 * Return: @len; -1: a line is wrong or too long. Lines before it hold, the rest of the text
 *         is not looked at.
 */
long tracer_write(struct writer *w, const char *text, size_t len);

/* tracer_close - a last line may have no end. Return: 0; -1: that line is wrong. */
int tracer_close(struct writer *w);

/* tracer_list - a line for each probe, in the order in which they were added:
 * "p alpha+0x10 hits=3".
 * Return: how many characters there are; no more than @size - 1 of them are in @out.
 */
size_t tracer_list(char *out, size_t size);
