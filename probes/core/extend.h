/* extend.h - the seam: what the rooms above the core may do to a breakpoint.
 *
 * The core knows breakpoints. Another room lets a breakpoint become a jump, lets a jump
 * displace its neighbours, follows calls to their return, or lets probes wait for text. The
 * core asks it at the places below, and at no others. The calls are resolved by the linker:
 * jump/extend.c and text/text_part.c have the rest of the engine behind them,
 * tests/alone/extend_none.c has nothing behind them.
 *
 * Locks of all that have none of their own: PLAT_PROBES held, context: thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct insn;
struct kprobe;
struct probe_cpu;
struct probe_hit;
struct probe_reject;
struct pt_regs;
struct site;
struct text_batch;
struct text_poke;

/* ---- a site is made and freed ---- */

/* ext_site_size - bytes of a site: a struct site, and what other rooms keep behind it. */
size_t ext_site_size(void);
/* ext_front_len - bytes to leave free in front of a copy of @insn, in the same cell. */
size_t ext_front_len(const struct insn *insn);
/* ext_release - @count sites are disarmed, no hit can find them, and there has been
 * quiescence: everything that other rooms have attached to them is freed.
 * Locks: takes PLAT_TEXT; may wait for quiescence.
 */
void ext_release(struct site **sites, size_t count);

/* ---- a probe joins a site, and leaves it ---- */

/* ext_join - @p is about to join @site: the other rooms agree or refuse, and prepare what
 * @p needs from them.
 * Return: 0; a reason's errno, with @why filled.
 * ext_part - @p has left its site, or could not join it, and no hit counts for @p any
 * more. Other rooms add the hits that they have counted for @p to @p->hits.
 * ext_hits - how many hits other rooms have counted for @p, which is registered.
 * Context: any.
 * ext_exit - no site is left: other rooms free what all sites shared.
 */
int ext_join(const struct site *site, struct kprobe *p, struct probe_reject *why);
void ext_part(struct kprobe *p);
uint64_t ext_hits(const struct kprobe *p);
void ext_exit(void);

/* ---- text that is not there yet, or leaves ---- */

/* ext_waiting - one site for all registered probes whose text is not loaded. These probes
 * have no site of their own yet. The shared site has no address, and is never armed.
 * Return: NULL: no room offers such a site, so no probe can wait for text.
 */
struct site *ext_waiting(void);
/* ext_waits - is @p one of them? ext_wait - @p is one from now on, the last, and GONE.
 * ext_wake - it is none any more.
 */
bool ext_waits(const struct kprobe *p);
void ext_wait(struct kprobe *p);
void ext_wake(struct kprobe *p);
/* ext_text_leaves - may @addr carry no probe any more, because its text is about to go? */
bool ext_text_leaves(uintptr_t addr);

/* ---- the text of a site changes ---- */

/* ext_arm - @count sites are about to be armed. Sites that are armed already have changed
 * their probes. Some of them may be armed in another way at once.
 * Return: how many are still to become breakpoints; these are at the front of @sites.
 */
size_t ext_arm(struct site **sites, size_t count);
/* ext_disarm - @count armed sites are about to be disarmed.
 * Return: how many are still to be disarmed, as in ext_arm(). No jump reads their bytes any
 * more.
 */
size_t ext_disarm(struct site **sites, size_t count);
/* ext_is_current - does the text of @site, which is armed, suit the probes that are there? */
bool ext_is_current(const struct site *site);
/* ext_settle - probes have gone. Sites that have waited for that may change their text.
 * Locks: waits for quiescence.
 */
void ext_settle(void);
/* ext_poke_steps - take the steps of @batch, by text_poke_steps(); perhaps with the machine
 * stopped meanwhile. Locks: PLAT_TEXT held.
 */
void ext_poke_steps(struct text_batch *batch);
/* ext_poke_levels - the levels of @pokes are those of instructions that do not extend over
 * each other. Where some do, they get others: docs/text-poke.md. Locks: PLAT_TEXT held.
 */
void ext_poke_levels(struct text_poke *pokes, size_t count);
/* ext_poke_begins - the text of @pokes is about to be changed.
 * ext_poke_written - @step, an enum text_poke_step, has written in @level, and the CPUs are
 * about to be synchronised. ext_poke_synced - they are.
 * ext_poked - the text of @pokes has been changed as they say, a moment ago.
 * Locks: PLAT_TEXT held. Context of the two in the middle: machine stopped, too.
 */
void ext_poke_begins(const struct text_poke *pokes, size_t count);
void ext_poke_written(const struct text_poke *pokes, size_t count, unsigned step,
                      unsigned level);
void ext_poke_synced(void);
void ext_poked(const struct text_poke *pokes, size_t count);
/* ext_recover - undo, in a copy of the text, all but breakpoints.
 * @bytes: those at @addr, @len of them
 */
void ext_recover(uint8_t *bytes, uintptr_t addr, size_t len);

/* ---- a CPU is in code of another room ---- */

/* ext_original - let *@ip, of some CPU, be where that CPU is in the program.
 * Context: any.  Return: false: *@ip, which may have changed, is not in code of another room.
 */
bool ext_original(uintptr_t *ip);
/* ext_resume - the program is about to go on at regs->ip, behind or at the instruction of
 * @site, with asks_resume. It may have to go on elsewhere. Context: any, as in a hit.
 */
void ext_resume(const struct site *site, struct pt_regs *regs);

enum ext_step {
    EXT_STEP_NONE,    /* not in code of another room */
    EXT_STEP_INSIDE,  /* no step of the program: it goes on as @regs says */
    EXT_STEP_PROGRAM, /* a step of the program, with regs->ip where it sees it */
};
/* ext_step - a single step that the program has asked for has led to regs->ip.
 * Context: trap.
 */
enum ext_step ext_step(struct pt_regs *regs, struct probe_cpu *cpu);
/* ext_given_up - the handler that @hit runs has faulted, and does not come back.
 * @regs: of the fault; a handler that was called without an image goes on from here as if it
 *        had returned
 * @sp:   the stack as it was when the handler was called
 * Context: trap.
 */
void ext_given_up(struct probe_cpu *cpu, const struct probe_hit *hit,
                  struct pt_regs *regs, uintptr_t sp);
/* ext_return_resume - kprobe_resume() for a hit whose stage is HIT_RETURN. Context: trap. */
void ext_return_resume(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped);
