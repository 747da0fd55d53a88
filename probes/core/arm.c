/* arm.c - stages 5 and 13: puts the breakpoint in, and takes it out.
 *
 * Owns the first byte of every probed instruction. One byte changes, so there is no state
 * in between: a CPU executes the old instruction, or it traps. text_poke.c writes the
 * byte and synchronises the other CPUs.
 */
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"

#define CHUNK 1024 /* sites in a batch; static memory, because arming cannot fail */

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

/* The engine's own code has the lowest addresses, so it is armed last and disarmed first:
 * otherwise the engine would hit its own probes while it changes the other sites.
 */
static void write_first_bytes(struct site **sites, size_t count, enum site_state to)
{
    for (size_t i = 0; i < count; i++)
        site_move(sites[i], to);
    for (size_t done = 0, chunk; done < count; done += chunk) {
        chunk = count - done < CHUNK ? count - done : CHUNK;
        write_chunk(sites + (to == SITE_ARMED ? count - done - chunk : done), chunk, to);
    }
}

/* The CPUs are synchronised before the int3s are written: prepare.c has written the
 * copies, and each CPU must see a copy as a whole before a hit can send the CPU there.
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
    count = ext_disarm(sites, site_to_front(sites, count, site_is_armed));
    if (!count)
        return;
    site_list_sort(&(struct site_list){ .sites = sites, .count = count });
    plat_lock(PLAT_TEXT);
    write_first_bytes(sites, count, SITE_DISARMED);
    plat_unlock(PLAT_TEXT);
}
