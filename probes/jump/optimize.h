/* optimize.h - stages 11 and 12 as the rest of the engine sees them: the optimizer makes
 * armed sites jumps, in the background. A jump becomes a breakpoint again when its bytes
 * must change.
 */
#pragma once

#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;
struct site_list;

/* optimize_kick - let the optimizer run soon: sites have been armed, or a reason against
 * other jumps has gone. In the context `held` nothing happens. Context: thread or held.
 */
void optimize_kick(void);
/* optimize_retry - let all refused sites wait for a jump again.
 * optimize_refuse - refuse @site a jump, for @reason: it stays a breakpoint.
 * optimize_ask_again - bytes that a jump at @site would read have changed: if it was refused
 * for a reason that other bytes may remove, let it wait again.  Return: does it?
 * optimize_refused - how many sites are refused, at most: sites that were freed since
 * count as well. Locks: PLAT_PROBES held.
 */
void optimize_retry(void);
void optimize_refuse(struct site *site, enum probe_reason reason);
bool optimize_ask_again(struct site *site);
size_t optimize_refused(void);
/* optimize_sweep - free the neighbours that were evicted for jumps that are gone; their
 * text becomes the original.
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void optimize_sweep(void);

struct optimize_result {
    size_t made;    /* new jumps, evicted neighbours included */
    size_t evicted; /* neighbours that were evicted */
    bool is_done;   /* false: nothing has changed */
};
/* optimize_change - change the text of many sites in one batch:
 *   - a site in @up becomes a jump if there is a plan for it; else it is refused a jump,
 *     with the reason
 *   - a site in @down becomes an int3; if it is being disarmed, it gets its original
 *     bytes
 *   - jumps that read bytes of these sites get other places
 * @up, @down: sorted; those in @up have detours, and are no jumps
 * Locks:  PLAT_PROBES held.
 * Return: PROBE_OK; else the reason why nothing has changed. PROBE_OK without is_done:
 *         @up is empty, and no jump reads bytes of @down.
 */
enum probe_reason optimize_change(const struct site_list *up,
                                  const struct site_list *down,
                                  struct optimize_result *result);
/* optimize_around - make @count sites int3s; those that are being disarmed get their
 * original bytes. Jumps that read bytes of these sites remain jumps if there are plans
 * for them. The function sorts @sites. Locks: PLAT_PROBES held.
 * Return: false: nothing has changed. No jump reads bytes of these sites, or there is no
 *         memory, or the optimizer may make no jumps now.
 */
bool optimize_around(struct site **sites, size_t count);
/* optimize_try - plan a jump at an instruction without probes, on its own, with all other
 * sites as they are now. Nothing is changed.
 * @site: prepared, with its detour, and not registered   @out: the plan
 * Locks: PLAT_PROBES held.  Return: PROBE_OK; else why the site would stay a breakpoint.
 */
struct pun;
enum probe_reason optimize_try(struct site *site, struct pun *out);
/* optimize_write_regions - make jumps of the sites in @list by the region method. The
 * sites are armed, and have no detours and no copies from earlier jumps.
 * Locks: PLAT_PROBES held; waits for quiescence.  Return: jumps made.
 */
size_t optimize_write_regions(struct site_list *list);
/* optimize_run - run one pass: every armed site that may become a jump becomes one, or
 * gets a reason why not.
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 */
void optimize_run(void);
/* optimize_at_once - run one pass now, for a caller that holds the lock. Sites that wait
 * and are not armed yet become jumps as well.
 * Locks: PLAT_PROBES held; waits for quiescence.
 */
void optimize_at_once(void);

enum optimize_method {
    OPTIMIZE_PUN,    /* a jump replaces one instruction, and reads bytes behind it */
    OPTIMIZE_REGION, /* a jump displaces whole instructions of at least 5 bytes */
    OPTIMIZE_OFF,    /* no jumps */
    OPTIMIZE_METHODS,
};

/* optimize_set_method - choose how jumps are placed. The existing jumps become
 * breakpoints and then jumps by the new method; on return this is done.
 * optimize_switch - choose whether there are jumps at all. On return every site is a jump
 * or a breakpoint accordingly.
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EDEADLK called from a handler.
 */
int optimize_set_method(enum optimize_method method);
enum optimize_method optimize_get_method(void);
int optimize_switch(bool on);
bool optimize_is_on(void);

/* No jump is longer, in bytes, from its first byte to the last one that it reads. */
#define UNOPTIMIZE_SPAN_MAX 9

/* unoptimize_around - the bytes of @count sites are about to change. The jumps among these
 * sites, and the jumps that read a byte of such a site or jump, become breakpoints, or get
 * their original bytes if they are being disarmed. Refused sites in front wait again. Cannot
 * fail. Sorts @sites.
 * Context: thread or held.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void unoptimize_around(struct site **sites, size_t count);
/* unoptimize_ask_before - the bytes of @count sites change: refused sites in front of them
 * that would use one of these bytes wait again. Locks: PLAT_PROBES held.
 */
void unoptimize_ask_before(struct site **sites, size_t count);
/* unoptimize_expect - add @more to the number of jumps; @more may be negative.
 * unoptimize_jumps - how many sites are jumps. Locks: PLAT_PROBES held.
 */
void unoptimize_expect(long more);
size_t unoptimize_jumps(void);
/* unoptimize_next_before - the next site in front of @addr from which a jump could reach
 * @addr. The sites come in ascending order.
 * @last: the site that the call before has returned; NULL for the first call
 * Locks:  PLAT_PROBES held.  Return: NULL after the last site.
 */
struct site *unoptimize_next_before(uintptr_t addr, const struct site *last);
#define unoptimize_for_each_before(site, addr)                                           \
    for ((site) = unoptimize_next_before((addr), NULL); (site);                          \
         (site) = unoptimize_next_before((addr), (site)))
/* unoptimize_reads - is @site a jump with the byte at @addr as a part of it, behind its
 * first byte? Locks: PLAT_PROBES held.
 */
bool unoptimize_reads(const struct site *site, uintptr_t addr);
/* unoptimize_reader - the jump with the lowest address of all jumps that begin in front
 * of @addr and have the byte at @addr as a part of them; NULL: there is none.
 * Locks: PLAT_PROBES held.
 */
struct site *unoptimize_reader(uintptr_t addr);
/* unoptimize_region - if the jump of a region has displaced the instruction at @addr, make
 * the jump a breakpoint: CPUs that come to @addr from elsewhere must find the instruction.
 * Context: thread or held.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void unoptimize_region(uintptr_t addr);

struct optimize_stats {
    size_t evicted;     /* evicted neighbours: jumps that only other jumps need */
    size_t refused;     /* sites that stay breakpoints for a reason */
    uint64_t passes;    /* passes that found something to do */
    uint64_t optimized; /* jumps made, over all time */
};
void optimize_stats_get(struct optimize_stats *out);
