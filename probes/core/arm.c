/* arm.c - stages 5 and 13: put the breakpoint in, take it out.
 *
 * Owns the first byte of every probed instruction. One byte changes, so there is no state
 * in between: a CPU executes the old instruction or traps. How it is written, and how the
 * other CPUs come to know, is text_poke.c's business.
 */
#include "probes/core/life.h"
#include "probes/core/text_poke.h"
#include "probes/insn/encode.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"

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

/* The engine's own code lies in front of everything else, so it is armed last: else it
 * would trap its way through the rest.
 */
static void write_all(struct site **sites, size_t count, enum site_state to)
{
    for (size_t i = 0; i < count; i++)
        site_move(sites[i], to);
    while (count) {
        size_t chunk = count < CHUNK ? count : CHUNK;

        count -= chunk;
        write_chunk(sites + count, chunk, to);
    }
}

/* to_front - those that are armed, or are not. To arm what was armed all the time means to
 * take a jump from it that no longer fits; nothing else is to be done then.
 * Return: how many they are.
 */
static size_t to_front(struct site **sites, size_t count, bool armed)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        struct site *site = sites[i];

        if (site_is_armed(site) != armed)
            continue;
        sites[i] = sites[n];
        sites[n++] = site;
    }
    return n;
}

static void mark_leaving(struct site **sites, size_t count, bool leaving)
{
    for (size_t i = 0; i < count; i++)
        sites[i]->leaving = leaving;
}

/* disarm - sites that are armed. */
static void disarm(struct site **sites, size_t count)
{
    if (optimize_around(sites, count))
        return;
    unoptimize_around(sites, count);
    count = to_front(sites, count, true);
    if (!count)
        return;
    site_list_sort(&(struct site_list){ .sites = sites, .count = count });
    plat_lock(PLAT_TEXT);
    write_all(sites, count, SITE_DISARMED);
    plat_unlock(PLAT_TEXT);
}

/* arm - sites that are not. Before the int3s are written the CPUs are synchronised: the
 * copies were written by prepare.c, and each CPU must see them whole before it can be sent
 * there.
 */
static void arm(struct site **sites, size_t count)
{
    if (!count || optimize_around(sites, count))
        return;
    unoptimize_around(sites, count);
    site_list_sort(&(struct site_list){ .sites = sites, .count = count });
    plat_lock(PLAT_TEXT);
    for (size_t i = 0; i < count; i++)
        link_forget(sites[i]);
    plat_sync_cores();
    write_all(sites, count, SITE_ARMED);
    plat_unlock(PLAT_TEXT);
}

/* One that comes between jumps comes as a jump as well: behind an int3 its other bytes stay
 * the original ones, which those that read them could not all live with.
 */
void kprobe_arm(struct site **sites, size_t count)
{
    bool among_jumps = count == 1 && unoptimize_reader(sites[0]->addr);
    size_t stale = to_front(sites, count, true);

    if (!optimize_around(sites, stale))
        unoptimize_around(sites, stale);
    if (count > 1 || among_jumps)
        optimize_coming(sites, count);
    arm(sites, to_front(sites, count, false));
    optimize_kick();
}

void kprobe_disarm(struct site **sites, size_t count)
{
    count = to_front(sites, count, true);
    mark_leaving(sites, count, true);
    disarm(sites, count);
    mark_leaving(sites, count, false);
}
