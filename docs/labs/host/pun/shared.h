/* shared.h - how the programs of lab 9 pass a text, its sites and plans to each other. */
#pragma once

#include "docs/labs/pun/start/pun.h"

#define TEXT_MAX 4096
#define BEHIND 64 /* bytes behind the last site */
#define SITES_MAX 2048

/* shared_tell - state a text and its sites as facts.
 * shared_read - read from standard input what shared_tell() has stated.
 * @bytes: TEXT_MAX bytes, @sites: SITES_MAX sites
 * Return: the number of sites.
 */
size_t shared_read(struct text *text, uint8_t *bytes, struct site *sites);
void shared_tell(const struct text *text, const struct site *sites, size_t count);

/* shared_text - choose addresses for a text of @len bytes and for its pads, which may lie
 * almost 2 GiB above the text and 256 MiB below it.
 */
struct text shared_text(const uint8_t *bytes, size_t len);

/* shared_prefixes - return the number of prefixes that pun.h allows in front of a jump.
 * @at: 11 bytes, of which the jump's E9 may be the last one
 */
unsigned shared_prefixes(const uint8_t *at);

/* plan_tell - state the plan of a site as a fact.
 * plan_read - read it from standard input.
 */
void plan_tell(const struct site *s);
void plan_read(struct site *s);
