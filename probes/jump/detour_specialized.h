/* detour_specialized.h - makes specialized detours: the code of such a detour is made for
 * one site, instead of a call of the code that all sites share.
 *
 * They serve as DETOUR_CALL at a site with a single pre-handler and no other handler, and
 * as DETOUR_LIGHT, for programs that call functions. A pre-handler whose code shows that it
 * needs no image (handler.h) is called without one, as a light handler is.
 *
 * Values that the shared code has to look up are constants in this code. A specialized
 * detour takes a cell of INSN_SLOT_DETOUR_LEN bytes, or INSN_SLOT_LONG_LEN. Without memory
 * for such a cell the site uses the shared code; every specialized detour also calls that
 * code in rare cases.
 */
#pragma once

#include "probes/jump/platform_jump.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;

/* detour_specialized_fits - can a specialized detour serve the probes of @site? Its kind
 * is then DETOUR_CALL or DETOUR_LIGHT. Locks: PLAT_PROBES held.
 */
bool detour_specialized_fits(const struct site *site);
/* detour_specialized_is_denied - does the detour of @site call the shared code only
 * because there was no memory? A site with CMPXCHG8B, which never has a specialized
 * detour, counts as well. Locks: PLAT_PROBES held.
 */
bool detour_specialized_is_denied(const struct site *site);
/* detour_specialized_which - the pattern from which the code for @site is made. It depends on
 * the code of the handlers, which is decoded. Locks: PLAT_PROBES held.
 */
enum plat_specialized detour_specialized_which(const struct site *site);
/* detour_specialized_put - write the code for @site. The copy of the instruction comes behind
 * it.
 * @out: INSN_SLOT_LONG_CODE_MAX bytes
 * @at:  the address where the code will be executed
 * @which: the answer of detour_specialized_which()
 * @len: receives the length of the code, with its body
 * Locks:  PLAT_PROBES held.
 * Return: 0; -ERANGE a function is out of reach; -E2BIG the programs are too long.
 */
int detour_specialized_put(uint8_t *out, uintptr_t at, const struct site *site,
                           enum plat_specialized which, bool flags_live, size_t *len);
/* detour_specialized_is_current - is the specialized code of @site still the code that
 * its probes need?
 * Locks: PLAT_PROBES held.
 */
bool detour_specialized_is_current(const struct site *site);
