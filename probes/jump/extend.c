/* extend.c - what is behind the seam of core/extend.h: jumps, regions and returns. */
#include "probes/core/extend.h"

#include "kernel/base/bits.h"
#include "probes/core/hit.h"
#include "probes/core/insn_slot.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"
#include "probes/jump/counter.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/retired.h"
#include "probes/region/region.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/return_point.h"
#include "probes/text/text_part.h"

/* ---- a site is made and freed ---- */

size_t ext_site_size(void)
{
    return sizeof(struct jump_site);
}

/* A jump runs a counting instruction or a call in front of the copy, see detour.c; and the
 * jump behind the copy can be changed by one store, see link.c.
 */
size_t ext_front_len(const struct insn *insn)
{
    size_t copied = insn_relocated_len(insn);
    size_t room = INSN_SLOT_CODE_MAX - INSN_JMP32_LEN - copied;
    size_t moved = link_room_before(INSN_INC_GS_LEN + copied);

    if (room >= INSN_INC_GS_LEN)
        return INSN_INC_GS_LEN + (INSN_INC_GS_LEN + moved <= room ? moved : 0);
    return room >= INSN_CALL32_LEN ? INSN_CALL32_LEN : 0;
}

void ext_release(struct site **sites, size_t count)
{
    retired_release(sites, count);
    for (size_t i = 0; i < count; i++)
        region_free(sites[i]);
}

/* ---- a probe joins a site, and leaves it ---- */

static bool has_jprobe(const struct site *site)
{
    for (const struct kprobe *p = site->probes; p; p = p->next)
        if (p->kind == KPROBE_KIND_JPROBE)
            return true;
    return false;
}

/* If the first probe of the site has a counter, @p gets one as well: a jump counts for the
 * first probe of the list, and @p may become the first later. Else the counters are made with
 * the jump.
 */
int ext_join(const struct site *site, struct kprobe *p, struct probe_reject *why)
{
    bool counted = site->probes && site->probes->counter;

    if (p->kind == KPROBE_KIND_JPROBE && has_jprobe(site))
        return probe_refuse(why, PROBE_HAS_JPROBE, site->addr);
    p->counter = counted ? counter_get() : 0;
    if (counted && !p->counter)
        return probe_refuse(why, PROBE_NO_MEMORY, site->addr);
    text_own_changes(p, 1);
    return 0;
}

/* A probe that waits for text has not joined a site. */
void ext_part(struct kprobe *p)
{
    if (p->site && p->site != ext_waiting())
        text_own_changes(p, -1);
    p->hits += counter_put(p->counter);
    p->counter = 0;
}

uint64_t ext_hits(const struct kprobe *p)
{
    return counter_sum(READ_ONCE(p->counter));
}

void ext_exit(void)
{
    counter_exit();
}

/* ---- the text of a site changes ---- */

/* make_free - the bytes of @sites are about to change: no jump reads them any more.
 * Return: false: that is done and they are no jumps. true: the bytes have changed already.
 */
static bool make_free(struct site **sites, size_t count)
{
    if (optimize_around(sites, count))
        return true;
    unoptimize_around(sites, count);
    return false;
}

/* wait_all - @sites are to be jumps some time; those that are have to be others. */
static void wait_all(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!jump_is_at(sites[i], STAGE_JUMP))
            jump_wait(sites[i]);
}

/* A site that is armed has a jump that no longer fits, and loses it. A site between jumps
 * becomes a jump at once: behind an int3 its other bytes stay the original ones, and the
 * jumps that read them need others. The optimizer waits for PLAT_PROBES.
 */
size_t ext_arm(struct site **sites, size_t count)
{
    bool among_jumps = count == 1 && unoptimize_reader(sites[0]->addr);

    wait_all(sites, count);
    make_free(sites, site_to_front(sites, count, true));
    if (count > 1 || among_jumps)
        optimize_at_once();
    optimize_kick();
    count = site_to_front(sites, count, false);
    if (!count || make_free(sites, count))
        return 0;
    plat_lock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++)
        link_forget(sites[i]);
    plat_unlock(PLAT_TEXT);
    return count;
}

static void move_all_to(struct site **sites, size_t count, enum jump_stage to)
{
    for (size_t i = 0; i < count; i++)
        jump_move(sites[i], to);
}

size_t ext_disarm(struct site **sites, size_t count)
{
    size_t left = 0;

    move_all_to(sites, count, STAGE_TO_ORIGINAL);
    if (!make_free(sites, count))
        left = site_to_front(sites, count, true);
    move_all_to(sites, count, STAGE_NONE);
    return left;
}

bool ext_is_current(const struct site *site)
{
    if (site->state != SITE_OPTIMIZED)
        return !jump_is_at(site, STAGE_NONE); /* else it has carried no probe before */
    return detour_is_current(site);
}

void ext_settle(void)
{
    optimize_sweep();
    optimize_retry();
}

/* A jump may begin in front of the copy. */
void ext_recover(uint8_t *bytes, uintptr_t addr, size_t len)
{
    if (!unoptimize_jumps())
        return;
    for (uintptr_t at = addr - (INSN_MAX_LEN - 1); at != addr + len; at++) {
        const struct site *site = registry_find(at);

        for (size_t i = 0;
             site && site->state == SITE_OPTIMIZED && i < jump_site(site)->jump_len; i++)
            if (at + i - addr < len)
                bytes[at + i - addr] = site->bytes[i];
    }
}

/* ---- a CPU is in code of a jump ---- */

bool ext_original(uintptr_t *ip)
{
    const struct site *site;
    size_t off;

    *ip = pad_pass(*ip);
    site = insn_slot_owner(*ip, &off);
    if (!site)
        return false;
    if (region_has_cell(site, *ip - off))
        *ip = region_original(jump_site(site)->region, off);
    else if (site_is_call(site))
        *ip = site_target(site);
    else if (return_point_is(*ip))
        *ip = (uintptr_t)kretprobe_trampoline;
    else if (copy_start(site, *ip - off))
        return false; /* a cell of the core's */
    else
        *ip = *ip <= detour_start(site, *ip - off) ? site->addr : site->addr + site->len;
    return true;
}

void ext_resume(const struct site *site, struct pt_regs *regs)
{
    if (regs->ip == (uintptr_t)site_boost_slot(site))
        region_boost(site, regs);
    else
        region_redirect(site, regs);
}
NOKPROBE(ext_resume);

/* hit_instead - a program that steps itself has run into a jump. From here on it is as if
 * that had been a breakpoint: the detour cannot be stepped without its being seen.
 */
NOKPROBE_INLINE void hit_instead(struct probe_cpu *cpu, struct site *site,
                                 struct pt_regs *regs)
{
    if (site_is_call(site))
        regs->sp += 8; /* the jump is a call, and has pushed */
    hit_untrapped(cpu, site, regs);
}

/* step_in_cell - in one of the cells of @site, @off bytes into it. */
NOKPROBE_INLINE bool step_in_cell(struct site *site, size_t off, struct pt_regs *regs,
                                  struct probe_cpu *cpu)
{
    uintptr_t copy = detour_start(site, regs->ip - off);

    if (unlikely(READ_ONCE(jump_site(site)->region)) && region_step(site, off, regs))
        return true;
    if (regs->ip < copy) {
        if (regs->ip == (uintptr_t)site_detour(site)) /* else TF came on the way */
            hit_instead(cpu, site, regs);
        return true;
    }
    return step_in_copy(site, copy,
                        copy == (uintptr_t)site_boost_slot(site) ||
                            region_has_cell(site, copy),
                        regs, cpu);
}

enum ext_step ext_step(struct pt_regs *regs, struct probe_cpu *cpu)
{
    struct site *site;
    size_t off;

    if (plat_is_detour(regs->ip))
        return EXT_STEP_INSIDE;
    if (regs->ip == (uintptr_t)kretprobe_trampoline) {
        kretprobe_return_stepped(regs, cpu);
        return EXT_STEP_PROGRAM; /* it has led where the program returns to */
    }
    site = insn_slot_owner(regs->ip, &off);
    if (!site) { /* a step of the program's, to a pad? */
        regs->ip = pad_pass(regs->ip);
        site = insn_slot_owner(regs->ip, &off);
    }
    if (!site)
        return EXT_STEP_NONE;
    return step_in_cell(site, off, regs, cpu) ? EXT_STEP_INSIDE : EXT_STEP_PROGRAM;
}
NOKPROBE(ext_step);

/* ---- handlers that do not come back ---- */

/* handler_return - the address that the light handler returns to. A return probe may have
 * exchanged the word on the stack, if the handler has ended by a jump to a probed
 * function.
 */
static uintptr_t handler_return(const struct plat_light *light)
{
    const uintptr_t *slot = (const uintptr_t *)light - 1;

    return return_point_is(*slot) ? kretprobe_find_ret(slot) : *slot;
}

/* return_for - the engine has given up a light handler, which will not return. Change
 * @regs so that the program goes on as if the handler had returned: the registers that a
 * function must preserve get their values back. The code that called the handler then
 * restores the CPU's flags and the count of preemption, as after every handler.
 */
static void return_for(const struct plat_light *light, const struct site *site,
                       struct pt_regs *regs)
{
    regs->sp = (uintptr_t)light;
    regs->ip = handler_return(light);
    regs->flags &= ~(FLAGS_DF | FLAGS_TF);
    regs->bp = light->bp;
    if (light->probe->stores)
        plat_bug("a fault where registers are to be stored", site->addr);
    if (!jump_site(site)->saves_registers)
        return;
    regs->bx = light->bx;
    regs->r12 = light->r12;
    regs->r13 = light->r13;
    regs->r14 = light->r14;
    regs->r15 = light->r15;
}

/* The detour that calls a probed function does not ask whether the probe is on, so it is left
 * without a holder.
 */
void ext_given_up(struct probe_cpu *cpu, const struct probe_hit *hit,
                  struct pt_regs *regs, uintptr_t sp)
{
    struct site *site = hit->running->site;

    if (hit->is.light)
        return_for(light_frame(cpu), site, regs);
    WRITE_ONCE(jump_site(site)->holder, NULL);
    kretprobe_given_up(cpu, hit, sp);
}

void ext_return_resume(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped)
{
    kretprobe_resume(regs, cpu, jumped);
}
NOKPROBE(ext_return_resume);
