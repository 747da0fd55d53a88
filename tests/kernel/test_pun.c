/* test_pun.c - for every instruction of the running kernel that may carry a probe, a jump
 * is planned, and the pads of all these jumps are made. Nothing is written to text.
 */
#include "probes/jump/pun.h"

#include "kernel/mm/exec.h"
#include "kernel/mm/heap.h"
#include "probes/core/life.h"
#include "probes/jump/pad.h"
#include "probes/jump/platform_jump.h"
#include "probes/many/walk.h"
#include "tests/kernel/ktest.h"

#include <string.h>

#define PUNS_MAX 200000

static struct {
    struct pun *puns;
    size_t count;
    uintptr_t done;
    uintptr_t *pads;
    struct pad_jump *jumps;
    size_t pad_count;
} all;

static void insn_take(const struct insn *insn, void *unused)
{
    struct pun *p = &all.puns[all.count];
    struct probe_reject why;
    struct insn checked;

    (void)unused;
    if (all.count == PUNS_MAX || kprobe_check(insn->addr, &checked, &why))
        return;
    *p = (struct pun){ .addr = insn->addr, .len = insn->len };
    p->is_call = insn->kind == INSN_CALL_REL;
    p->detour = ARENA_LOW_START + all.count * 32 % ARENA_LEN;
    memcpy(p->bytes, insn->bytes, insn->len);
    all.count++;
}

static bool function_take(const struct plat_symbol *function, void *unused)
{
    walk_boundaries(function, &all.done, insn_take, unused);
    return true;
}

/* ---- questions of the planner ---- */

static bool is_pad_free(void *unused, uintptr_t pad)
{
    (void)unused;
    return pad_is_free(pad);
}

static bool byte_at(void *unused, uintptr_t addr, uint8_t *byte)
{
    (void)unused;
    return plat_text_contains(addr, 1) && !plat_text_read(byte, addr, 1);
}

static bool is_padding(void *unused, uintptr_t addr)
{
    struct plat_symbol function;

    (void)unused;
    return plat_text_contains(addr, 1) && plat_symbol_at(addr, &function) != 0;
}

static size_t all_plan(void)
{
    struct plat_pad_range range;
    struct pun_env env = {
        .pad_is_free = is_pad_free,
        .byte_at = byte_at,
        .is_padding = is_padding,
    };
    struct pun_batch batch = { .env = &env, .puns = all.puns, .count = all.count };
    size_t failed;

    plat_pad_range(&range);
    env.pads_start = range.start;
    env.pads_end = range.end;
    env.hole_start = range.hole_start;
    env.hole_end = range.hole_end;
    batch.work = kmalloc(pun_work_len(all.count, 0));
    failed = batch.work ? pun_plan(&batch) : all.count;
    kfree(batch.work);
    return failed;
}

/* ---- pads ---- */

static void pads_gather(void)
{
    for (size_t i = 0; i < all.count; i++) {
        const struct pun *p = &all.puns[i];

        if (p->rung == PUN_NONE || !p->pad)
            continue;
        all.pads[all.pad_count] = p->pad;
        all.jumps[all.pad_count++] = (struct pad_jump){ p->pad, p->detour };
    }
}

static int pads_make(void)
{
    int err = pad_reserve(all.pads, all.pad_count);

    if (err)
        return err;
    plat_lock(PLAT_TEXT);
    pad_fill(all.jumps, all.pad_count);
    plat_unlock(PLAT_TEXT);
    return 0;
}

static size_t pads_astray(void)
{
    size_t count = 0;

    for (size_t i = 0; i < all.pad_count; i++)
        count += pad_target(all.jumps[i].pad) != all.jumps[i].target;
    return count;
}

static unsigned long since(uint64_t start)
{
    return (unsigned long)((plat_clock_ns() - start) / 1000);
}

static void pads_look(void)
{
    uint64_t start = plat_clock_ns();

    ktest_report(pads_make() == 0, "their %zu pads are made", all.pad_count);
    ktest_note("%zu pages, %zu frames: %lu us", pad_pages(), pad_frames(), since(start));
    ktest_report(pads_astray() == 0, "each leads where it should");
    start = plat_clock_ns();
    pad_free_all(all.pads, all.pad_count);
    ktest_note("given back: %lu us", since(start));
    ktest_report(pad_pages() == 0 && pad_frames() == 0, "nothing is left of them");
}

static bool all_make(void)
{
    memset(&all, 0, sizeof(all));
    all.puns = kmalloc(PUNS_MAX * sizeof(all.puns[0]));
    all.pads = kmalloc(PUNS_MAX * sizeof(all.pads[0]));
    all.jumps = kmalloc(PUNS_MAX * sizeof(all.jumps[0]));
    return all.puns && all.pads && all.jumps;
}

static void all_free(void)
{
    kfree(all.puns);
    kfree(all.pads);
    kfree(all.jumps);
}

KTEST(pun, every_instruction_of_the_kernel_can_be_a_jump)
{
    uint64_t start;
    size_t failed;

    if (!all_make()) {
        ktest_skip("no memory for that many plans");
        all_free();
        return;
    }
    walk_functions(NULL, function_take, NULL);
    plat_lock(PLAT_PROBES);
    start = plat_clock_ns();
    failed = all_plan();
    ktest_note("%zu plans: %lu us", all.count, since(start));
    ktest_report(failed * 10000 <= all.count, "%zu of %zu have a plan",
                 all.count - failed, all.count);
    pads_gather();
    pads_look();
    plat_unlock(PLAT_PROBES);
    all_free();
}
