/* stores.h - a body for code of a site's own: struct kprobe_stores, as instructions.
 *
 * It stands where PLAT_SPECIALIZED_LIGHT calls the handler, with what that saves on the
 * stack:
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

/* The most that a body takes: five registers of eight bytes each, at least. Behind the
 * pattern that it is put into, the copy of any instruction has room then.
 */
#define STORES_CODE_MAX 64

/* stores_of - what the one probe of @site has for a body; NULL: none, or none that code of a
 * site's own can do, or has room for. Locks: PLAT_PROBES held.
 */
const struct kprobe_stores *stores_of(const struct site *site);
/* stores_put - write it. @out: STORES_CODE_MAX bytes   @at: where it will be
 * @flags_saved: the pattern saves the status flags
 * @len: receives its length, which depends neither on @at nor on the site
 * Locks:  PLAT_PROBES held.
 * Return: 0; -ERANGE begin or end is out of reach.
 */
int stores_put(uint8_t *out, uintptr_t at, const struct site *site, bool flags_saved,
               size_t *len);
