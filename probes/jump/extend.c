/* extend.c - implements the seam of core/extend.h for jumps, regions and returns. */
#include "probes/core/extend.h"

#include "kernel/base/bits.h"
#include "probes/core/hit.h"
#include "probes/core/insn_slot.h"
#include "probes/insn/encode.h"
#include "probes/insn/relocate.h"
#include "probes/jump/counter.h"
#include "probes/jump/detour.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/near.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/program_join.h"
#include "probes/jump/retired.h"
#include "probes/program/program_code.h"
#include "probes/region/region.h"
#include "probes/returns/entry.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/return_point.h"
#include "probes/text/text_part.h"

/* ---- a site is made and freed ---- */

size_t ext_site_size(void)
{
    return sizeof(struct jump_site);
}

/* A detour may have counting code or a call in front of this copy: see detour.c. Where
 * counting code saves flags, it needs a longer cell. It lies in front of the boosted copy
 * even so: a second cell with a second copy would take twice the memory. While no site
 * becomes a jump, cells are as short as a breakpoint needs. The copy is placed so that one
 * store can change the jump behind it: see link.c.
 */
size_t ext_front_len(const struct insn *insn)
{
    size_t count = detour_count_len(insn), copied = insn_relocated_len(insn);
    size_t rest = copied + INSN_JMP32_LEN, moved = link_room_before(count + copied);
    bool is_long = count > INSN_INC_GS_LEN && optimize_get_method() != OPTIMIZE_OFF;
    size_t max = is_long ? INSN_SLOT_COUNTED_CODE_MAX : INSN_SLOT_CODE_MAX;

    if (count + moved + rest <= max)
        return count + moved;
    if (count + rest <= max)
        return count;
    return INSN_CALL32_LEN + rest <= INSN_SLOT_CODE_MAX ? INSN_CALL32_LEN : 0;
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

/* If the first probe of the site has a counter, @p gets one as well: a detour counts for
 * the first probe of the list, and @p may become the first later. Otherwise the counters
 * are made together with the detour.
 */
int ext_join(const struct site *site, struct kprobe *p, struct probe_reject *why)
{
    bool counted = site->probes && site->probes->counter;
    int err;

    text_own_changes(p, 1);
    p->counter = counted ? counter_get(false) : 0;
    if (counted && !p->counter)
        return probe_refuse(why, PROBE_NO_MEMORY, site->addr);
    if (p->kind == KPROBE_KIND_JPROBE && has_jprobe(site))
        return probe_refuse(why, PROBE_HAS_JPROBE, site->addr);
    err = entry_check(p, site->addr, why);
    return err ? err : program_join(p, site->addr, why);
}

/* A probe that waits for text has not joined a site. The program of a probe whose text goes
 * keeps its words: it will go on with them.
 */
void ext_part(struct kprobe *p)
{
    bool waits = p->site == ext_waiting();

    if (p->site && !waits)
        text_own_changes(p, -1);
    counter_pass(p->counter, p->next ? p->next->counter : 0);
    p->hits += counter_put(p->counter);
    p->counter = 0;
    if (waits || !(p->flags & KPROBE_FLAG_GONE))
        program_part(p);
}

uint64_t ext_hits(const struct kprobe *p)
{
    return counter_sum(READ_ONCE(p->counter));
}

/* ---- the text of a site changes ---- */

/* make_free - the bytes of @sites are about to change: no jump may read them any more.
 * Return: true: optimize_around() has changed the bytes already. False: none of @sites is
 *         a jump any more, and the bytes are still to be changed.
 */
static bool make_free(struct site **sites, size_t count)
{
    if (optimize_around(sites, count))
        return true;
    unoptimize_around(sites, count);
    return false;
}

/* wait_all - let @sites wait for a jump. A site that is a jump keeps its stage:
 * make_free() will make it a breakpoint, which waits.
 */
static void wait_all(struct site **sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!jump_is_at(sites[i], STAGE_JUMP))
            jump_wait(sites[i]);
}

/* is_still_armed - site_is_armed() as a function of this file. Its address would put a
 * second copy of the inline function into the image.
 */
static bool is_still_armed(const struct site *site)
{
    return site_is_armed(site);
}

/* must_change - does the text at @site not suit the present probes there? An armed site
 * of no stage had no probe until now.
 */
static bool must_change(const struct site *site)
{
    if (site->state == SITE_OPTIMIZED)
        return !detour_is_current(site);
    return site_is_bare(site) || jump_is_at(site, STAGE_NONE);
}

/* If a site is armed already, its jump does not suit the new probes, and is removed. A
 * site whose bytes jumps read becomes a jump at once: as an int3 it would keep its
 * original bytes behind the first one, but the jumps that read these may need other
 * bytes. The optimizer thread cannot run before PLAT_PROBES is free.
 */
size_t ext_arm(struct site **sites, size_t count)
{
    bool among_jumps;

    for (size_t i = 0; i < count; i++)
        kretprobe_armed(sites[i], true);
    count = site_to_front(sites, count, must_change);
    among_jumps = count == 1 && unoptimize_reader(sites[0]->addr);
    wait_all(sites, count);
    make_free(sites, site_to_front(sites, count, is_still_armed));
    if (count > 1 || among_jumps)
        optimize_at_once();
    optimize_kick();
    count = site_to_front(sites, count, site_is_bare);
    if (!count || make_free(sites, count))
        return 0;
    return count;
}

/* The sites become breakpoints, and wait for a jump. They are not jumps at once as in
 * ext_arm(): the caller may have sites without probes, and a pass of the optimizer takes
 * these for its own.
 */
void ext_refresh(struct site **sites, size_t count)
{
    count = site_to_front(sites, count, must_change);
    if (!count)
        return;
    wait_all(sites, count);
    make_free(sites, count);
    optimize_kick();
}

static void move_all_to(struct site **sites, size_t count, enum jump_stage to)
{
    for (size_t i = 0; i < count; i++)
        jump_move(sites[i], to);
}

size_t ext_disarm(struct site **sites, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        kretprobe_armed(sites[i], false);
    move_all_to(sites, count, STAGE_TO_ORIGINAL);
    if (!make_free(sites, count))
        left = site_to_front(sites, count, is_still_armed);
    move_all_to(sites, count, STAGE_NONE);
    return left;
}

void ext_settle(void)
{
    optimize_sweep();
    optimize_retry();
}

/* A jump that begins in front of @addr may reach into the copied bytes. */
void ext_recover(uint8_t *bytes, uintptr_t addr, size_t len)
{
    const struct site *site;

    if (!unoptimize_jumps())
        return;
    near_for_each(site, addr - (INSN_MAX_LEN - 1), addr + len)
        for (size_t i = 0; site->state == SITE_OPTIMIZED && i < jump_site(site)->jump_len;
             i++)
            if (site->addr + i - addr < len)
                bytes[site->addr + i - addr] = site->bytes[i];
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
        return false; /* a cell of the core */
    else
        *ip = *ip <= detour_start(site, *ip - off) ? site->addr : site->addr + site->len;
    return true;
}

void ext_resume(const struct site *site, struct pt_regs *regs)
{
    if (site && regs->ip == (uintptr_t)site_boost_slot(site))
        region_boost(site, regs);
    else
        region_redirect(site, regs);
}
NOKPROBE(ext_resume);

/* hit_instead - a program that steps itself has run into a jump: go on as if the jump
 * were a breakpoint. The program must not see the detour, and would see it if it stepped
 * through it.
 */
NOKPROBE_INLINE void hit_instead(struct probe_cpu *cpu, struct site *site,
                                 struct pt_regs *regs)
{
    if (site_is_call(site))
        regs->sp += 8; /* the jump is a call, and has pushed a word */
    hit_untrapped(cpu, site, regs);
}

/* step_in_cell - a step of a program that steps itself has ended @off bytes into a cell
 * of @site. Return: true: the program must not see this step.
 */
NOKPROBE_INLINE bool step_in_cell(struct site *site, size_t off, struct pt_regs *regs,
                                  struct probe_cpu *cpu)
{
    uintptr_t copy = detour_start(site, regs->ip - off);

    if (unlikely(READ_ONCE(jump_site(site)->region)) && region_step(site, off, regs))
        return true;
    if (regs->ip < copy) {
        if (regs->ip == (uintptr_t)site_detour(site)) /* else TF was set in the detour */
            hit_instead(cpu, site, regs);
        return true;
    }
    return step_in_copy(site, copy,
                        copy == (uintptr_t)site_boost_slot(site) ||
                            region_has_cell(site, copy),
                        regs, cpu, false);
}

enum ext_step ext_step(struct pt_regs *regs, struct probe_cpu *cpu, bool jumped)
{
    struct site *site;
    size_t off;

    if (plat_is_detour(regs->ip))
        return EXT_STEP_INSIDE;
    if (regs->ip == (uintptr_t)kretprobe_trampoline) {
        kretprobe_return_stepped(regs, cpu, jumped); /* ip is that of the caller now */
        return site_step_anywhere(regs) ? EXT_STEP_INSIDE : EXT_STEP_PROGRAM;
    }
    site = insn_slot_owner(regs->ip, &off);
    if (!site) { /* has the program stepped to a pad? */
        regs->ip = pad_pass(regs->ip);
        site = insn_slot_owner(regs->ip, &off);
    }
    if (!site)
        return EXT_STEP_NONE;
    return step_in_cell(site, off, regs, cpu) ? EXT_STEP_INSIDE : EXT_STEP_PROGRAM;
}
NOKPROBE(ext_step);

void ext_raise_step(struct pt_regs *regs, bool jumped)
{
    if (ext_step(regs, plat_this_cpu(), jumped) != EXT_STEP_INSIDE)
        plat_raise_step(regs);
}
NOKPROBE(ext_raise_step);

/* ---- handlers that do not come back ---- */

/* handler_return - the address that the light handler returns to. If the handler has
 * ended by a jump to a probed function, a return probe may have exchanged the word on the
 * stack.
 */
static uintptr_t handler_return(const struct plat_light *light)
{
    const uintptr_t *slot = (const uintptr_t *)light - 1;

    return return_point_is(*slot) ? kretprobe_find_ret(slot) : *slot;
}

static bool makes_record(const struct kprobe_program *program)
{
    for (unsigned i = 0; program && i < program->count; i++)
        if (program->ops[i].code == KPROBE_OP_RESERVE)
            return true;
    return false;
}

/* return_for - the engine has given up a light handler, which will not return. Change
 * @regs so that the program goes on as if the handler had returned, or at the end of the
 * probe's program: the registers that a function must preserve get their values back. The
 * code that called the handler then restores the CPU's flags and the count of preemption,
 * as after every handler.
 */
static void return_for(const struct plat_light *light, const struct site *site,
                       struct pt_regs *regs)
{
    uint64_t behind;

    regs->sp = (uintptr_t)light;
    regs->ip = handler_return(light);
    regs->flags &= ~(FLAGS_DF | FLAGS_TF);
    regs->bp = light->bp;
    regs->ax = 0; /* what the handler has returned */
    if (!plat_read(&behind, regs->ip) && program_is_mark(behind))
        regs->ip = program_mark_leads(regs->ip, behind);
    else if (makes_record(light->probe->program))
        plat_bug("a fault where a record is made", site->addr);
    if (jump_site(site)->which != PLAT_SPECIALIZED_LIGHT_KEEP)
        return;
    regs->bx = light->bx;
    regs->r12 = light->r12;
    regs->r13 = light->r13;
    regs->r14 = light->r14;
    regs->r15 = light->r15;
}

/* A DETOUR_RETURN does not check whether its probe is enabled. Without a holder it treats
 * each call as one that is not simple, and calls the code that checks.
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
