/* format.h - prints the layouts that a tool needs to read raw pages: the layout of a
 * page, of an event's header and of the records of each event, in Linux's form. Pure.
 */
#pragma once

#include "probes/trace/ring/print.h"

/* format_page, format_header - print the files events/header_page and
 * events/header_event.
 */
void format_page(const struct print *p);
void format_header(const struct print *p);

/* format_event - print the file events/GROUP/EVENT/format. */
void format_event(const struct print *p, const struct event *event);
