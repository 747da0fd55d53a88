/* account.c - counts the hits of a probe: each hit is counted once, as run, or as a miss
 * under one cause.
 */
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
    return READ_ONCE(p->hits) + ext_hits(p);
}
