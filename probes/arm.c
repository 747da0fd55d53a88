/* arm.c - stages 5 and 13: put the breakpoint in, take it out.
 *
 * Owns the first byte of every probed instruction. One byte changes, so there is no state
 * in between: a CPU executes the old instruction or traps.
 */
#include "probes/insn/encode.h"
#include "probes/life.h"

static void write_first_byte(const struct site *site, uint8_t byte)
{
    if (plat_text_write(site->addr, &byte, 1))
        plat_bug("the text of a checked probe is not writable", site->addr);
}

/* Why two rounds of synchronisation:
 *   1. the copies were written by prepare.c; each CPU must see them whole before it can
 *      be sent there
 *   2. the int3s: on return every CPU must trap
 */
void kprobe_arm(struct site **sites, size_t count)
{
    const uint8_t int3 = INSN_INT3;

    if (!count)
        return;
    plat_lock(PLAT_TEXT);
    plat_sync_cores();
    for (size_t i = 0; i < count; i++) {
        write_first_byte(sites[i], int3);
        site_move(sites[i], SITE_ARMED);
    }
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}

void kprobe_disarm(struct site **sites, size_t count)
{
    if (!count)
        return;
    plat_lock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++) {
        write_first_byte(sites[i], sites[i]->bytes[0]);
        site_move(sites[i], SITE_DISARMED);
    }
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
}
