/* hits.h - how often does a function run while something is done? For kernel tests. */
#pragma once

#include <stdint.h>

struct hits;

/* hits_begin - count calls of @function from now on. Return: NULL when it cannot be. */
struct hits *hits_begin(const char *function);

/* hits_end - stop counting. Return: the calls; UINT64_MAX when a hit was missed or @h is
 * NULL.
 */
uint64_t hits_end(struct hits *h);
