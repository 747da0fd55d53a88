/* shared.h - what the programs of lab 9 tell each other: a text and its sites. */
#pragma once

#include "docs/labs/pun/start/pun.h"

#define TEXT_MAX 4096
#define BEHIND 64 /* bytes behind the last site */
#define SITES_MAX 2048

/* shared_read - from standard input what shared_tell() has stated.
 * @bytes: TEXT_MAX bytes, @sites: SITES_MAX
 * Return: how many sites.
 */
size_t shared_read(struct text *text, uint8_t *bytes, struct site *sites);
void shared_tell(const struct text *text, const struct site *sites, size_t count);

/* shared_text - an address map for @len bytes: 2 GiB for pads above, and some below. */
struct text shared_text(const uint8_t *bytes, size_t len);

/* plan_tell, plan_read - the answer for a site, as a fact; from standard input. */
void plan_tell(const struct site *s);
void plan_read(struct site *s);
