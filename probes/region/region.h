/* region.h - replace several whole instructions by one jump.
 *
 *             IA
 *             |
 *     [-2][-1][0][1][2][3][4][5][6]
 *             [ a  ][  b  ][  c   ]      DCR: the detoured code region, a to c
 *                [ JTPR     ]            JTPR: no branch may lead here
 *
 * The jump begins at the insertion address (IA). The whole instructions that its five
 * bytes touch are copied to a cell, to which the detour leads. This is correct only if no
 * thread is between the first byte and the end of the jump, and none can come or return
 * there: docs/region.md. A region is planned with the original bytes.
 */
#pragma once

#include "probes/core/reject.h"
#include "probes/insn/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pt_regs;
struct site;

#define REGION_JUMP_LEN 5 /* bytes of the jump */
#define REGION_MAX_INSNS REGION_JUMP_LEN
#define REGION_MAX_LEN (REGION_JUMP_LEN - 1 + INSN_MAX_LEN)

/* The plan of a region, and then the copies that are made by the plan. A hit on any CPU
 * may read the struct at any time.
 */
struct region {
    uintptr_t addr;                   /* the insertion address */
    uint8_t bytes[REGION_MAX_LEN];    /* the original bytes of the DCR */
    uint8_t len;                      /* of the DCR; the jump writes the first five */
    uint8_t count;                    /* instructions, 1..REGION_MAX_INSNS */
    uint8_t padding;                  /* bytes of len behind the function's end */
    uint8_t starts[REGION_MAX_INSNS]; /* offset of each instruction in the DCR */

    uint8_t *cell; /* all copies, then the jump back; NULL: there are no copies */
    uint8_t copies[REGION_MAX_INSNS + 1]; /* offset of each copy; end of the last one */
    bool is_open;                         /* hits go on at the copies */
};

/* ---- region.c: the rules ---- */

/* region_plan - find the instructions that a jump at @addr would displace, or the rule
 * that forbids the jump.
 * @addr: of an instruction that could carry a probe, or carries one
 * @out:  receives the plan; on refusal, the part that was known before the broken rule
 *
 * Context: thread or held.  Locks: PLAT_PROBES held.
 * Return:  0; the errno of the first broken rule, and @why tells the address in its way.
 * Cost:    at most five calls of boundary_find(), and four of kprobe_check().
 */
int region_plan(uintptr_t addr, struct region *out, struct probe_reject *why);

/* region_each_rule - check the same rules, and do not stop at the first broken one. The
 * check ends early only at a broken rule that the later rules depend on.
 * @out: the plan, filled as by region_plan()
 * @fn:  called for each rule, in order; @why->err is 0 when the rule is kept
 * Context: thread or held.  Locks: PLAT_PROBES held.
 */
void region_each_rule(uintptr_t addr, struct region *out, rule_told_t fn, void *arg);

/* region_is_padding - is the byte at @addr padding behind a function, which does not run into
 * it? Padding is filler that no symbol covers. A branch may lead there: ask targets.h.
 * @addr: behind a function, with nothing but padding between
 * Context: thread or held.  Locks: PLAT_PROBES held.
 */
bool region_is_padding(uintptr_t addr);

/* ---- region_copy.c: the copies ---- */

/* The copies of a region, with the jump back, never have more bytes than this. */
#define REGION_COPY_MAX 56

/* region_copy - make the code that runs at @to in place of the instructions of @r. If the
 * program can go on behind them, the code ends with a jump back to the text. Pure.
 * @r:       from region_plan(); copies[] is filled in
 * @out:     REGION_COPY_MAX bytes
 * @out_len: receives the number of bytes written
 *
 * If the first instruction has no copy that does the same elsewhere (an indirect call), the
 * engine runs it in another way and sends the program to copies[1].
 *
 * Context: any.
 * Return:  0; -ERANGE a copy does not reach its target; -EOPNOTSUPP an instruction has no
 *          copy. @why is filled.
 */
int region_copy(struct region *r, uintptr_t to, uint8_t *out, size_t *out_len,
                struct probe_reject *why);

/* region_original - the address in the text that stands for an ip @off bytes into the
 * cell of @r: the start of a copy's original; behind the copies the end of the region.
 * region_enter - the address at which a program goes on in place of @ip while the jump is
 * in the text: a copy, if an instruction but the first begins at @ip; else @ip.
 * Context: any.
 */
uintptr_t region_original(const struct region *r, size_t off);
uintptr_t region_enter(const struct region *r, uintptr_t ip);

/* ---- region_open.c: the copies in place of the originals ---- */

/* region_prepare - plan the region of @site, which has no detour, and make its copies. A
 * region of a single instruction gets none. No CPU comes to them yet.
 * Locks:  PLAT_PROBES held; takes PLAT_TEXT.
 * Return: 0; an error of region_plan() or region_copy(); -ENOMEM.
 */
int region_prepare(struct site *site, struct probe_reject *why);

/* region_open - from now on, let each hit of @site go on at the copies, after a call of
 * plat_sync_cores(). The next step is described in region_watch.c.
 * region_close - let hits go on at the originals again. The jump must be out of the text.
 * region_release - free the copies, after plat_quiesce() and the release of the detour.
 * region_free - free the copies and the struct region, because the site is freed.
 * Locks: PLAT_PROBES held. The last two functions take PLAT_TEXT.
 */
void region_open(struct site *site);
void region_close(struct site *site);
void region_release(struct site *site);
void region_free(struct site *site);

/* region_is_open - is the region of @site open, so that its jump may be in the text?
 * region_has_copies - does the region of @site have copies, which region_release() frees?
 * Locks: PLAT_PROBES held.
 */
bool region_is_open(const struct site *site);
bool region_has_copies(const struct site *site);
/* region_behind - the address at which the program goes on after the probed instruction
 * of @site: the next copy of an open region, else the next instruction in the text.
 * Locks: PLAT_PROBES held.
 */
uintptr_t region_behind(const struct site *site);
/* region_boosted - the boosted copy of the probed instruction that hits run now; NULL: it is
 * not boosted. Locks: PLAT_PROBES held.
 */
uint8_t *region_boosted(const struct site *site);
/* region_redirect - if the program of @regs would go on under the jump of @site, which has a
 * struct region, let it go on at the copy instead.
 *                   @site: NULL: the jump of any site
 * region_boost - the same for a program about to go on at the site's own boosted copy.
 * Context: any, preemption off. It is called as in a hit.
 */
void region_redirect(const struct site *site, struct pt_regs *regs);
void region_boost(const struct site *site, struct pt_regs *regs);
/* region_has_cell - is @cell the cell of the region of @site?
 * @cell: a cell that a thread may be in, so that it is not freed meanwhile
 * Context: any.
 */
bool region_has_cell(const struct site *site, uintptr_t cell);
/* region_step - a program that single-steps itself is now @off bytes into a cell of @site. If
 * this is the region's cell, let the program see the step at the original instructions.
 * Context: trap.
 * Return: false: it is another cell, or the first copy, which is stepped like any other.
 */
bool region_step(const struct site *site, size_t off, struct pt_regs *regs);

/* ---- region_watch.c: wait for threads under the jumps ---- */

#define REGION_WATCH_MAX 256

/* region_watch - from now on, let plat_quiesce() also wait for threads that are where the
 * jumps of these regions will be. No CPU comes there any more.
 * @addrs: insertion addresses, ascending; @count: at most REGION_WATCH_MAX
 * region_unwatch - end this. Locks: PLAT_PROBES held.
 * region_is_watched - will @ip be under one of these jumps, behind its first byte?
 * Context: any.
 */
void region_watch(const uintptr_t *addrs, size_t count);
void region_unwatch(void);
bool region_is_watched(uintptr_t ip);

/* ---- region_picture.c: the picture ---- */

#define REGION_LINE_MAX 128
#define REGION_LINES_MAX 9

/* region_draw - draw the picture at the top of this file for @addr, with the bytes, the
 * instructions, and the targets and probes that are in the way of the jump.
 * @line: called for each line. There are at most REGION_LINES_MAX lines, each without a
 *        newline, of at most REGION_LINE_MAX bytes with the NUL
 * Context: thread or held.  Locks: PLAT_PROBES held.
 */
void region_draw(uintptr_t addr, void (*line)(const char *text, void *arg), void *arg);
