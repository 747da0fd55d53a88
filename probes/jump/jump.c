/* jump.c - stage 6 for hits by a jump: what the code of a detour calls to run the
 * handlers.
 *
 * The code of the detour (probes/jump/detour.asm) has built the same image as a trap
 * builds, and has switched preemption off. Interrupts are as the program has them. So
 * while a hit is handled here, an interrupt may come at any moment, with hits of its own.
 *
 * The return value says how the program goes on. JUMP_ON: in the cell, with the registers
 * of the image. JUMP_IMAGE: as the image says, as after a trap.
 */
#include "probes/jump/jump.h"

#include "probes/core/hit.h"
#include "probes/core/insn_slot.h"

#define JUMP_ON false
#define JUMP_IMAGE true

/* ---- coming ---- */

NOKPROBE_INLINE struct probe_hit *jump_hit_begin(struct probe_cpu *cpu, struct site *site,
                                                 struct pt_regs *regs,
                                                 enum hit_stage stage)
{
    struct probe_hit *hit = hit_begin(cpu, site, regs, stage, probe_in_nmi(cpu));

    if (unlikely(!hit)) {
        if (stage == HIT_PRE)
            probe_count(&cpu->untrapped);
        return NULL;
    }
    hit_by_jump(hit);
    return hit;
}

/* miss - the handlers of a hit do not run. The cause is counted already, unless the CPU
 * is not ready for probes.
 */
NOKPROBE_INLINE void miss(struct probe_cpu *cpu, struct site *site)
{
    if (unlikely(!cpu))
        account_miss(NULL, site, MISS_EARLY);
}

/* ---- pre-handlers ---- */

bool kprobe_jump_rest(struct pt_regs *regs, struct kprobe *p, struct probe_cpu *cpu)
{
    struct probe_hit *hit = &cpu->hits[cpu->depth - 1];
    bool stop = false;

    for (; p && !stop; p = aggr_next(p))
        stop = aggr_run_pre(p, hit, regs, true);
    return stop;
}
NOKPROBE(kprobe_jump_rest);

/* run_handlers - do what RUN of detour.asm does, for a hit that may be on top of others.
 * Return: true: a handler has set ip itself. The hit is counted as such then.
 */
NOKPROBE_INLINE bool run_handlers(struct probe_cpu *cpu, struct probe_hit *hit,
                                  struct site *site, struct pt_regs *regs)
{
    bool stop = kprobe_jump_rest(regs, aggr_first(site), cpu);

    hit_leave(cpu, hit, true);
    probe_count(stop ? &cpu->redirected : &cpu->ran[WAY_JUMP]);
    if (stop)
        probe_count(&cpu->untrapped);
    return stop;
}

bool kprobe_jump_handler(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu)
{
    struct probe_hit *hit = likely(cpu) ? jump_hit_begin(cpu, site, regs, HIT_PRE) : NULL;

    if (unlikely(!hit)) {
        miss(cpu, site);
        return JUMP_ON;
    }
    return run_handlers(cpu, hit, site, regs) ? JUMP_IMAGE : JUMP_ON;
}
NOKPROBE(kprobe_jump_handler);

/* ---- the instruction by the image ---- */

NOKPROBE_INLINE void jump_hit_leave(struct pt_regs *regs, struct site *site,
                                    struct probe_cpu *cpu, bool stopped)
{
    if (stopped)
        site_go_anywhere(regs);
    else if (likely(cpu))
        hit_run(cpu, site, regs, READ_ONCE(site->way), true);
    else
        hit_run_alone(site, regs, true);
}

/* The detour calls this function when the program cannot go on in the cell. After a
 * missed hit that happens if the program has DF set. The reason for the miss still holds,
 * so may_enter() finds it again, and the post-handlers are not called.
 */
void kprobe_jump_leave(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu,
                       bool stopped)
{
    bool admitted = cpu && may_enter(cpu, site, regs, probe_in_nmi(cpu)) == MISS_CAUSES;

    if (stopped || likely(admitted))
        jump_hit_leave(regs, site, cpu, stopped);
    else
        hit_run_alone(site, regs, true);
}
NOKPROBE(kprobe_jump_leave);

void kprobe_specialized_leave(struct pt_regs *regs, uintptr_t ip, struct probe_cpu *cpu,
                              bool stopped)
{
    size_t off;

    kprobe_jump_leave(regs, insn_slot_owner(ip, &off), cpu, stopped);
}
NOKPROBE(kprobe_specialized_leave);

void kprobe_image_handler(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu)
{
    struct probe_hit *hit = likely(cpu) ? jump_hit_begin(cpu, site, regs, HIT_PRE) : NULL;

    if (likely(hit)) {
        jump_hit_leave(regs, site, cpu, run_handlers(cpu, hit, site, regs));
        return;
    }
    miss(cpu, site);
    hit_run_alone(site, regs, true);
}
NOKPROBE(kprobe_image_handler);

/* ---- post-handlers ---- */

bool kprobe_post_handler(struct pt_regs *regs, struct site *site, struct probe_cpu *cpu)
{
    struct probe_hit *hit;
    uintptr_t next = site->addr + site->len;
    bool stopped;

    regs->ip = next;
    hit = likely(cpu) ? jump_hit_begin(cpu, site, regs, HIT_POST) : NULL;
    if (likely(hit))
        hit_after(cpu, hit, aggr_first(site), regs, true);
    stopped = regs->ip != next;
    if (unlikely(stopped))
        site_go_anywhere(regs);
    else
        site_go_on(site, regs); /* the image is also needed if only flags have changed */
    return stopped ? JUMP_IMAGE : JUMP_ON;
}
NOKPROBE(kprobe_post_handler);
