/* place.h - how users name an instruction, and how the console names it to them.
 *
 *     PLACE = [MODULE:]SYM[#N][+OFF] | ADDRESS | FILE:LINE[#N]      OFF decimal or 0x...
 *
 * SYM#2 is the second function of that name, in the order of addresses. ADDRESS is 0x...,
 * or 16 hexadecimal digits as `probe list` prints them; if a symbol has these digits as
 * its name, the symbol is meant. FILE is a path, or the end of a path, and must end in
 * .c, .h, .asm or .inc; #N is the N-th of the places that the line was compiled to. The
 * lines of modules are not known.
 */
#pragma once

#include "kernel/console/shell.h"
#include "probes/kprobe.h"
#include "probes/many/place_text.h"

#include <stdint.h>

struct place {
    char symbol[PLACE_MAX]; /* with its #N; "": the place is @addr */
    unsigned offset;
    uintptr_t addr;
};

/* place_parse - read @text into @place.
 * Return: 0; -EINVAL @text is no place; -ENOENT, -EADDRNOTAVAIL it is a line that has no
 *         code, or code at several places.
 */
int place_parse(struct place *place, const char *text);
/* place_complete - offer, on Tab, symbols and lines that complete the place. */
void place_complete(struct shell_completion *c, int index);
/* place_no_place - print why place_parse() has refused @text. Return: the same errno. */
int place_no_place(struct shell *sh, const char *text);
/* place_fill - set the address of @p to @place, which must exist as long as @p is
 * registered.
 */
void place_fill(struct kprobe *p, const struct place *place);
/* place_find - find the address of @place. Return: 0; a reason's errno, with @why filled.
 */
int place_find(const struct place *place, uintptr_t *addr, struct probe_reject *why);

/* place_own_text - write @place into @buf of PLACE_TEXT_MAX bytes as the user gave it,
 * but always spelt alike; an address is written as a function and an offset.
 */
const char *place_own_text(char *buf, const struct place *place);

/* place_inlined - return at how many places the function of @place is inlined, if @place
 * is its entry. There its code runs without passing @place.
 * place_list_inlined - call @line for each of the first @max of these places. If there
 * are more, call it once more to tell how many.
 */
size_t place_inlined(const struct place *place);
void place_list_inlined(const struct place *place, size_t max,
                        void (*line)(void *arg, const char *text), void *arg);

/* place_refused - print why @place cannot carry a probe, and which places the user may
 * have meant.
 * Return: @why->err, a negative errno.
 */
int place_refused(struct shell *sh, const struct place *place,
                  const struct probe_reject *why);
