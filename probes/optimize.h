/* optimize.h - stages 11 and 12 as the rest of the engine sees them: a site that is armed
 * becomes a jump in the background, and a breakpoint again whenever its bytes must change.
 */
#pragma once

#include "probes/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;
struct site_list;

/* optimize_kick - sites have been armed, or what stood in the way of others has gone: let
 * the optimizer look, soon. Context: thread.
 */
void optimize_kick(void);
/* optimize_retry - something has changed that sites without a jump may have been waiting for.
 * optimize_refuse - @site stays a breakpoint, for @reason, until then.
 * optimize_ask_again - or until what its jump would read changes. Return: was it refused?
 * optimize_refused - how many are; some may have gone since.
 * Locks: PLAT_PROBES held.
 */
void optimize_retry(void);
void optimize_refuse(struct site *site, enum probe_reason reason);
bool optimize_ask_again(struct site *site);
size_t optimize_refused(void);
/* optimize_sweep - neighbours that were evicted for a jump that is gone get their bytes back.
 * optimize_release - free pads and detours of @count sites that are no jumps any more;
 * nobody can be inside.
 * Context: thread.  Locks: PLAT_PROBES held; optimize_sweep waits for quiescence.
 */
void optimize_sweep(void);
void optimize_release(struct site **sites, size_t count);
/* optimize_write - make jumps of the sites in @list, as far as there are plans and memory;
 * each of the others is refused with its reason.
 * @neighbours: receives how many others were evicted for them
 * Locks: PLAT_PROBES held.  Return: jumps made, evicted neighbours included.
 */
size_t optimize_write(struct site_list *list, size_t *neighbours);
/* optimize_try - what would the site of an instruction without probes become, alone, with all
 * others as they are now? Nothing is changed.
 * @site: prepared, with its detour, and not registered   @out: the plan
 * Locks: PLAT_PROBES held.  Return: why it would stay a breakpoint; PROBE_OK.
 */
struct pun;
enum probe_reason optimize_try(struct site *site, struct pun *out);
/* optimize_write_regions - the same by the other method, for sites that are armed, and have
 * neither detours nor copies of earlier times.
 * Locks: PLAT_PROBES held; waits for quiescence.  Return: jumps made.
 */
size_t optimize_write_regions(struct site_list *list);
/* optimize_coming - make jumps of @count sites that are not armed yet, as far as that can be.
 * Locks: PLAT_PROBES held.
 */
void optimize_coming(struct site **sites, size_t count);
/* optimize_run - one pass: every armed site that may become a jump does, or knows why not.
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 */
void optimize_run(void);

enum optimize_method {
    OPTIMIZE_PUN,    /* one instruction, its successors' bytes as displacement */
    OPTIMIZE_REGION, /* whole instructions of at least 5 bytes */
    OPTIMIZE_OFF,    /* no jumps */
    OPTIMIZE_METHODS,
};

/* optimize_set_method - how jumps are placed. Those there are become breakpoints again and
 * then jumps of the new kind; on return that is done.
 * optimize_switch - jumps at all? On return every probe is what it may be.
 * Context: thread.  Locks: takes PLAT_PROBES; waits.
 * Return:  0; -EDEADLK called from a handler.
 */
int optimize_set_method(enum optimize_method method);
enum optimize_method optimize_get_method(void);
int optimize_switch(bool on);
bool optimize_is_on(void);

/* unoptimize_around - the bytes of @count sites are about to change: what is a jump among
 * them becomes a breakpoint again, and so does every jump whose displacement reads one of
 * these bytes, and so on. On return all of them are SITE_ARMED, or SITE_DISARMED if they
 * are leaving; and who was refused a jump, which would read one of them, is asked again.
 * Context: thread.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void unoptimize_around(struct site **sites, size_t count);
/* unoptimize_reserve - make sure of the memory that unoptimize_around() will need when @more
 * sites have become jumps: it may not fail.
 * unoptimize_expect - @count of them have.
 * unoptimize_jumps - how many there are.
 * unoptimize_forget - give the memory back when there are none.
 * Locks: PLAT_PROBES held.  Return: 0; -ENOMEM.
 */
int unoptimize_reserve(size_t more);
void unoptimize_expect(size_t count);
size_t unoptimize_jumps(void);
void unoptimize_forget(void);
/* unoptimize_reader - the jump with the lowest address that reads the byte at @addr as a part
 * of itself and does not begin there; NULL when there is none.
 * Locks: PLAT_PROBES held.
 */
struct site *unoptimize_reader(uintptr_t addr);

struct optimize_stats {
    size_t evicted;     /* neighbours that are jumps for the sake of others */
    size_t refused;     /* sites that stay breakpoints for a reason */
    uint64_t passes;    /* that found something to do */
    uint64_t optimized; /* jumps made, over all time */
};
void optimize_stats_get(struct optimize_stats *out);
