/* format.h - what tools ask to read raw pages: the layout of a page, of an event's header
 * and of each event's records, as Linux describes them. Pure.
 */
#pragma once

#include "probes/trace/print.h"

/* format_page, format_header - events/header_page, events/header_event. */
void format_page(const struct print *p);
void format_header(const struct print *p);

/* format_event - events/GROUP/EVENT/format. */
void format_event(const struct print *p, const struct event *event);
