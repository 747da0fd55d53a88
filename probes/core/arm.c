/* arm.c - stages 5 and 13: put the breakpoint in, take it out.
 *
 * Owns the first byte of every probed instruction. One byte changes, so there is no state
 * in between: a CPU executes the old instruction or traps. How it is written, and how the
 * other CPUs come to know, is text_poke.c's business.
 */
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"

#define CHUNK 1024 /* sites: memory that is always there, since arming cannot fail */

static uint8_t first_byte(const struct site *site, enum site_state to)
{
    return to == SITE_ARMED ? INSN_INT3 : site->bytes[0];
}

static void write_chunk(struct site **sites, size_t count, enum site_state to)
{
    static struct text_poke pokes[CHUNK]; /* under PLAT_TEXT */

    for (size_t i = 0; i < count; i++)
        pokes[i] = (struct text_poke){
            .addr = sites[i]->addr,
            .len = 1,
            .bytes = { first_byte(sites[i], to) },
        };
    text_poke_batch(pokes, count);
}

/* The engine's own code has the lowest addresses. It is armed last, or the engine would
 * trap in its own code while it arms the rest.
 */
static void write_first_bytes(struct site **sites, size_t count, enum site_state to)
{
    for (size_t i = 0; i < count; i++)
        site_move(sites[i], to);
    while (count) {
        size_t chunk = count < CHUNK ? count : CHUNK;

        count -= chunk;
        write_chunk(sites + count, chunk, to);
    }
}

/* Before the int3s are written the CPUs are synchronised: the copies were written by
 * prepare.c, and each CPU must see them whole before it can be sent there.
 */
void kprobe_guard(struct site **sites, size_t count)
{
    if (!count)
        return;
    site_list_sort(&(struct site_list){ .sites = sites, .count = count });
    plat_lock(PLAT_TEXT);
    plat_sync_cores();
    write_first_bytes(sites, count, SITE_ARMED);
    plat_unlock(PLAT_TEXT);
}

void kprobe_arm(struct site **sites, size_t count)
{
    kprobe_guard(sites, ext_arm(sites, count));
}

void kprobe_disarm(struct site **sites, size_t count)
{
    count = ext_disarm(sites, site_to_front(sites, count, true));
    if (!count)
        return;
    site_list_sort(&(struct site_list){ .sites = sites, .count = count });
    plat_lock(PLAT_TEXT);
    write_first_bytes(sites, count, SITE_DISARMED);
    plat_unlock(PLAT_TEXT);
}
