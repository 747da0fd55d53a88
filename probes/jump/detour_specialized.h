/* detour_specialized.h - a detour whose code is made for its site alone, in the place of a
 * call of the code that all sites share.
 *
 * For DETOUR_CALL, where one pre-handler is all there is, and for DETOUR_LIGHT: what the
 * shared code has to look up is a constant here. A probe that has struct kprobe_stores is
 * called in neither way: see stores.h. It takes a cell of INSN_SLOT_DETOUR_LEN bytes.
 * A site for which there is no such cell uses the shared code: all do that for what is rare.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plat_pattern;
struct site;

/* detour_specialized_fits - can code made for @site alone serve its probes? Its detour is a
 * DETOUR_CALL or a DETOUR_LIGHT.
 * Locks: PLAT_PROBES held.
 */
bool detour_specialized_fits(const struct site *site);
/* detour_specialized_is_denied - has @site a detour that calls the shared code for want of
 * memory? CMPXCHG8B, which never has code of its own, counts as well.
 * Locks: PLAT_PROBES held.
 */
bool detour_specialized_is_denied(const struct site *site);
/* detour_specialized_keeps - does the handler of @site need all fields of struct plat_light
 * saved?
 * Locks: PLAT_PROBES held.
 */
bool detour_specialized_keeps(const struct site *site);
/* detour_specialized_pattern - the instructions with holes that the code is made of. */
const struct plat_pattern *detour_specialized_pattern(const struct site *site, bool keeps,
                                                      bool flags_live);
/* detour_specialized_put - write @pattern; the copy of the instruction goes behind.
 * @out: INSN_SLOT_DETOUR_CODE_MAX bytes   @at: where it will be
 * @flags_live: as it was asked for   @len: receives how long it is, with its body
 * Locks:  PLAT_PROBES held.
 * Return: 0; -ERANGE the handler is out of reach.
 */
int detour_specialized_put(uint8_t *out, uintptr_t at, const struct site *site,
                           const struct plat_pattern *pattern, bool flags_live,
                           size_t *len);
/* detour_specialized_is_current - is the code that was made for @site still what its probes
 * need?
 * Locks: PLAT_PROBES held.
 */
bool detour_specialized_is_current(const struct site *site);
