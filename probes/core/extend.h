/* extend.h - the seam: declares the functions by which other rooms change what the core
 * does to a breakpoint.
 *
 * The core calls them at the places below, and at no others. In the whole engine the linker
 * finds them in other rooms, most of them in jump/extend.c and text/text_part.c; in the core
 * alone in tests/alone/extend_none.c, which does nothing.
 *
 * A block without a context or without locks means: context thread, PLAT_PROBES held.
 * ext_join(), ext_part(), ext_arm(), ext_refresh(), ext_poke_*(), ext_recover() and the
 * functions that only look also run in the context `held`: there they wait for nothing.
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

/* ext_site_size - say how many bytes a site has: a struct site, and the data that other
 * rooms keep behind it.
 */
size_t ext_site_size(void);
/* ext_front_len - say how many bytes to leave free in front of a copy of @insn, in the
 * same cell.
 */
size_t ext_front_len(const struct insn *insn);
/* ext_release - free everything that other rooms have attached to @count sites. The sites
 * are disarmed, no hit can find them, and there has been quiescence.
 * Locks: takes PLAT_TEXT. It may wait for quiescence.
 */
void ext_release(struct site **sites, size_t count);

/* ---- a probe joins a site, and leaves it ---- */

/* ext_join - ask the other rooms whether @p may join @site, and let them prepare what @p
 * needs from them.
 * Return: 0; a reason's errno, with @why filled.
 * ext_part - undo ext_join(), when @p has left its site, or could not join it, and no hit
 * counts for @p any more. Other rooms add the hits that they have counted for @p to
 * @p->hits.
 * ext_hits - return how many hits other rooms have counted for @p, which is registered.
 * Context: any.
 */
int ext_join(const struct site *site, struct kprobe *p, struct probe_reject *why);
void ext_part(struct kprobe *p);
uint64_t ext_hits(const struct kprobe *p);

/* ---- text that is not there yet, or leaves ---- */

/* ext_waiting - return the site of all registered probes that wait for their text. It has no
 * address, and is never armed. Its probes are linked by @prev as well as by @next.
 * Return: NULL: no probe can wait for text.
 */
struct site *ext_waiting(void);
/* ext_wait - let @p wait, as the last probe of the list; @p is GONE from now on.
 * ext_wake - take @p off the list: it waits no longer.
 */
void ext_wait(struct kprobe *p);
void ext_wake(struct kprobe *p);
/* ext_text_leaves - is the text at @addr about to go, so that it can carry no probe? */
bool ext_text_leaves(uintptr_t addr);

/* ---- the text of a site changes ---- */

/* ext_arm - called before @count sites are armed, or change because they have other probes
 * now. Other rooms may arm sites themselves, at once, by jumps.
 * ext_disarm - called before @count armed sites are disarmed.
 * Return: how many sites the caller must change; these are at the front of @sites. No jump
 * reads their bytes any more.
 */
size_t ext_arm(struct site **sites, size_t count);
size_t ext_disarm(struct site **sites, size_t count);
/* ext_refresh - called when some probes of @count armed sites have left or are disabled, and
 * others stay: a hit that begins from now on runs nothing for those.
 */
void ext_refresh(struct site **sites, size_t count);
/* ext_settle - called when probes have gone: sites that have waited for that may change
 * their text. Locks: waits for quiescence.
 */
void ext_settle(void);
/* ext_poke_steps - take the steps of @batch by a call of text_poke_steps(); another room may
 * stop the machine meanwhile. Locks: PLAT_TEXT held.
 */
void ext_poke_steps(struct text_batch *batch);
/* ext_poke_levels - change the levels of @pokes if instructions extend over each other.
 * The caller has set the levels for the case that none does: docs/text-poke.md.
 * Locks: PLAT_TEXT held.
 */
void ext_poke_levels(struct text_poke *pokes, size_t count);
/* ext_poke_sync - synchronise the CPUs by a call of text_poke_sync(): @step, an enum
 * text_poke_step, has written the bytes of @level. Another room may note when each CPU
 * took part. Context: thread or stopped or held.  Locks: PLAT_TEXT held.
 */
void ext_poke_sync(const struct text_poke *pokes, size_t count, unsigned step,
                   unsigned level);
/* ext_recover - undo, in a copy of text, the changes of other rooms. The core itself
 * undoes the breakpoints.
 * @bytes: the copy of the @len bytes at @addr
 */
void ext_recover(uint8_t *bytes, uintptr_t addr, size_t len);

/* ---- a CPU is in code of another room ---- */

/* ext_original - change *@ip to the address in the program that it stands for, if a CPU
 * at *@ip is in code of another room.
 * Context: any.  Return: false: it is not. Then *@ip may have changed to an address in a
 * cell of the core.
 */
bool ext_original(uintptr_t *ip);
/* ext_resume - change regs->ip if the program has to go on elsewhere. It was about to go
 * on at regs->ip, behind or at the instruction of @site; @site has asks_resume.
 * @site: NULL: regs->ip may be any instruction. Then nothing changes if ext_regions is 0
 * Context: any, preemption off. It is called as in a hit.
 */
void ext_resume(const struct site *site, struct pt_regs *regs);
extern size_t ext_regions; /* how many sites are regions whose copies run */

enum ext_step {
    EXT_STEP_NONE,    /* not in code of another room */
    EXT_STEP_INSIDE,  /* the program must not see this step: it goes on as @regs says */
    EXT_STEP_PROGRAM, /* the program must see this step, at regs->ip */
};
/* ext_step - handle a single step of a program that has TF set; the step has led to
 * regs->ip. @jumped: as in hit_leave()
 * ext_raise_step - raise the #DB for such a step, if the program must see it: the engine
 * has emulated an instruction, so the CPU raises none.
 * Context: trap.
 */
enum ext_step ext_step(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped);
void ext_raise_step(struct pt_regs *regs, bool jumped);
/* ext_given_up - called when the handler that @hit runs has faulted and is given up.
 * @regs: the image of the fault. If the handler was called without an image of the hit,
 *        this function changes it, so that the CPU goes on as if the handler had returned
 * @sp:   the stack pointer when the handler was called
 * Context: trap.
 */
void ext_given_up(struct probe_cpu *cpu, const struct probe_hit *hit,
                  struct pt_regs *regs, uintptr_t sp);
/* ext_return_resume - do the work of kprobe_resume() for a hit of the stage HIT_RETURN.
 * @jumped: as in hit_leave()
 * Context: trap.
 */
void ext_return_resume(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped);
