/* account.c - every hit is counted once: as run, or as missed under one cause. */
#include "probes/core/counter.h"
#include "probes/core/life.h"

const char *probe_miss_name(enum probe_miss cause)
{
    static const char *const names[MISS_CAUSES] = {
        [MISS_RECURSION] = "recursion",
        [MISS_NESTED] = "nested",
        [MISS_STACK] = "stack",
        [MISS_EARLY] = "early",
    };

    return cause < MISS_CAUSES ? names[cause] : "?";
}

void account_miss(struct probe_cpu *cpu, struct site *site, enum probe_miss cause)
{
    struct kprobe *p = __atomic_load_n(&site->probes, __ATOMIC_ACQUIRE);

    if (cpu)
        probe_count(&cpu->missed[cause]);
    for (; p; p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE)) {
        if (READ_ONCE(p->flags) & KPROBE_FLAG_DISABLED)
            continue;
        __atomic_add_fetch(&p->missed[cause], 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&p->nmissed, 1, __ATOMIC_RELAXED);
    }
}
NOKPROBE(account_miss);

uint64_t kprobe_hits(const struct kprobe *p)
{
    return READ_ONCE(p->hits) + counter_sum(READ_ONCE(p->counter));
}

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
