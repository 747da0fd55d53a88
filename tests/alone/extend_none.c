/* extend_none.c - the functions of extend.h for the core alone: no breakpoint becomes a
 * jump, and no return is followed.
 *
 * `make core` links this file in place of jump/extend.c.
 */
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/text_batch.h"

size_t ext_site_size(void)
{
    return sizeof(struct site);
}

size_t ext_front_len(const struct insn *insn UNUSED)
{
    return 0;
}

void ext_release(struct site **sites UNUSED, size_t count UNUSED)
{
}

int ext_join(const struct site *site, struct kprobe *p, struct probe_reject *why)
{
    return p->program ? probe_refuse(why, PROBE_BAD_PROGRAM, site->addr) : 0;
}

void ext_part(struct kprobe *p UNUSED)
{
}

uint64_t ext_hits(const struct kprobe *p UNUSED)
{
    return 0;
}

struct site *ext_waiting(void)
{
    return NULL;
}

void ext_wait(struct kprobe *p UNUSED)
{
}

void ext_wake(struct kprobe *p UNUSED)
{
}

bool ext_text_leaves(uintptr_t addr UNUSED)
{
    return false;
}

size_t ext_arm(struct site **sites, size_t count)
{
    return site_to_front(sites, count, site_is_bare);
}

size_t ext_disarm(struct site **sites UNUSED, size_t count)
{
    return count;
}

void ext_refresh(struct site **sites UNUSED, size_t count UNUSED)
{
}

void ext_settle(void)
{
}

void ext_poke_steps(struct text_batch *batch)
{
    text_poke_steps(batch);
}

void ext_poke_levels(struct text_poke *pokes UNUSED, size_t count UNUSED)
{
}

void ext_poke_sync(const struct text_poke *pokes UNUSED, size_t count UNUSED,
                   unsigned step UNUSED, unsigned level UNUSED)
{
    text_poke_sync();
}

void ext_recover(uint8_t *bytes UNUSED, uintptr_t addr UNUSED, size_t len UNUSED)
{
}

bool ext_original(uintptr_t *ip UNUSED)
{
    return false;
}

size_t ext_regions;

void ext_resume(const struct site *site UNUSED, struct pt_regs *regs UNUSED)
{
}
NOKPROBE(ext_resume);

enum ext_step ext_step(struct pt_regs *regs UNUSED, struct probe_cpu *cpu UNUSED,
                       bool jumped UNUSED)
{
    return EXT_STEP_NONE;
}
NOKPROBE(ext_step);

void ext_raise_step(struct pt_regs *regs, bool jumped UNUSED)
{
    plat_raise_step(regs);
}
NOKPROBE(ext_raise_step);

void ext_given_up(struct probe_cpu *cpu UNUSED, const struct probe_hit *hit UNUSED,
                  struct pt_regs *regs UNUSED, uintptr_t sp UNUSED)
{
}

void ext_return_resume(struct pt_regs *regs UNUSED, struct probe_cpu *cpu UNUSED,
                       bool jumped UNUSED)
{
}
NOKPROBE(ext_return_resume);
