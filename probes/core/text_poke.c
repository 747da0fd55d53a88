/* text_poke.c - changes instructions that other CPUs are executing.
 *
 * Why three steps. Another CPU may fetch these bytes at any moment, in pieces and in any
 * order, so each intermediate content must be harmless:
 *
 *   1. guard: int3 over the first byte   a CPU that arrives traps, and a hit sends it on
 *   2. tail: the bytes behind it         no CPU can reach them: the int3 of 1 is in front
 *   3. first: the new first byte         the change becomes visible at once
 *
 * Each step ends with plat_sync_cores(), so that no CPU mixes the bytes of two steps. If
 * a CPU were left out, an emulator would not show the mistake; so the count of each CPU
 * is checked. If instructions extend over each other, a step has several levels: see
 * text_batch.c. Another room may stop the machine around the steps, and note when each
 * CPU was synchronised: ext_poke_steps(), ext_poke_sync().
 */
#include "probes/core/extend.h"
#include "probes/core/platform.h"
#include "probes/core/text_batch.h"

/* ---- the protocol ---------------------------------------------------------------------- */

void text_poke_sync(void)
{
    static uint64_t before[PLAT_CPUS_MAX]; /* under PLAT_TEXT */
    unsigned cpus = plat_cpu_count();

    for (unsigned cpu = 0; cpu < cpus; cpu++)
        before[cpu] = plat_sync_count(cpu);
    plat_sync_cores();
    for (unsigned cpu = 0; cpu < cpus; cpu++)
        if (plat_sync_count(cpu) == before[cpu])
            plat_bug("a CPU has not been synchronised", cpu);
}

static void run_step(struct text_batch *b, enum text_poke_step step)
{
    for (unsigned level = 0; level < b->levels[step]; level++)
        if (text_batch_write(b, step, level))
            ext_poke_sync(b->pokes, b->count, step, level);
}

void text_poke_steps(struct text_batch *b)
{
    run_step(b, TEXT_POKE_GUARD);
    run_step(b, TEXT_POKE_TAIL);
    run_step(b, TEXT_POKE_FIRST);
}

/* ---- the interface --------------------------------------------------------------------- */

void text_poke_batch(struct text_poke *pokes, size_t count)
{
    struct text_batch b;

    if (!plat_lock_held(PLAT_TEXT))
        plat_bug("text is patched without its lock", count ? pokes->addr : 0);
    text_batch_begin(&b, pokes, count);
    ext_poke_steps(&b);
}
