/* commands_watch.h - declares how the commands of `probe` find, print and explain
 * watches.
 */
#pragma once

#include "probes/console/place.h"

#include <stddef.h>
#include <stdint.h>

struct console_probe;

/* watch_place_find - find the address of @place, in data or in a function.
 * @size: receives the size of the symbol if @place is its beginning, else 0
 * Return: 0; -ENOENT no such symbol; -EADDRNOTAVAIL several symbols have this name. The
 *         error is told already.
 */
int watch_place_find(struct shell *sh, const struct place *place, uintptr_t *addr,
                     size_t *size);
/* watch_place_is_data - does @place name a data symbol, or a byte behind its beginning?
 */
bool watch_place_is_data(const struct place *place);
/* watch_place_text - write the name of @addr, such as "ticks+0x8", into @buf of
 * PLACE_TEXT_MAX bytes. Both data and functions have names. Context: any.
 */
const char *watch_place_text(char *buf, uintptr_t addr);

/* watch_print - print the line of @cp in `probe list`. Locks: the console's lock held. */
void watch_print(struct shell *sh, const struct console_probe *cp);

/* watch_explain - print which watches of the console watch @addr.
 * watch_explain_data - print all that is known of @place, which is not in a function.
 * Return: 0; -ENOENT, told already.
 */
void watch_explain(struct shell *sh, uintptr_t addr);
int watch_explain_data(struct shell *sh, const struct place *place);
