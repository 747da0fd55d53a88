/* detour.h - makes detours: the code that a jump leads to in place of the instruction.
 *
 * A detour is made for the probes at its site, and does only what these probes need.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;
struct probe_reject;
struct site;

enum detour_kind {
    DETOUR_NONE,    /* no enabled probe, as at an evicted neighbour: the copy alone */
    DETOUR_PROGRAM, /* only probes that count or have a program: their code counts */
    DETOUR_RETURN,  /* one return probe without a handler at the entry: the detour
                    * calls the function itself, without an image */
    DETOUR_LIGHT,   /* one probe with a light handler, which is called without an image */
    DETOUR_CALL,    /* pre-handlers, then the copy */
    DETOUR_POST,    /* pre-handlers, the copy, post-handlers */
    DETOUR_IMAGE,   /* the instruction is applied to the image, between the handlers */
    DETOUR_KINDS,
};

/* detour_kind_name - the name of @kind: "none", "program", "return", "light", "call",
 * "post", "image"; "?" if unknown. Context: any.
 */
const char *detour_kind_name(enum detour_kind kind);

/* detour_kind_text - one sentence about what such a detour does. Context: any. */
const char *detour_kind_text(enum detour_kind kind);

/* detour_prepare - make a detour for @site that fits its present probes. If the site has
 * a detour that does not fit, the caller has released it. CPUs may run into the new
 * detour only after the next plat_sync_cores().
 *
 * The detour of a direct call relies on the call's opcode in the text: the CPU pushes the
 * return address before it enters the detour.
 *
 * Locks:  PLAT_PROBES held; takes PLAT_TEXT.
 * Return: 0; -ENOMEM or -ERANGE, and @site has no detour.
 */
int detour_prepare(struct site *site, struct probe_reject *why);
/* detour_is_current - has @site a detour, and does this detour fit the present probes?
 * Locks: PLAT_PROBES held.
 */
bool detour_is_current(const struct site *site);
/* detour_release - free the detour of @site, if it has one. The caller makes sure that no
 * jump leads there, and that quiescence has passed since the last one did.
 * Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void detour_release(struct site *site);
/* detour_cell - the cell that only the detour of @site uses; NULL: the detour lies in the
 * cell of the boosted copy, or needs no cell. Locks: PLAT_PROBES held.
 */
uint8_t *detour_cell(const struct site *site);
/* detour_start - the address of the copy of the instruction in @cell, a cell of @site
 * that a jump may lead to. Context: any.
 */
uintptr_t detour_start(const struct site *site, uintptr_t cell);
/* detour_count_len - how many bytes of code count a hit of one probe in front of a copy of
 * @insn.
 * Context: any.
 */
size_t detour_count_len(const struct insn *insn);
/* detour_kind_wanted - the kind of detour that detour_prepare() would make for @site.
 * Locks: PLAT_PROBES held.
 */
enum detour_kind detour_kind_wanted(const struct site *site);
/* detour_may_change_flags - may a detour change the status flags @flags before the
 * program goes on with @insn? Yes, if the program overwrites them before it reads them.
 * Context: any.
 */
bool detour_may_change_flags(const struct insn *insn, uint32_t flags);
/* detour_can_reach - does a copy of @insn work in every cell? It does not if the address
 * that @insn refers to may be more than 2 GB away from the cell. Context: any.
 */
bool detour_can_reach(const struct insn *insn);
