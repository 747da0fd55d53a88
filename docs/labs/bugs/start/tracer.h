/* tracer.h - a small event tracer: lines in a control file make probes that count hits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TRACER_LINE_MAX 127 /* characters of a line, without its end */

/* While no writer is open and there is no probe, no memory is allocated. */
struct writer;

/* tracer_open - open the control file for writing. Never fails.
 * @clear: first remove all probes, also probes that other writers are just adding
 */
struct writer *tracer_open(bool clear);

/* tracer_write - write a piece of text to the file. Each line of the file is
 *
 *     p PLACE     a probe: at a function (alpha), inside (alpha+0x10) or at an address
 *                 (0x1000)
 *     r PLACE     a probe at the returns of a function
 *     # ...       a comment; like an empty line, it has no effect
 *
 * A line may come in pieces, and several lines may come at once. Numbers are as in C.
 *
 * Return: @len; -1: a line is wrong or too long. The lines before it have their effect.
 *         The rest of the text is ignored, and the next text begins a new line.
 */
long tracer_write(struct writer *w, const char *text, size_t len);

/* tracer_close - close the file. Its last line may have no line end.
 * Return: 0; -1: the last line is wrong.
 */
int tracer_close(struct writer *w);

/* tracer_list - write a line for each probe, such as "p alpha+0x10 hits=3", in the order
 * in which the probes were added.
 * Return: the number of characters of all lines; at most @size - 1 of them are in @out.
 */
size_t tracer_list(char *out, size_t size);
