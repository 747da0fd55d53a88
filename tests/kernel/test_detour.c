/* test_detour.c - what runs behind a jump is what would have run behind a breakpoint. The
 * jumps are written by hand, over instructions that are long enough.
 */
#include "kernel/cpu/percpu.h"
#include "probes/life.h"
#include "probes/text/insn_slot.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/ktest.h"

#include <string.h>

/* ---- the functions ---- */

struct detour_target {
    void (*fn)(void);
    uintptr_t addr; /* of the probed instruction */
    const char *name;
};

extern const struct detour_target detour_targets[], detour_targets_end[];
extern const char detour_callee[];

struct detour_run {
    uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
    uint64_t flags;
    void (*fn)(void);
};

void detour_run(struct detour_run *run);

static uint8_t memory[64];

#define CARRY 1u

static struct detour_run prepared(const struct detour_target *t, unsigned variant)
{
    struct detour_run run = { .fn = t->fn };
    uint64_t *word = (uint64_t *)&run;

    for (unsigned i = 0; i < 15; i++)
        word[i] = UINT64_C(0x0101010101010101) * (i + 1) + variant;
    run.cx = variant;
    run.si = (uintptr_t)memory;
    run.r14 = 0x1000;
    run.r15 = (uintptr_t)detour_callee;
    run.di = FLAGS_IF | FLAGS_FIXED | (variant & CARRY ? FLAGS_CF | FLAGS_OF : FLAGS_SF);
    run.flags = FLAGS_IF | FLAGS_FIXED;
    run.flags |= variant & CARRY ? FLAGS_CF | FLAGS_AF | FLAGS_ZF : FLAGS_OF | FLAGS_PF;
    if (variant & 2)
        run.flags |= FLAGS_SF;
    if (variant & 4)
        run.flags |= FLAGS_DF;
    return run;
}

#define VARIANTS 8

static struct detour_run run_variant(const struct detour_target *t, unsigned variant)
{
    struct detour_run run = prepared(t, variant);

    preempt_disable();
    detour_run(&run);
    preempt_enable();
    return run;
}

/* ---- handlers ---- */

static struct pt_regs seen, seen_after;
static unsigned pre_ran, post_ran;

static int note_pre(struct kprobe *p, struct pt_regs *regs)
{
    (void)p;
    seen = *regs;
    pre_ran++;
    return 0;
}

static void note_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
    (void)p;
    (void)flags;
    seen_after = *regs;
    post_ran++;
}

/* ---- tiers ---- */

struct observed {
    struct detour_run run;
    struct pt_regs before, after;
};

static void observe(struct observed *out, const struct detour_target *t, unsigned variant)
{
    memset(&seen, 0, sizeof(seen));
    memset(&seen_after, 0, sizeof(seen_after));
    out->run = run_variant(t, variant);
    out->before = seen;
    out->after = seen_after;
}

static bool runs_are_same(const struct detour_run *a, const struct detour_run *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* A trap's other words are its own. */
static bool images_are_same(const struct pt_regs *a, const struct pt_regs *b)
{
    return memcmp(a, b, offsetof(struct pt_regs, aux)) == 0 && a->ip == b->ip &&
           a->cs == b->cs && a->flags == b->flags && a->sp == b->sp && a->ss == b->ss &&
           a->orig_ax == b->orig_ax;
}

static unsigned compare(const struct detour_target *t, struct kprobe *p)
{
    static struct observed by_trap[VARIANTS], by_jump;
    struct detour_run alone[VARIANTS];
    unsigned same = 0;

    for (unsigned v = 0; v < VARIANTS; v++)
        alone[v] = run_variant(t, v);
    p->addr = t->addr;
    if (register_kprobe(p))
        return 0;
    for (unsigned v = 0; v < VARIANTS; v++)
        observe(&by_trap[v], t, v);
    if (!by_hand_jump(p)) {
        unregister_kprobe(p);
        return 0;
    }
    for (unsigned v = 0; v < VARIANTS; v++) {
        observe(&by_jump, t, v);
        same += runs_are_same(&by_jump.run, &alone[v]) &&
                images_are_same(&by_jump.before, &by_trap[v].before) &&
                images_are_same(&by_jump.after, &by_trap[v].after);
    }
    by_hand_int3(p);
    unregister_kprobe(p);
    return same;
}

static void compare_all(kprobe_pre_handler_t pre, kprobe_post_handler_t post)
{
    for (const struct detour_target *t = detour_targets; t < detour_targets_end; t++) {
        struct kprobe p = { .pre_handler = pre, .post_handler = post };
        struct probe_totals before, after;
        unsigned same, calls = 2 * VARIANTS;

        pre_ran = post_ran = 0;
        account_totals(&before);
        same = compare(t, &p);
        account_totals(&after);
        ktest_report(same == VARIANTS, "%s: %u of %u runs are the same", t->name, same,
                     VARIANTS);
        ktest_report(p.hits == calls && !p.nmissed &&
                         after.ran[WAY_JUMP] - before.ran[WAY_JUMP] == VARIANTS,
                     "%s: %lu hits, half of them by a jump", t->name,
                     (unsigned long)p.hits);
    }
}

KTEST(detour, handlers_and_program_cannot_tell_it_from_a_trap)
{
    compare_all(note_pre, NULL);
}

/* take_own - all cells for code of its own, so that nobody else has any; give them back. */
static size_t take_own(uint8_t **cells)
{
    size_t count = 0;

    plat_lock(PLAT_PROBES);
    while (count < INSN_SLOT_OWN_MAX) {
        cells[count] = insn_slot_reserve_own();
        if (!cells[count])
            break;
        count++;
    }
    plat_unlock(PLAT_PROBES);
    return count;
}

static void give_own(uint8_t **cells, size_t count)
{
    plat_lock(PLAT_PROBES);
    plat_lock(PLAT_TEXT);
    while (count)
        insn_slot_put(cells[--count]);
    plat_unlock(PLAT_TEXT);
    plat_unlock(PLAT_PROBES);
}

KTEST(detour, nor_where_the_code_is_shared_by_all)
{
    static uint8_t *cells[INSN_SLOT_OWN_MAX];
    size_t count = take_own(cells);

    compare_all(note_pre, NULL);
    give_own(cells, count);
}

KTEST(detour, post_handlers_see_what_they_see_behind_a_trap)
{
    compare_all(note_pre, note_post);
}

KTEST(detour, a_counter_counts_and_changes_nothing)
{
    compare_all(NULL, NULL);
}
