/* test_image.c - all instructions of the image: how many of them can carry a probe, and
 * that no instruction uses memory below the stack pointer.
 */
#include "kernel/debug/ksyms.h"
#include "tests/conformance/refusal.h"
#include "tests/kernel/ktest.h"

#define FIXTURES_PREFIX "fixture_code_"
#define ACCEPTED_PER_10000 9999

/* function_get - get the function of symbol @i. Fixtures are left out, since they would
 * be most of the refused instructions.
 */
static bool function_get(size_t i, struct plat_symbol *function)
{
    struct ksym sym;

    if (!ksyms_get(i, &sym) || !sym.size || plat_symbol_at(sym.start, function))
        return false;
    return function->start == sym.start &&
           strncmp(sym.name, FIXTURES_PREFIX, strlen(FIXTURES_PREFIX)) != 0;
}

static void for_each_insn(void (*fn)(const struct insn *insn, void *arg), void *arg)
{
    struct plat_symbol function;

    for (size_t i = 0; i < ksyms_count(); i++) {
        if (!function_get(i, &function))
            continue;
        plat_lock(PLAT_PROBES);
        boundary_for_each(&function, fn, arg);
        plat_unlock(PLAT_PROBES);
    }
}

/* ---- how much can be probed ---- */

struct offers {
    struct kprobe *probes, **pointers;
    size_t count, max;
    size_t listed, unlisted, blacklisted;
};

static void offer(const struct insn *insn, void *arg)
{
    struct offers *o = arg;

    if (o->probes && o->count < o->max) {
        o->probes[o->count].addr = insn->addr;
        o->probes[o->count].flags = KPROBE_FLAG_DISABLED;
        o->pointers[o->count] = &o->probes[o->count];
    }
    o->count++;
}

static void note_refusal(const struct kprobe *p, const struct probe_reject *why,
                         bool listed)
{
    struct plat_symbol at = { .name = "?" };

    plat_symbol_at(p->addr, &at);
    ktest_note("refused: %s+0x%lx, %s%s", at.name, p->addr - at.start,
               probe_reason_name(why->reason), listed ? "" : ", not in refused.tsv");
}

static void refused(struct kprobe *p, const struct probe_reject *why, void *arg)
{
    struct offers *o = arg;
    struct insn insn;
    bool listed;

    if (why->reason == PROBE_BLACKLISTED || why->reason == PROBE_ENTRY_CODE) {
        o->blacklisted++;
        return;
    }
    listed = !insn_decode(&insn, (const uint8_t *)p->addr, INSN_MAX_LEN, p->addr) &&
             refusal_meet(insn.kind, why->reason);
    o->listed += listed;
    o->unlisted += !listed;
    note_refusal(p, why, listed);
}

static void report_offers(const struct offers *o, size_t accepted)
{
    size_t candidates = o->count - o->blacklisted;

    ktest_report(
        accepted + o->listed + o->unlisted == candidates,
        "%lu boundaries, %lu of them blacklisted; of the other %lu, %lu accept a "
        "probe",
        (unsigned long)o->count, (unsigned long)o->blacklisted, (unsigned long)candidates,
        (unsigned long)accepted);
    ktest_report(accepted * 10000 >= candidates * ACCEPTED_PER_10000,
                 "that is %lu.%02lu %%", (accepted * 100 / candidates),
                 (accepted * 10000 / candidates % 100));
    ktest_report(!o->unlisted, "each of the %lu others is refused by a rule of the list",
                 (o->listed + o->unlisted));
}

KTEST(conformance, image_accepts_probes)
{
    struct offers o = { 0 };
    long accepted;

    for_each_insn(offer, &o);
    o.max = o.count;
    o.count = 0;
    o.probes = kzalloc(o.max * sizeof(*o.probes));
    o.pointers = kzalloc(o.max * sizeof(*o.pointers));
    if (o.probes && o.pointers) {
        for_each_insn(offer, &o);
        accepted = register_kprobes_some(o.pointers, o.count, refused, &o);
        unregister_kprobes(o.pointers, (size_t)accepted);
        report_offers(&o, (size_t)accepted);
    } else {
        ktest_report(false, "there is memory for %lu probes", o.max);
    }
    kfree(o.probes);
    kfree(o.pointers);
}

/* ---- below the stack pointer ---- */

static void find_red_zone(const struct insn *insn, void *arg)
{
    unsigned *found = arg;
    struct plat_symbol at = { .name = "?" };

    if (!insn->has_mem || insn->base != INSN_SP || insn->disp >= 0 ||
        insn->class == INSN_CLASS_LEA)
        return;
    ++*found;
    plat_symbol_at(insn->addr, &at);
    ktest_note("%s+0x%lx accesses memory below its stack pointer", at.name,
               insn->addr - at.start);
}

KTEST(conformance, h28_no_red_zone)
{
    unsigned found = 0;

    for_each_insn(find_red_zone, &found);
    ktest_report(!found, "no instruction of the image does that");
}
