/* commands_watch.h - what the commands of `probe` say of watches. */
#pragma once

#include "probes/console/place.h"

#include <stddef.h>
#include <stdint.h>

struct console_probe;

/* watch_place_find - the address of @place, data or function.
 * @size: of the symbol, if @place is the beginning of one; else 0
 * Return: 0; -ENOENT; -EADDRNOTAVAIL, told already.
 */
int watch_place_find(struct shell *sh, const struct place *place, uintptr_t *addr,
                     size_t *size);
/* watch_place_is_data - is it the name of data, or in data? */
bool watch_place_is_data(const struct place *place);
/* watch_place_text - "ticks+0x8" into @buf of PLACE_TEXT_MAX bytes, of data and functions.
 * Context: any.
 */
const char *watch_place_text(char *buf, uintptr_t addr);

/* watch_print - the line of @cp in `probe list`. Locks: console_probe_lock() held. */
void watch_print(struct shell *sh, const struct console_probe *cp);

/* watch_explain - the watches of the console that watch @addr.
 * watch_explain_data - all that is known of @place, which is no function's.
 * Return: 0; -ENOENT, told already.
 */
void watch_explain(struct shell *sh, uintptr_t addr);
int watch_explain_data(struct shell *sh, const struct place *place);
