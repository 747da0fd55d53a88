/* totals.c - sum the counters of all CPUs. */
#include "probes/explain/totals.h"

#include "probes/jump/counter.h"

static void totals_add_cpu(struct probe_totals *out, const struct probe_cpu *cpu)
{
    for (size_t way = 0; way < WAYS; way++)
        out->ran[way] += READ_ONCE(cpu->ran[way]);
    for (size_t cause = 0; cause < MISS_CAUSES; cause++)
        out->missed[cause] += READ_ONCE(cpu->missed[cause]);
    out->untrapped += READ_ONCE(cpu->untrapped);
    out->steps += READ_ONCE(cpu->steps);
    out->redirected += READ_ONCE(cpu->redirected);
    out->retries += READ_ONCE(cpu->retries);
    out->cache_misses += READ_ONCE(cpu->cache_misses);
    out->handler_faults += READ_ONCE(cpu->handler_faults);
}

void account_totals(struct probe_totals *out)
{
    *out = (struct probe_totals){ 0 };
    for (unsigned i = 0; i < plat_cpu_count(); i++)
        if (plat_probe_cpu(i))
            totals_add_cpu(out, plat_probe_cpu(i));
    out->traps = out->steps + out->redirected + out->retries - out->untrapped;
    for (size_t way = 0; way < WAYS; way++)
        out->traps += way == WAY_JUMP ? 0 : out->ran[way];
    for (size_t cause = 0; cause < MISS_CAUSES; cause++)
        out->traps += out->missed[cause];
    out->ran[WAY_JUMP] += counter_total();
}
