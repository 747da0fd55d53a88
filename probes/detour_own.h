/* detour_own.h - code of its own, in the place of a call of code that all sites share.
 *
 * For DETOUR_CALL, where one pre-handler is all there is: what the shared code has to look
 * up is a constant here. It takes a cell of INSN_SLOT_OWN_LEN bytes, of which there are some:
 * who comes first has one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* detour_own_fits - would it do for the probes of @site, whose detour is a DETOUR_CALL?
 * Locks: PLAT_PROBES held.
 */
bool detour_own_fits(const struct site *site);
/* detour_own_entry - where it is entered, bytes from its start. */
size_t detour_own_entry(bool flags_live);
/* detour_own_put - write it; the copy of the instruction goes behind.
 * @out: INSN_SLOT_OWN_CODE_MAX bytes   @at: where it will be
 * @len: receives how long it is
 * Locks:  PLAT_PROBES held.
 * Return: 0; -ERANGE the handler is out of reach.
 */
int detour_own_put(uint8_t *out, uintptr_t at, const struct site *site, bool flags_live,
                   size_t *len);
/* detour_own_is_current - is the code of its own that @site has the one it needs?
 * Locks: PLAT_PROBES held.
 */
bool detour_own_is_current(const struct site *site);
