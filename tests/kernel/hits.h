/* hits.h - counts how often a function is called between two points of a kernel test. One
 * function at a time.
 */
#pragma once

#include <stdint.h>

struct hits;

/* hits_begin - count calls of @function from now on. Return: NULL when
 * it cannot be probed.
 */
struct hits *hits_begin(const char *function);

/* hits_end - stop counting. Return: the number of calls; UINT64_MAX when a hit was missed
 * or @h is NULL.
 */
uint64_t hits_end(struct hits *h);
