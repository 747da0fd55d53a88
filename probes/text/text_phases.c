/* text_phases.c - the last phases of changes of text, in a ring.
 *
 * Every phase is noted, also if nothing asks for it later: that costs only a few stores.
 */
#include "probes/text/text_phases.h"

#include "probes/core/extend.h"
#include "probes/core/text_batch.h"

/* Locks: PLAT_TEXT. */
static struct text_phase phases[TEXT_PHASES_LEN];
uint64_t text_phases_noted;
static void (*watcher)(const struct text_phase *p);

static void note_written(const struct text_poke *pokes, size_t count, unsigned step,
                         unsigned level)
{
    struct text_phase *p = &phases[text_phases_noted++ % TEXT_PHASES_LEN];

    p->first = pokes->addr;
    p->count = count;
    p->step = (uint8_t)step;
    p->level = (uint16_t)level;
    p->cpus = 0;
    p->ns = plat_clock_ns();
    if (watcher)
        watcher(p);
}

static uint32_t answer_of(const struct text_phase *p, unsigned cpu)
{
    uint64_t ns = plat_sync_ns(cpu);

    if (!ns)
        return TEXT_PHASE_HALTED;
    return ns - p->ns < TEXT_PHASE_HALTED ? (uint32_t)(ns - p->ns)
                                          : TEXT_PHASE_HALTED - 1;
}

static void note_synced(void)
{
    struct text_phase *p = &phases[(text_phases_noted - 1) % TEXT_PHASES_LEN];
    unsigned cpus = plat_cpu_count();

    for (unsigned cpu = 0; cpu < cpus; cpu++)
        p->answered[cpu] = answer_of(p, cpu);
    p->cpus = (uint8_t)cpus;
    if (watcher)
        watcher(p);
}

void ext_poke_sync(const struct text_poke *pokes, size_t count, unsigned step,
                   unsigned level)
{
    note_written(pokes, count, step, level);
    text_poke_sync();
    note_synced();
}

bool text_phases_get(uint64_t number, struct text_phase *out)
{
    if (number >= text_phases_noted || text_phases_noted - number > TEXT_PHASES_LEN)
        return false;
    *out = phases[number % TEXT_PHASES_LEN];
    return true;
}

void text_phases_watch(void (*fn)(const struct text_phase *p))
{
    watcher = fn;
}

const char *text_phase_name(unsigned step)
{
    static const char *const names[] = {
        [TEXT_POKE_GUARD] = "guard",
        [TEXT_POKE_TAIL] = "tail",
        [TEXT_POKE_FIRST] = "first",
        [TEXT_POKE_WHOLE] = "whole",
    };

    return names[step];
}
