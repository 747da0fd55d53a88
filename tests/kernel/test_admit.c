/* test_admit.c - the engine decides in several places whether a hit may run its handlers:
 * in C for a trap, in assembly or generated code for jumps and returns. All of them
 * decide the same, and enter and leave the hit in the same way, in every combination of
 * the conditions that the decision depends on.
 *
 * The conditions are faked: with interrupts off, the test writes into the data of the
 * CPU that other hits, an interrupt or an NMI are under way. After the hit this data
 * must be unchanged.
 */
#include "probes/core/insn_slot.h"
#include "probes/jump/jump_site.h"
#include "probes/returns/shadow.h"
#include "tests/kernel/by_hand.h"
#include "tests/kernel/detour_targets.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/return_targets.h"

/* ---- what the answer depends on ---- */

/* The hits that are under way. */
enum active {
    NONE,
    OTHER,      /* one hit, at another site */
    SELF,       /* one hit, at this site */
    FULL,       /* as many as can be nested, all at another site */
    LIGHT,      /* a light handler of another site, called by a detour */
    LIGHT_SELF, /* a light handler of this site, called by a detour */
    ACTIVES,
};

struct conditions {
    enum active active;
    bool nmi, irq;
    bool short_of_stack;
    bool off;    /* the probe was switched off, but its jump is in the text */
    bool engine; /* the site is in the engine's own code */
    bool df;     /* the program has DF set */
};

#define COMBINATIONS (ACTIVES * 64u)

static struct conditions combination(unsigned n)
{
    unsigned bits = n / ACTIVES;

    return (struct conditions){ .active = (enum active)(n % ACTIVES),
                                .nmi = bits & 1,
                                .irq = bits & 2,
                                .short_of_stack = bits & 4,
                                .off = bits & 8,
                                .engine = bits & 16,
                                .df = bits & 32 };
}

static struct kprobe other; /* at the other site */
static struct plat_light light_active;
static struct kretprobe_holder *holder; /* of the site; give_up() takes it from there */

/* The data of the CPU that is faked, and what it was before. */
static struct faked {
    struct probe_hit hits[PROBE_NEST_MAX];
    const struct plat_light *light;
    struct plat_depths depths;
    unsigned depth;
    uintptr_t stack_base, nmi_stack_base;
    size_t stack_len; /* len of the shadow: how long the stack is for return probes */
} faked, before;

static struct shadow *shadow(void)
{
    return this_cpu()->thread_probe;
}

static void save(struct faked *f)
{
    const struct probe_cpu *cpu = plat_this_cpu();

    memcpy(f->hits, cpu->hits, sizeof(f->hits));
    f->light = cpu->light;
    f->depth = cpu->depth;
    f->depths = *plat_depths(cpu);
    f->stack_base = this_cpu()->stack_base;
    f->nmi_stack_base = cpu->plat.nmi_stack_base;
    f->stack_len = shadow() ? shadow()->len : 0;
}

static void set_stack_base(uintptr_t base, uintptr_t nmi_base)
{
    this_cpu()->stack_base = base;
    plat_this_cpu()->plat.nmi_stack_base = nmi_base;
}

static void set_active(struct probe_cpu *cpu, enum active active, struct kprobe *p)
{
    struct kprobe *running = active == SELF || active == LIGHT_SELF ? p : &other;
    bool light = active == LIGHT || active == LIGHT_SELF;

    cpu->depth = active == NONE ? 0 : active == FULL ? PROBE_NEST_MAX : 1;
    light_active.probe = running;
    cpu->light = light ? &light_active : NULL;
    for (unsigned i = 0; i < cpu->depth && !light; i++)
        cpu->hits[i] =
            (struct probe_hit){ .site = running->site, .found = *plat_depths(cpu) };
}

/* give_up - switch @p off without changing the text, as the engine does after a handler
 * has faulted.
 */
static void give_up(struct kprobe *p)
{
    p->flags |= KPROBE_FLAG_DISABLED;
    jump_site(p->site)->holder = NULL; /* ext_given_up() does the same */
}

/* fake - write the conditions @c into the data of the CPU and of the site of @p.
 * Interrupts are off.
 */
static void fake(const struct conditions *c, struct kprobe *p)
{
    struct probe_cpu *cpu = plat_this_cpu();
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    uintptr_t near = sp - PROBE_STACK_MIN / 4, far = this_cpu()->stack_base;
    uintptr_t base = c->short_of_stack ? near : far;

    save(&before);
    holder = jump_site(p->site)->holder;
    set_active(cpu, c->active, p);
    plat_depths(cpu)->irq = c->irq;
    plat_depths(cpu)->nmi = c->nmi;
    set_stack_base(c->nmi ? far : base,
                   c->nmi ? base : near); /* the second base must not be used */
    if (shadow() && c->short_of_stack)
        shadow()->len = shadow()->top - base;
    p->site->in_engine = c->engine;
    if (c->off)
        give_up(p);
    save(&faked);
}

/* unfake - restore the data of the CPU. Return: was it, until now, as fake() has left it?
 */
static bool unfake(struct kprobe *p)
{
    struct probe_cpu *cpu = plat_this_cpu();
    struct faked now;
    bool same, is_free = true;

    memset(&now, 0, sizeof(now));

    save(&now);
    for (unsigned i = now.depth; i < PROBE_NEST_MAX; i++) {
        is_free = is_free && !now.hits[i].site && !now.hits[i].running;
        now.hits[i] = faked.hits[i];
    }
    same = is_free && !memcmp(&now, &faked, sizeof(now));
    cpu->depth = 0;
    cpu->light = NULL;
    memset(cpu->hits, 0, sizeof(cpu->hits));
    *plat_depths(cpu) = before.depths;
    set_stack_base(before.stack_base, before.nmi_stack_base);
    if (shadow())
        shadow()->len = before.stack_len;
    p->site->in_engine = false;
    p->flags &= ~KPROBE_FLAG_DISABLED;
    jump_site(p->site)->holder = holder;
    return same;
}

/* ---- what a hit does ---- */

struct outcome {
    uint64_t ran, ran_after; /* calls of pre- or light handlers; of post-handlers */
    uint64_t returned, returns_missed;
    uint64_t hits, nmissed, missed[MISS_CAUSES], cpu_missed[MISS_CAUSES];
    /* what the last handler has found */
    unsigned depth;
    struct site *site;
    uint8_t stage;
    struct plat_depths found;
    bool df, irqs, may_be_moved;
    bool is_blamed; /* if the handler faulted, the engine would give up this probe */
    bool left_as_found;
};

static struct outcome out;

static void look(const struct kprobe *p)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    const struct probe_hit *hit = &cpu->hits[cpu->depth - 1];
    unsigned long flags;

    __asm__ volatile("pushfq; popq %0" : "=r"(flags));
    out.df = flags & FLAGS_DF;
    out.irqs = flags & FLAGS_IF;
    out.depth = cpu->depth;
    out.site = hit_site(hit);
    out.stage = hit->is.stage;
    out.found = hit->found;
    if (!out.site && light_frame(cpu)) {
        out.site = light_frame(cpu)->probe->site;
        out.stage = HIT_PRE;
        out.found = *plat_depths(cpu);
    }
    out.is_blamed = fault_in_handler(cpu) == p;
    out.may_be_moved = !preempt_is_off();
}

static struct kprobe_room look_room(struct kprobe *p, uintptr_t ip UNUSED,
                                    const struct pt_regs *regs UNUSED)
{
    out.ran++;
    look(p);
    return (struct kprobe_room){ 0 };
}

static void no_end(void *unused UNUSED)
{
}

static const struct kprobe_op look_ops[] = { KPROBE_RESERVE(look_room, 1),
                                             KPROBE_COMMIT(no_end) };

static int look_pre(struct kprobe *p, struct pt_regs *regs UNUSED)
{
    out.ran++;
    look(p);
    return 0;
}

static void look_light(struct kprobe *p, uintptr_t ip UNUSED)
{
    out.ran++;
    look(p);
}

static void look_post(struct kprobe *p, struct pt_regs *regs UNUSED,
                      unsigned long flags UNUSED)
{
    out.ran_after++;
    look(p);
}

static void count_before(const struct kprobe *p)
{
    out = (struct outcome){ .hits = kprobe_hits(p), .nmissed = p->nmissed };
    memcpy(out.missed, p->missed, sizeof(out.missed));
    memcpy(out.cpu_missed, plat_this_cpu()->missed, sizeof(out.cpu_missed));
}

static void count_after(const struct kprobe *p)
{
    out.hits = kprobe_hits(p) - out.hits;
    out.nmissed = p->nmissed - out.nmissed;
    for (unsigned i = 0; i < MISS_CAUSES; i++) {
        out.missed[i] = p->missed[i] - out.missed[i];
        out.cpu_missed[i] = plat_this_cpu()->missed[i] - out.cpu_missed[i];
    }
}

/* ---- one hit ---- */

static uint8_t memory[64];

static struct detour_run prepared(const struct detour_target *t, bool df)
{
    return (struct detour_run){ .fn = t->fn,
                                .si = (uintptr_t)memory,
                                .r14 = 0x1000,
                                .r15 = (uintptr_t)detour_callee,
                                .di = FLAGS_FIXED | FLAGS_SF,
                                .cx = 3,
                                .flags = FLAGS_FIXED | FLAGS_PF | (df ? FLAGS_DF : 0) };
}

/* hit_once - call @t once under the conditions @c, and store to out what the hit did.
 * @run: receives the registers and flags of the program after the call
 */
static void hit_once(const struct detour_target *t, struct kprobe *p,
                     const struct conditions *c, struct detour_run *run)
{
    unsigned long irqs;
    bool same;

    *run = prepared(t, c->df);
    irqs = irq_save();
    preempt_disable();
    count_before(p);
    fake(c, p);
    detour_run(run);
    same = unfake(p);
    count_after(p);
    out.left_as_found = same;
    preempt_enable();
    irq_restore(irqs);
}

/* ---- the ways ---- */

/* A way in which a hit comes by a jump, and a probe whose detour takes this way. */
struct way {
    const char *name;
    const char *target;
    struct kprobe like;
    bool shared; /* the site gets no code of its own */
    bool second; /* there is another probe at the site */
    bool record; /* a program makes a record */
};

#define ADD .target = "detour_add" /* the detour may change the status flags */
#define ADC .target = "detour_adc" /* the detour must keep the status flags */
#define CALL .target = "detour_call_rel"
#define PRE .like.pre_handler = look_pre
#define LIGHTLY .like.light_handler = look_light

static const struct way ways[] = {
    { .name = "code of its own", ADD, PRE },
    { .name = "code of its own, flags live", ADC, PRE },
    { .name = "shared code", ADD, PRE, .shared = true },
    { .name = "shared code, flags live", ADC, PRE, .shared = true },
    { .name = "a record", ADC, .record = true },
    { .name = "a record at a call", CALL, .record = true },
    { .name = "two probes", ADC, PRE, .second = true },
    { .name = "interrupts off", ADC, PRE, .like.flags = KPROBE_FLAG_IRQS_OFF },
    { .name = "a call", CALL, PRE },
    { .name = "a post-handler", ADC, PRE, .like.post_handler = look_post },
    { .name = "the image", .target = "detour_popf", PRE },
    { .name = "a light handler", ADD, LIGHTLY },
    { .name = "a light handler, flags live", ADC, LIGHTLY },
    { .name = "a light handler of a call", CALL, LIGHTLY },
    { .name = "a light handler, shared code", ADC, LIGHTLY, .shared = true },
};

static const struct detour_target *target_named(const char *name)
{
    const struct detour_target *t = detour_targets;

    while (t < detour_targets_end && strcmp(t->name, name) != 0)
        t++;
    return t;
}

static struct expected {
    struct outcome out;
    struct detour_run run;
} * expected; /* [COMBINATIONS], in each test: too large for the image */

static bool is_as_expected(const struct expected *e, const struct detour_run *run)
{
    return !memcmp(&e->out, &out, sizeof(out)) && !memcmp(&e->run, run, sizeof(*run));
}

/* describe - print a case in which a hit did something else than a hit by a trap. */
static void describe(const struct conditions *c, const struct expected *e)
{
    static const char *const names[ACTIVES] = { "nothing",   "another hit",
                                                "this site", "all hits",
                                                "light",     "light, this site" };

    ktest_note(
        "%s active%s%s%s%s%s%s: ran %lu, %lu by the trap; missed %lu, %lu; left %d, %d",
        names[c->active], c->nmi ? ", NMI" : "", c->irq ? ", interrupt" : "",
        c->short_of_stack ? ", no stack" : "", c->off ? ", off" : "",
        c->engine ? ", engine" : "", c->df ? ", DF" : "", (unsigned long)out.ran,
        (unsigned long)e->out.ran, (unsigned long)out.nmissed,
        (unsigned long)e->out.nmissed, out.left_as_found, e->out.left_as_found);
}

static unsigned compare_all(const struct detour_target *t, struct kprobe *p)
{
    unsigned same = 0;

    for (unsigned n = 0; n < COMBINATIONS; n++) {
        struct conditions c = combination(n);
        struct detour_run run;
        bool right;

        hit_once(t, p, &c, &run);
        right = is_as_expected(&expected[n], &run);
        same += right;
        if (!right && n - same < 3)
            describe(&c, &expected[n]);
    }
    return same;
}

static void by_trap(const struct detour_target *t, struct kprobe *p)
{
    for (unsigned n = 0; n < COMBINATIONS; n++) {
        struct conditions c = combination(n);

        hit_once(t, p, &c, &expected[n].run);
        expected[n].out = out;
    }
}

/* own_code - let new detours be specialized from now on, or let none be. */
static void own_code(bool may)
{
    plat_lock(PLAT_PROBES);
    insn_slot_detour_limit(may ? INSN_SLOT_PAGES_MAX : 0);
    plat_unlock(PLAT_PROBES);
}

static void compare_way(const struct way *way)
{
    const struct detour_target *t = target_named(way->target);
    struct kprobe_program record = { .ops = look_ops, .count = ARRAY_LEN(look_ops) };
    struct kprobe p = way->like, second = { .pre_handler = look_pre };
    bool wants_own =
        !way->shared && !way->second && !p.flags && !p.post_handler &&
        (p.light_handler || way->record || !strncmp(way->target, "detour_ad", 9));
    unsigned same = 0, ran = 0;
    bool has_own = false;

    by_hand_begin();
    p.addr = second.addr = t->addr;
    if (way->record)
        p.program = &record;
    if (register_kprobe(&p) || (way->second && register_kprobe(&second))) {
        ktest_report(false, "%s: it is registered", way->name);
        return;
    }
    own_code(!way->shared);
    by_trap(t, &p);
    for (unsigned n = 0; n < COMBINATIONS; n++)
        ran += expected[n].out.ran > 0 && expected[n].out.left_as_found;
    if (by_hand_jump(&p)) {
        has_own = jump_site(p.site)->specialized;
        same = compare_all(t, &p);
        by_hand_int3(&p);
    }
    own_code(true);
    if (way->second)
        unregister_kprobe(&second);
    unregister_kprobe(&p);
    ktest_report(has_own == wants_own, "%s: the code is %s", way->name,
                 wants_own ? "its own" : "shared");
    ktest_report(ran && ran < COMBINATIONS, "%s: handlers run in %u of %u cases",
                 way->name, ran, COMBINATIONS);
    ktest_report(same == COMBINATIONS, "%s: %u of %u as by a trap", way->name, same,
                 COMBINATIONS);
}

KTEST(admit, a_hit_by_a_jump_is_admitted_entered_and_left_as_one_by_a_trap)
{
    other = (struct kprobe){ .addr = target_named("detour_lea")->addr,
                             .pre_handler = look_pre };
    expected = kzalloc(COMBINATIONS * sizeof(*expected));
    ktest_report(register_kprobe(&other) == 0, "there is another site");
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        compare_way(&ways[i]);
    unregister_kprobe(&other);
    kfree(expected);
}

/* ---- returns ---- */

/* The ways in which a call and its return are followed. The first is C code throughout,
 * since its entry is a trap and each instance has data. The others must do what it does.
 */
static const struct return_way {
    const char *name;
    bool by_trap, with_data, with_entry;
} return_ways[] = {
    { "all C", .by_trap = true, .with_data = true },
    { "the trampoline", .by_trap = true },
    { "the detour without an image", .by_trap = false },
    { "the detour with an image", .with_entry = true },
};

static int look_return(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    out.returned++;
    look(&ri->rp->kp);
    return 0;
}

static int enter(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static void call_once(struct kretprobe *rp, const struct conditions *c)
{
    unsigned long irqs = irq_save();
    uint64_t missed = rp->nmissed;
    bool same, right;

    preempt_disable();
    count_before(&rp->kp);
    fake(c, &rp->kp);
    right = return_target(3, 4) == 13;
    same = unfake(&rp->kp);
    count_after(&rp->kp);
    out.returns_missed = rp->nmissed - missed;
    out.left_as_found = same && right;
    preempt_enable();
    irq_restore(irqs);
}

static unsigned compare_calls(struct kretprobe *rp, bool is_first)
{
    unsigned same = 0;

    for (unsigned n = 0; n < COMBINATIONS / 2;
         n++) { /* none with DF set: C functions are called with DF clear */
        struct conditions c = combination(n);
        bool right;

        call_once(rp, &c);
        if (is_first)
            expected[n].out = out;
        right = !memcmp(&expected[n].out, &out, sizeof(out));
        same += right;
        if (!right && n - same < 3)
            describe(&c, &expected[n]);
    }
    return same;
}

static void compare_return_way(const struct return_way *way)
{
    struct kretprobe rp = { .handler = look_return,
                            .entry_handler = way->with_entry ? enter : NULL,
                            .data_size = way->with_data ? 8 : 0 };
    unsigned same = 0;
    bool is_ready;

    by_hand_begin();
    is_ready = !return_probe(&rp, (void *)return_target);
    if (is_ready && !way->by_trap)
        is_ready = by_hand_jump(&rp.kp);
    ktest_report(is_ready, "%s: the probe is there", way->name);
    return_target(1, 1); /* the first call makes the shadow */
    if (is_ready)
        same = compare_calls(&rp, way == return_ways);
    if (is_ready && !way->by_trap)
        by_hand_int3(&rp.kp);
    unregister_kretprobe(&rp);
    ktest_report(same == COMBINATIONS / 2, "%s: %u of %u as in C", way->name, same,
                 COMBINATIONS / 2);
}

KTEST(admit, a_call_and_its_return_are_followed_as_in_c)
{
    unsigned ran = 0;

    other = (struct kprobe){ .addr = target_named("detour_lea")->addr,
                             .pre_handler = look_pre };
    expected = kzalloc(COMBINATIONS * sizeof(*expected));
    ktest_report(register_kprobe(&other) == 0, "there is another site");
    for (size_t i = 0; i < ARRAY_LEN(return_ways); i++)
        compare_return_way(&return_ways[i]);
    for (unsigned n = 0; n < COMBINATIONS / 2; n++)
        ran += expected[n].out.returned > 0;
    ktest_report(ran && ran < COMBINATIONS / 2, "the handler runs in %u cases", ran);
    unregister_kprobe(&other);
    kfree(expected);
}
