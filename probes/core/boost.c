/* boost.c - stage 8: boosts an STI. To boost an instruction is to run its copy in the
 * slot as the program's own code, without a second trap; boost_run() in life.h does that.
 *
 * STI is the hard case. Behind an STI the CPU takes no interrupt until it has executed
 * one more instruction: this is the interrupt shadow of STI. If a copy has STI and a jump
 * back, the interrupt shadow covers the jump, and not the next instruction of the
 * program.
 */
#include "probes/core/life.h"
#include "probes/core/registry.h"

/* is_probe_hit - must a CPU execute what is in the text at @addr, and not a copy of the
 * instruction? It must if there is a probe, which the CPU has to hit, or a debug register
 * that stops the CPU there. It must also if a region begins there: a copy would send the
 * CPU behind the first instruction, into the rest of the region's jump. An instruction
 * that was evicted has a site without a probe: a copy of it will do.
 *
 * In a hit by a jump, interrupts are as the program has them. They are off until the site
 * has been looked at: a table is freed, and so is a site that has left the registry, as
 * soon as each CPU has answered plat_sync_cores().
 */
NOKPROBE_INLINE bool is_probe_hit(uintptr_t addr)
{
    unsigned long irqs = plat_irq_save();
    const struct site *site = registry_find(addr);
    bool hit = site && site_is_armed(site) &&
               (READ_ONCE(site->probes) || READ_ONCE(site->asks_resume));

    plat_irq_restore(irqs);
    return hit || plat_stops_at(addr);
}

/* Both instructions, STI and its successor, are run together, so that no interrupt comes
 * between them. There are two exceptions: the successor must be hit (is_probe_hit()), or the
 * program has TF set and wants a trap between the two.
 *
 * If the successor can be copied, one copy has both. If it is emulated, such as a call,
 * the effects of both are applied to the image: the CPU can take interrupts only when it
 * goes back to the program, and then the program is behind both instructions.
 */
void boost_sti(const struct site *site, struct pt_regs *regs)
{
    const struct sti_pair *pair = site_pair(site);

    regs->ip = (uintptr_t)site->boost_slot;
    if (regs->flags & FLAGS_TF || is_probe_hit(site->addr + site->len))
        return;
    if (pair->slot)
        regs->ip = (uintptr_t)pair->slot;
    if (!pair->site)
        return;
    regs->flags |= FLAGS_IF;
    emulate_run(pair->site, regs);
}
NOKPROBE(boost_sti);

/* The trap behind the copy of STI has ended its interrupt shadow in front of the
 * successor. So IF is cleared, and STI is executed once more, together with the
 * successor.
 */
void boost_sti_again(const struct site *site, struct pt_regs *regs)
{
    if (regs->ip != site->addr + site->len || !(regs->flags & FLAGS_IF) ||
        regs->flags & FLAGS_TF)
        return;
    regs->flags &= ~FLAGS_IF;
    boost_sti(site, regs);
}
NOKPROBE(boost_sti_again);
