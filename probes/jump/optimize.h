/* optimize.h - stages 11 and 12 as the rest of the engine sees them: a site that is armed
 * becomes a jump in the background, and a breakpoint again whenever its bytes must change.
 */
#pragma once

#include "probes/core/reject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct site;
struct site_list;

/* optimize_kick - sites have been armed, or a reason against other jumps has gone: let the
 * optimizer look, soon. Context: thread.
 */
void optimize_kick(void);
/* optimize_hold - from now on nothing becomes a jump, or gets another place, and nothing
 * waits for quiescence: jumps whose bytes must change become breakpoints. Or no longer.
 * Context: any, all other CPUs stand still.
 */
void optimize_hold(bool hold);
/* optimize_retry - something has changed that sites without a jump may have been waiting for.
 * optimize_refuse - @site stays a breakpoint, for @reason, until then.
 * optimize_ask_again - bytes that its jump would read have changed: look at it again.
 * Return: was it refused?
 * optimize_refused - how many are; some may have gone since.
 * Locks: PLAT_PROBES held.
 */
void optimize_retry(void);
void optimize_refuse(struct site *site, enum probe_reason reason);
bool optimize_ask_again(struct site *site);
size_t optimize_refused(void);
/* optimize_sweep - neighbours that were evicted for a jump that is gone get their bytes back.
 * Context: thread.  Locks: PLAT_PROBES held; waits for quiescence.
 */
void optimize_sweep(void);

struct optimize_result {
    size_t made;    /* jumps that were none before, evicted neighbours included */
    size_t evicted; /* neighbours */
    bool is_done;   /* else nothing has changed */
};
/* optimize_change - in one batch, make jumps of the sites in @up as far as there are plans,
 * each of the others being refused with its reason; make those in @down int3s, or what they
 * were where they are leaving; and give other places to the jumps that read bytes of either.
 * @up, @down: sorted; those in @up have detours, and are no jumps
 * Locks:  PLAT_PROBES held.
 * Return: why it is not done; PROBE_OK, and if it is not done no jump reads what is in
 *         @down.
 */
enum probe_reason optimize_change(const struct site_list *up,
                                  const struct site_list *down,
                                  struct optimize_result *result);
/* optimize_around - make @count sites, which it sorts, int3s, or what they were where they
 * are leaving. Jumps that read their bytes remain jumps, as far as there are plans.
 * Locks:  PLAT_PROBES held.
 * Return: false: nothing has changed. No jump reads them, or there is no memory.
 */
bool optimize_around(struct site **sites, size_t count);
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
/* optimize_run - one pass: every armed site that may become a jump does, or knows why not.
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 */
void optimize_run(void);
/* optimize_at_once - the same now, with the sites that wait and are not armed yet.
 * Locks: PLAT_PROBES held; waits for quiescence.
 */
void optimize_at_once(void);

enum optimize_method {
    OPTIMIZE_PUN,    /* one instruction, its successors' bytes as displacement */
    OPTIMIZE_REGION, /* whole instructions of at least 5 bytes */
    OPTIMIZE_OFF,    /* no jumps */
    OPTIMIZE_METHODS,
};

/* optimize_set_method - how jumps are placed. The existing jumps become breakpoints again
 * and then jumps of the new kind; on return that is done.
 * optimize_switch - whether there are jumps at all. On return every site is a jump or a
 * breakpoint accordingly.
 * Context: thread.  Locks: takes PLAT_PROBES; waits.
 * Return:  0; -EDEADLK called from a handler.
 */
int optimize_set_method(enum optimize_method method);
enum optimize_method optimize_get_method(void);
int optimize_switch(bool on);
bool optimize_is_on(void);

/* No jump extends further than this from its first byte. */
#define UNOPTIMIZE_SPAN_MAX 9

/* unoptimize_around - the bytes of @count sites are about to change: what is a jump among
 * them becomes a breakpoint again, and so does every jump whose displacement reads one of
 * these bytes, and so on. On return all of them are SITE_ARMED, or SITE_DISARMED if they
 * are leaving; and a site that was refused a jump, which would read one of them, is looked
 * at again. It cannot fail. @sites are sorted.
 * Context: thread.  Locks: PLAT_PROBES held; takes PLAT_TEXT.
 */
void unoptimize_around(struct site **sites, size_t count);
/* unoptimize_ask_before - the bytes of @count sites change. A site that was refused a
 * jump is waiting again if that jump would use one of these bytes. Locks: PLAT_PROBES
 * held.
 */
void unoptimize_ask_before(struct site **sites, size_t count);
/* unoptimize_expect - there are @more jumps, or less.
 * unoptimize_jumps - how many there are.
 * Locks: PLAT_PROBES held.
 */
void unoptimize_expect(long more);
size_t unoptimize_jumps(void);
/* unoptimize_next_before - the sites in front of @addr of which a jump could reach @addr.
 * @last: the one that was the answer before, NULL for the first; they come in ascending order
 * Locks:  PLAT_PROBES held.  Return: NULL behind the last.
 */
struct site *unoptimize_next_before(uintptr_t addr, const struct site *last);
#define unoptimize_for_each_before(site, addr)                                           \
    for ((site) = unoptimize_next_before((addr), NULL); (site);                          \
         (site) = unoptimize_next_before((addr), (site)))
/* unoptimize_reads - is @site a jump that reads the byte at @addr, behind its first one, as a
 * part of itself? Locks: PLAT_PROBES held.
 */
bool unoptimize_reads(const struct site *site, uintptr_t addr);
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
