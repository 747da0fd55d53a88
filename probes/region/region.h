/* region.h - one jump in place of several whole instructions.
 *
 *             IA
 *             |
 *     [-2][-1][0][1][2][3][4][5][6]
 *             [ a  ][  b  ][  c   ]      DCR: the detoured code region, a to c
 *                [ JTPR     ]            JTPR: no branch may lead here
 *
 * From the insertion address on, as many whole instructions as a jump of five bytes covers
 * are copied to a cell, and the jump leads to copies of all of them. That is only right if
 * no thread is, comes, or returns to between the first byte and the end of the jump. The
 * rules look at the ways there; quiescence waits for the threads that are there.
 *
 * Everything is original bytes: a region is planned as if no probe were armed.
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

/* A plan; behind it, what is made of it, at which hits look at any time. */
struct region {
    uintptr_t addr;                   /* the insertion address */
    uint8_t bytes[REGION_MAX_LEN];    /* the original ones of the DCR */
    uint8_t len;                      /* of the DCR; the jump writes the first five */
    uint8_t count;                    /* instructions, 1..REGION_MAX_INSNS */
    uint8_t padding;                  /* bytes of len behind the function's end */
    uint8_t starts[REGION_MAX_INSNS]; /* offset of each instruction in the DCR */

    uint8_t *cell;                        /* copies of all, then the jump back; or NULL */
    uint8_t copies[REGION_MAX_INSNS + 1]; /* offset of each in the cell, and of the end */
    bool is_open;
};

/* ---- region.c: may it be? ---- */

/* region_plan - which instructions a jump at @addr would displace, or which rule forbids it.
 * @addr: an instruction that could carry a probe, or does
 * @out:  the plan filled as far as the rules that hold allow, also on refusal
 *
 * Context: thread.  Locks: PLAT_PROBES held.
 * Return:  0; the errno of the first broken rule, and @why names the address in its way.
 * Cost:    what boundary_find() costs, five times at most.
 */
int region_plan(uintptr_t addr, struct region *out, struct probe_reject *why);

/* region_each_rule - check the same rules, and do not stop at the first broken one. The
 * check ends early only at a broken rule that the later rules depend on.
 * @out: the plan, filled as by region_plan()
 * @fn:  called for each rule, in order; @why->err is 0 when the rule is kept
 * Context: thread.  Locks: PLAT_PROBES held.
 */
void region_each_rule(uintptr_t addr, struct region *out, rule_told_t fn, void *arg);

/* ---- region_copy.c: the copies ---- */

/* No region's copies are longer, the jump back included. */
#define REGION_COPY_MAX 56

/* region_copy - make the code that runs at @to in place of the instructions of @r. It
 * ends with a jump back to the instruction behind them. Pure.
 * @r:       from region_plan(); copies[] is filled in
 * @out:     REGION_COPY_MAX bytes
 * @out_len: bytes written
 *
 * The first instruction may be one that only makes sense in its place, a call or STI:
 * there is no copy of it then, and the code that sends the program to copies[1] has done
 * its work. A call that comes last leaves the return address behind the original: no
 * function ever returns to a copy.
 *
 * Context: any.
 * Return:  0; -ERANGE, -EOPNOTSUPP with @why filled.
 */
int region_copy(struct region *r, uintptr_t to, uint8_t *out, size_t *out_len,
                struct probe_reject *why);

/* region_original - what an ip @off bytes into the cell of @r means in the program.
 * region_enter - where a program that is to go on at @ip has to go while the jump lies
 * there: to a copy, if @ip is between the first instruction and the end of the region.
 *
 * Context: any.
 */
uintptr_t region_original(const struct region *r, size_t off);
uintptr_t region_enter(const struct region *r, uintptr_t ip);

/* ---- region_open.c: the copies in place of the originals ---- */

/* region_prepare - plan the region of @site and make its copies; no CPU comes to them yet.
 * The site has no detour, since that would lead back to the originals.
 * Locks:  PLAT_PROBES held; takes PLAT_TEXT.
 * Return: 0; what region_plan() and region_copy() say; -ENOMEM. On error nothing is left.
 */
int region_prepare(struct site *site, struct probe_reject *why);

/* region_open - a hit of @site goes on at the copies from now on, in whatever way the
 * instruction is run. plat_sync_cores() since region_prepare(). The next step is in
 * region_watch.c; a detour that is prepared now leads to the copies too.
 * region_close - at the originals again. No jump is in the text any more.
 * region_release - free the copies. No thread can be there: plat_quiesce() since
 * region_close(). The detour was released.
 * region_free - the rest too: the site goes. No CPU can hit it any more.
 *
 * Locks: PLAT_PROBES held; the last two take PLAT_TEXT.
 */
void region_open(struct site *site);
void region_close(struct site *site);
void region_release(struct site *site);
void region_free(struct site *site);

/* region_is_open - may its jump be in the text?
 * region_has_copies - has it something for region_release() to free?
 * Locks: PLAT_PROBES held.
 */
bool region_is_open(const struct site *site);
bool region_has_copies(const struct site *site);
/* region_behind - where the program goes on behind the probed instruction of @site: in the
 * text, or at the copies. Locks: PLAT_PROBES held.
 */
uintptr_t region_behind(const struct site *site);
/* region_boosted - the boosted copy that runs from now on: one of the copies, or the site's
 * own; NULL where it is emulated. Locks: PLAT_PROBES held.
 */
uint8_t *region_boosted(const struct site *site);
/* region_redirect - an image that would go on under the jump of @site, whose region is not
 * NULL, goes on at the copies.
 * region_boost - one that is to go on at its boosted copy does so at the one among them.
 * Context: any, as in a hit.
 */
void region_redirect(const struct site *site, struct pt_regs *regs);
void region_boost(const struct site *site, struct pt_regs *regs);
/* region_has_cell - are the copies in @cell those of the region of @site? Context: any, for
 * a cell that a thread may be in.
 */
bool region_has_cell(const struct site *site, uintptr_t cell);
/* region_step - a program that steps itself has made a step within the copies, @off bytes
 * into their cell: it sees the step where the originals are. Context: trap.
 * Return: false when it is not one of the instructions that have only copies there.
 */
bool region_step(const struct site *site, size_t off, struct pt_regs *regs);

/* ---- region_watch.c: is a thread there? ---- */

#define REGION_WATCH_MAX 256

/* region_watch - from now on plat_quiesce() also waits for threads where the jumps of these
 * regions will lie. Their first bytes must be int3 by then, and a CPU that the engine sends
 * on from there must go on at copies: no CPU comes in any more.
 * @addrs: insertion addresses, ascending; @count: at most REGION_WATCH_MAX
 * region_unwatch - no longer.
 * Locks: PLAT_PROBES held.
 *
 * region_is_watched - is @ip in one of them, behind the first byte? Context: any.
 */
void region_watch(const uintptr_t *addrs, size_t count);
void region_unwatch(void);
bool region_is_watched(uintptr_t ip);

/* ---- region_picture.c ---- */

#define REGION_LINE_MAX 128
#define REGION_LINES_MAX 9

/* region_draw - the picture above, with the bytes, instructions and obstacles of @addr.
 * @line: told of each line, at most REGION_LINES_MAX, without a newline, at most
 *        REGION_LINE_MAX bytes with the NUL
 * Context: thread.  Locks: PLAT_PROBES held.
 */
void region_draw(uintptr_t addr, void (*line)(const char *text, void *arg), void *arg);
