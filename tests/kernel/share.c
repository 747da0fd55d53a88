/* share.c - registers probes at a random share of all instructions, function by function,
 * in the order of the symbols.
 */
#include "tests/kernel/share.h"

#include "kernel/memmap.h"
#include "tests/kernel/ktest.h"

struct share share;

void share_begin(void)
{
    share.max = (size_t)(_etext - _text) / 2;
    share.probes = plat_alloc(share.max * sizeof(share.probes[0]));
    share.pointers = plat_alloc(share.max * sizeof(share.pointers[0]));
    ktest_report(share.probes && share.pointers, "there is memory");
}

void share_end(void)
{
    plat_free(share.probes);
    plat_free(share.pointers);
}

static void choose(const struct insn *insn, void *arg UNUSED)
{
    if (share.count == share.max || ktest_random() % 100 >= share.percent)
        return;
    share.probes[share.count] = (struct kprobe){ .addr = insn->addr };
    share.pointers[share.count] = &share.probes[share.count];
    share.count++;
}

static void ignore(struct kprobe *p UNUSED, const struct probe_reject *why UNUSED,
                   void *arg UNUSED)
{
}

void share_register(unsigned percent, bool with_engine)
{
    struct plat_symbol sym;

    share.percent = percent;
    share.count = 0;
    for (uintptr_t at = (uintptr_t)_text; at < (uintptr_t)_etext; at++) {
        if (plat_symbol_at(at, &sym) || (plat_is_engine(at) && !with_engine))
            continue;
        plat_lock(PLAT_PROBES);
        boundary_for_each(&sym, choose, NULL);
        plat_unlock(PLAT_PROBES);
        at = sym.start + sym.size - 1;
    }
    share.count =
        (size_t)register_kprobes_some(share.pointers, share.count, ignore, NULL);
}
