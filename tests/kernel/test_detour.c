/* test_detour.c - a hit by a jump calls the same handlers with the same image, and has
 * the same effect on the program, as a hit by a breakpoint. The test writes the jumps
 * itself (by_hand.h), over instructions that are long enough.
 */
#include "probes/core/insn_slot.h"
#include "probes/explain/totals.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/detour_targets.h"
#include "tests/kernel/ktest.h"

/* ---- the functions ---- */

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

static int note_pre(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    seen = *regs;
    pre_ran++;
    return 0;
}

static void note_post(struct kprobe *p UNUSED, struct pt_regs *regs,
                      unsigned long flags UNUSED)
{
    seen_after = *regs;
    post_ran++;
}

static unsigned long light_ran, light_flags;

static void note_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    unsigned long flags;

    __asm__ volatile("pushfq; popq %0" : "=r"(flags));
    light_flags |= flags;
    light_ran++;
}

static const struct kprobe with_light = { .light_handler = note_light };

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

/* images_are_same - are the words of @a and @b the same that a handler may use? The other
 * words of an image differ between a trap and a jump.
 */
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
    by_hand_begin();
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

static void compare_all(const struct kprobe *like)
{
    for (const struct detour_target *t = detour_targets; t < detour_targets_end; t++) {
        struct kprobe p = *like;
        struct probe_totals before, after;
        unsigned same, calls = 2 * VARIANTS;

        pre_ran = post_ran = 0;
        light_ran = light_flags = 0;
        account_totals(&before);
        same = compare(t, &p);
        account_totals(&after);
        ktest_report(same == VARIANTS, "%s: %u of %u runs are the same", t->name, same,
                     VARIANTS);
        ktest_report(p.hits == calls && !p.nmissed &&
                         after.ran[WAY_JUMP] - before.ran[WAY_JUMP] == VARIANTS,
                     "%s: %lu hits, half of them by a jump", t->name, p.hits);
        ktest_report(
            !like->light_handler || (light_ran == calls && !(light_flags & FLAGS_DF)),
            "%s: %lu times its light handler, with DF clear", t->name, light_ran);
    }
}

static const struct kprobe with_pre = { .pre_handler = note_pre };

KTEST(detour, handlers_and_program_cannot_tell_it_from_a_trap)
{
    compare_all(&with_pre);
}

/* own_code - let new detours be specialized from now on, or let none be. */
static void own_code(bool may)
{
    plat_lock(PLAT_PROBES);
    insn_slot_detour_limit(may ? INSN_SLOT_PAGES_MAX : 0);
    plat_unlock(PLAT_PROBES);
}

KTEST(detour, nor_where_the_code_is_shared_by_all)
{
    own_code(false);
    compare_all(&with_pre);
    compare_all(&with_light);
    own_code(true);
}

KTEST(detour, post_handlers_see_what_they_see_behind_a_trap)
{
    static const struct kprobe with_post = { .pre_handler = note_pre,
                                             .post_handler = note_post };

    compare_all(&with_post);
}
