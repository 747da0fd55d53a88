/* test_everywhere.c - probes on every instruction that may carry one, all at once. */
#include "kernel/debug/ksyms.h"
#include "probes/explain/totals.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/workers.h"

#define PORTION 4096u /* probes */

struct all {
    struct kprobe *probes;
    struct kprobe **pointers;
    size_t count, max;
    size_t refused[PROBE_REASON_COUNT];
};

static void add(const struct insn *insn, void *arg)
{
    struct all *all = arg;

    if (all->probes && all->count < all->max) {
        all->probes[all->count].addr = insn->addr;
        all->pointers[all->count] = &all->probes[all->count];
    }
    all->count++;
}

static void walk(struct all *all, size_t first, size_t step)
{
    struct ksym sym;

    all->count = 0;
    for (size_t i = first; i < ksyms_count(); i += step) {
        struct plat_symbol function;

        if (!ksyms_get(i, &sym) || !sym.size || plat_symbol_at(sym.start, &function) ||
            function.start != sym.start)
            continue;
        plat_lock(PLAT_PROBES);
        boundary_for_each(&function, add, all);
        plat_unlock(PLAT_PROBES);
    }
}

static void refused(struct kprobe *p UNUSED, const struct probe_reject *why, void *arg)
{
    struct all *all = arg;

    all->refused[why->reason]++;
}

/* take_away - unregister @ps. Before that a short run disables all probes in portions.
 * The code of the engine has the lowest addresses, so its probes are disabled first.
 * Otherwise the engine would hit probes in its own code while it removes the others, as
 * in a long run.
 */
static void take_away(struct kprobe **ps, size_t count)
{
    for (size_t at = 0; at < ktest_count(count, 0); at += PORTION)
        disable_kprobes(ps + at, count - at < PORTION ? count - at : PORTION);
    unregister_kprobes(ps, count);
}

KTEST(everywhere, every_instruction_at_once)
{
    struct all all = { 0 };
    struct probe_totals before, after;
    uint64_t hits = 0, missed = 0;
    long in;

    walk(&all, 0, 1);
    all.max = all.count;
    all.probes = kzalloc(all.max * sizeof(*all.probes));
    all.pointers = kzalloc(all.max * sizeof(*all.pointers));
    walk(&all, 0, 1);
    ktest_note("%lu boundaries", all.count);
    account_totals(&before);
    in = register_kprobes_some(all.pointers, all.count, refused, &all);
    workers_run(50);
    take_away(all.pointers, (size_t)in);
    account_totals(&after);
    for (long i = 0; i < in; i++) {
        hits += all.pointers[i]->hits;
        missed += all.pointers[i]->nmissed;
    }
    ktest_note("%ld armed, %lu hits, %lu missed, %lu traps", in, hits, missed,
               (after.traps - before.traps));
    for (unsigned r = 0; r < PROBE_REASON_COUNT; r++)
        if (all.refused[r])
            ktest_note("refused %lu %s", all.refused[r],
                       probe_reason_name((enum probe_reason)r));
    ktest_report(in > 0 && hits > 0, "they were hit");
    kfree(all.probes);
    kfree(all.pointers);
}
