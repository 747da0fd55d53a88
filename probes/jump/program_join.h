/* program_join.h - gives the program of a probe its memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kprobe;
struct probe_reject;

/* program_join - verify the program of @p, if it has one, and reserve its words, which begin
 * as its operations say. From now on its pre-handler is program_handler().
 * Locks: PLAT_PROBES held.
 * Return: 0; the errno of the refusal, with @why filled.
 * program_part - undo that, when no hit can run the program any more.
 * Locks: PLAT_PROBES held.
 */
int program_join(struct kprobe *p, uintptr_t addr, struct probe_reject *why);
void program_part(struct kprobe *p);

/* programs_of - list the programs of the enabled probes of @site; a light handler is one that
 * calls it. @out points into itself, and into the probes. Locks: PLAT_PROBES held.
 * Return: false: C code has to run, because a probe has handlers, there are too many probes,
 *         or a probe that calls functions wants interrupts to be off.
 */
struct programs;
struct site;
bool programs_of(const struct site *site, struct programs *out);
/* programs_of_handler - the same for a site with one handler, which is called with the
 * address in place of the image.
 */
void programs_of_handler(const struct site *site, struct programs *out);
