/* detour.h - what a jump runs in the place of the instruction it has replaced.
 *
 * A detour is made for the probes that are at its site: as little as they need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct insn;
struct probe_reject;
struct site;

enum detour_kind {
    DETOUR_NONE, /* no probe: the instruction alone, for a neighbour that had to give way */
    DETOUR_COUNT,  /* one probe without handlers: counted by one instruction */
    DETOUR_RETURN, /* one return probe without a handler at the entry: the function is
                    * called in its caller's stead, without an image */
    DETOUR_LIGHT,  /* one probe with a light handler: it is called without an image */
    DETOUR_CALL,   /* pre-handlers, then the copy */
    DETOUR_POST,   /* pre-handlers, the copy, post-handlers */
    DETOUR_IMAGE, /* the instruction is done to the register image, between the handlers */
    DETOUR_KINDS,
};

/* detour_kind_name - "none", "count", "return", "light", "call", "post", "image";
 * "?" if unknown.
 * Context: any.
 */
const char *detour_kind_name(enum detour_kind kind);

/* detour_kind_text - what is done, in one sentence. Context: any. */
const char *detour_kind_text(enum detour_kind kind);

/* detour_prepare - make a detour for @site that fits its present probes. If the site has
 * a detour that does not fit, the caller has released it. CPUs may run into the new
 * detour only after the next plat_sync_cores().
 *
 * The detour of a direct call expects that the call's opcode stays in the text, so that
 * the CPU has pushed the return address.
 *
 * Locks:  PLAT_PROBES held; takes PLAT_TEXT.
 * Return: 0; -ENOMEM or -ERANGE, and @site has no detour.
 */
int detour_prepare(struct site *site, struct probe_reject *why);
/* detour_is_current - has @site a detour, and does it fit the present probes?
 * Locks: PLAT_PROBES held.
 */
bool detour_is_current(const struct site *site);
/* detour_release - @site has no detour any more. No jump leads there, and there has been
 * quiescence since. Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void detour_release(struct site *site);
/* detour_cell - the cell that only the detour of @site uses. NULL: the detour lies in the
 * cell of the instruction's copy, or needs no cell. Locks: PLAT_PROBES held.
 */
uint8_t *detour_cell(const struct site *site);
/* detour_start - where the copy of the instruction begins in @cell, a cell of @site that a
 * jump may lead to. Context: any.
 */
uintptr_t detour_start(const struct site *site, uintptr_t cell);
/* detour_kind_wanted - what detour_prepare() would make. Locks: PLAT_PROBES held. */
enum detour_kind detour_kind_wanted(const struct site *site);
/* detour_may_change_flags - is a detour allowed to change the status flags @flags before
 * the program goes on with @insn? Yes, if the program overwrites them before it reads
 * them.
 * Context: any.
 */
bool detour_may_change_flags(const struct insn *insn, uint32_t flags);
/* detour_can_reach - can a copy of @insn work in any cell? It cannot if the address that
 * @insn refers to may be more than 2 GB away from the cell. Context: any.
 */
bool detour_can_reach(const struct insn *insn);
