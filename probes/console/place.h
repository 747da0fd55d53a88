/* place.h - how people name an instruction, and how it is named to them.
 *
 *     PLACE = [MODULE:]SYM[#N][+OFF] | ADDRESS | FILE:LINE[#N]      OFF decimal or 0x...
 *
 * SYM#2 is the second function of that name, by address. ADDRESS is 0x..., or 16 hexadecimal
 * digits as `probe list` prints them; where a symbol has these digits for a name, the symbol
 * is meant. FILE is a path, or its end, and has to end in .c, .h, .asm or .inc; #N is the
 * N-th of the places that the line was compiled to. Modules have no lines here.
 */
#pragma once

#include "kernel/console/shell.h"
#include "probes/kprobe.h"

#include <stdint.h>

#define PLACE_MAX 128 /* bytes of a symbol's name, NUL included */

struct place {
    char symbol[PLACE_MAX]; /* with its #N; "" where there is an address */
    unsigned offset;
    uintptr_t addr;
};

/* place_parse - Return: 0; -EINVAL @text is no place; -ENOENT, -EADDRNOTAVAIL it is a line
 * that has no code, or code at several places.
 */
int place_parse(struct place *place, const char *text);
/* place_complete - offer what may stand for a place on Tab: symbols and lines. */
void place_complete(struct shell_completion *c, int index);
/* place_no_place - tell why place_parse() has refused @text. Return: the same errno. */
int place_no_place(struct shell *sh, const char *text);
/* place_fill - let @p be at @place, which must live as long as @p is registered. */
void place_fill(struct kprobe *p, const struct place *place);
/* place_find - its address. Return: 0; a reason's errno, with @why filled. */
int place_find(const struct place *place, uintptr_t *addr, struct probe_reject *why);

#define PLACE_TEXT_MAX (PLACE_MAX + 24)
/* place_text - "vfs_read+0x4" into @buf of PLACE_TEXT_MAX bytes; outside of functions
 * "0x...". Context: any.
 */
const char *place_text(char *buf, uintptr_t addr);

/* place_own_text - @place as it was given, in one spelling; an address by its function. */
const char *place_own_text(char *buf, const struct place *place);

/* place_inlined - at how many places is the function inlined, if @place is a function's
 * entry? There it is executed without passing @place.
 * place_list_inlined - call @line for the first @max of them, and for how many are left.
 */
size_t place_inlined(const struct place *place);
void place_list_inlined(const struct place *place, size_t max,
                        void (*line)(void *arg, const char *text), void *arg);

/* place_refused - print why @place can carry no probe, and which places the user may have
 * meant.
 * Return: @why->err, a negative errno.
 */
int place_refused(struct shell *sh, const struct place *place,
                  const struct probe_reject *why);
