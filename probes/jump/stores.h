/* stores.h - makes bodies for specialized detours: a body is struct kprobe_stores, as
 * instructions.
 *
 * The body stands in a copy of the pattern PLAT_SPECIALIZED_LIGHT, in place of the call
 * of the handler. It uses what that pattern has saved on the stack:
 *
 *       call begin              rdi and rsi are as for a light handler
 *       test rax, rax
 *       jz   skip
 *       mov  [rax + offset], register        or from where the register was saved
 *       ...
 *       mov  rdi, rdx
 *       call end
 * skip:
 */
#pragma once

#include "probes/jump/kprobe_stores.h"

struct site;

/* The most bytes of a body. This is enough for five registers of eight bytes each. A cell
 * with the pattern and such a body still has room for the copy of any instruction.
 */
#define STORES_CODE_MAX 64

/* stores_of - the struct kprobe_stores of the one probe of @site; NULL: it has none, or a
 * body cannot do what it asks for, or has no room for it. Locks: PLAT_PROBES held.
 */
const struct kprobe_stores *stores_of(const struct site *site);
/* stores_put - write the body for @site.
 * @out: STORES_CODE_MAX bytes   @at: the address where the body will be executed
 * @flags_saved: the pattern saves the status flags
 * @len: receives the length of the body, which depends neither on @at nor on the site
 * Locks:  PLAT_PROBES held.
 * Return: 0; -ERANGE begin or end is out of reach.
 */
int stores_put(uint8_t *out, uintptr_t at, const struct site *site, bool flags_saved,
               size_t *len);
