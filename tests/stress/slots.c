/* slots.c - the probes of a round. They are of every kind, and several are at one
 * address. The first STAYING probes stay from the beginning of the round to its end, the
 * other probes come and go meanwhile.
 *
 * A probe that stays must have seen each execution if it is never given up, because its
 * handlers do only what they may do, or have a fault handler that deals with their
 * faults. Of every other probe less is known: each hit was a call of its handler, and
 * there were not more hits and misses than executions.
 */
#include "probes/console/place.h"
#include "probes/film/film.h"
#include "probes/jump/optimize.h"
#include "probes/returns/shadow.h"
#include "probes/text/text_engine.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/loaded.h"
#include "tests/stress/stress.h"

#include <stdio.h>

enum kind {
    COUNT,
    PRE,
    LIGHT,       /* it calls functions, so its detour keeps all registers */
    LIGHT_PLAIN, /* it calls no function */
    POST,
    BOTH,
    JPROBE,
    RETURN, /* this kind and those below are struct kretprobe */
    RETURN_ENTRY,
    RETURN_DATA,
    RETURN_MAX,
    KINDS,
};

static const char *const kind_names[KINDS] = {
    "count",  "pre",    "light",        "light_plain", "post",       "both",
    "jprobe", "return", "return_entry", "return_data", "return_max",
};

/* What the fault handler does. */
enum aid { NO_AID, REFUSE, DEAL, FAULT };

struct slot {
    union {
        struct kretprobe rp; /* all kinds use its .kp */
        struct jprobe jp;
    };
    enum kind kind;
    enum aid aid;
    const struct stress_insn *insn;
    char name[8]; /* as it is printed: "p7" */
    uint32_t classes;
    unsigned one_in; /* one of this number of calls of a handler misbehaves */
    bool is_in, stays, trips;
    uint64_t seed;
    uint64_t entered, after, returned, declined, wrong; /* calls of handlers */
};

_Static_assert(offsetof(struct slot, rp.kp) == 0 && offsetof(struct slot, jp.kp) == 0,
               "a probe is where its slot is");

#define STAYING 12
#define SLOTS 26
#define PLACES 6
#define ENTRIES 3 /* so many of the places are entries of functions */
#define DATA_LEN 24

static struct slot slots[SLOTS];
static const struct stress_insn *places[PLACES];
static struct kprobe fillers[STRESS_IDLE_COUNT];
static bool filled;
static uint32_t allowed;
static struct stress_sums sums;

/* is_steady - does the probe stay registered and enabled from the beginning of the round
 * to its end?
 */
static bool is_steady(const struct slot *s)
{
    return s->stays && !s->trips;
}

static bool is_return(const struct slot *s)
{
    return s->kind >= RETURN;
}

static bool has_pre(const struct slot *s)
{
    return s->kind == PRE || s->kind == BOTH;
}

static bool has_post(const struct slot *s)
{
    return s->kind == POST || s->kind == BOTH;
}

/* has_entry - is s->entered counted by a handler that each hit calls? */
static bool has_entry(const struct slot *s)
{
    return has_pre(s) || s->kind == LIGHT || s->kind == LIGHT_PLAIN || s->kind == JPROBE;
}

/* ---- handlers ---- */

static void act(const struct slot *s, uint64_t n, uint64_t stage)
{
    uint64_t chance = stress_mix(s->seed + n * 8 + stage);

    if (chance % s->one_in == 0)
        stress_misbehave(s->classes, chance);
}

static uint64_t enter(struct slot *s)
{
    return __atomic_add_fetch(&s->entered, 1, __ATOMIC_RELAXED);
}

/* change_image - change a flag of the program, and set the same bit in its rdx: the
 * target checks that it sees both. Or let the program step itself over one instruction.
 */
static void change_image(const struct slot *s, uint64_t n, struct pt_regs *regs)
{
    static const uint64_t flags[] = { FLAGS_DF, FLAGS_AC, FLAGS_IF };
    uint64_t flag = flags[n % ARRAY_LEN(flags)];

    if (!(s->classes & BIT(STRESS_IMAGE)) || (n % 4 == 0 && stress_step(regs)))
        return;
    if (flag == FLAGS_IF && cpu_context() != CTX_THREAD)
        return;
    regs->flags ^= flag;
    regs->dx ^= flag;
}

static bool redirects(const struct slot *s, uint64_t n)
{
    return s->classes & BIT(STRESS_REDIRECT) && n % 4 == 0;
}

static int pre(struct kprobe *p, struct pt_regs *regs)
{
    struct slot *s = (struct slot *)p;
    uint64_t n = enter(s);

    if (regs->ip != p->addr + 1)
        stress_count(&s->wrong);
    act(s, n, 0);
    if (s->insn->is_image)
        change_image(s, n, regs);
    if (!s->insn->is_redirect || !redirects(s, n))
        return 0;
    stress_count(&s->declined);
    regs->ip = (uintptr_t)stress_elsewhere;
    return 1;
}

static void light(struct kprobe *p, uintptr_t ip)
{
    struct slot *s = (struct slot *)p;
    uint64_t n = enter(s);

    if (ip != p->addr)
        stress_count(&s->wrong);
    act(s, n, 0);
}

static volatile char *volatile nowhere = (volatile char *)0x10;

static void light_plain(struct kprobe *p, uintptr_t ip)
{
    struct slot *s = (struct slot *)p;
    uint64_t n = enter(s);

    if (ip != p->addr)
        stress_count(&s->wrong);
    if (!s->trips || n % s->one_in)
        return;
    stress_count(&stress_faults.begun);
    (void)*nowhere;
}

static void post(struct kprobe *p, struct pt_regs *regs UNUSED, unsigned long fl UNUSED)
{
    struct slot *s = (struct slot *)p;

    act(s, __atomic_add_fetch(&s->after, 1, __ATOMIC_RELAXED), 1);
}

/* A jprobe handler does not get its probe, so this one takes it from hits[]. */
static void jprobe_handler(uint64_t x, uint64_t arg UNUSED)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    struct slot *s = (struct slot *)cpu->hits[cpu->depth - 1].running;

    if (x > STRESS_INPUTS)
        stress_count(&s->wrong);
    act(s, enter(s), 0);
    jprobe_return();
}

static void data_fill(struct kretprobe_instance *ri)
{
    memset(ri->data, (int)(ri->ret_addr & 0xff), DATA_LEN);
}

static bool data_is_right(const struct kretprobe_instance *ri)
{
    for (size_t i = 0; i < DATA_LEN; i++)
        if (ri->data[i] != (ri->ret_addr & 0xff))
            return false;
    return true;
}

static int entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    struct slot *s = (struct slot *)ri->rp;
    uint64_t n = enter(s);

    if (regs->ip != ri->rp->kp.addr + 1)
        stress_count(&s->wrong);
    if (s->kind == RETURN_DATA)
        data_fill(ri);
    act(s, n, 0);
    if (n % 8)
        return 0;
    stress_count(&s->declined);
    return 1;
}

static int returned(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    struct slot *s = (struct slot *)ri->rp;
    uint64_t n = __atomic_add_fetch(&s->returned, 1, __ATOMIC_RELAXED);

    if (regs->ip != ri->ret_addr)
        stress_count(&s->wrong);
    if (s->kind == RETURN_DATA && !data_is_right(ri))
        stress_count(&s->wrong);
    act(s, n, 2);
    return 0;
}

/* is_of_insn - has the probed instruction faulted, and not a handler? */
static bool is_of_insn(void)
{
    const struct probe_cpu *cpu = plat_this_cpu();

    return cpu->hits[cpu->depth - 1].is.stage == HIT_FAULT;
}

static int on_fault(struct kprobe *p, struct pt_regs *regs, int trapnr UNUSED)
{
    const struct slot *s = (const struct slot *)p;

    if (s->aid == FAULT) {
        if (is_of_insn())
            stress_count(&stress_faults.begun);
        stress_fault(regs->ip / 2 % STRESS_FAULT_KINDS, 0);
    }
    if (s->aid != DEAL || regs->ip < (uintptr_t)stress_fault ||
        regs->ip >= (uintptr_t)stress_fault_done)
        return 0;
    regs->ip = (uintptr_t)stress_fault_done;
    return 1;
}

/* ---- making probes ---- */

static void places_choose(uint64_t *state)
{
    for (size_t i = 0; i < PLACES; i++)
        places[i] = i < ENTRIES ? stress_entry(stress_next(state) % stress_entry_count)
                                : &stress_insns[stress_next(state) % stress_insn_count];
}

/* give_temper - choose what the handlers of @s do, and so whether they may be given up.
 */
static void give_temper(struct slot *s, uint64_t *state)
{
    uint32_t calm = allowed & ~STRESS_FAULTS, dealt = allowed & STRESS_DEALABLE;
    uint64_t temper = stress_next(state) % 3;

    s->one_in = 2u << stress_next(state) % 7;
    s->aid = (enum aid)(stress_next(state) % 3); /* not FAULT */
    s->classes = calm & (uint32_t)stress_next(state);
    if (s->aid == DEAL && s->kind != LIGHT_PLAIN)
        s->classes |= dealt & (uint32_t)stress_next(state);
    if (temper == 0 || !(allowed & STRESS_FAULTS))
        return;
    if (temper == 1 && s->kind != COUNT) {
        s->trips = true;
        s->aid = stress_next(state) % 2 ? FAULT : s->aid;
        s->classes |= allowed & STRESS_FAULTS & (uint32_t)stress_next(state);
    }
}

static void slot_fill(struct slot *s)
{
    struct kprobe *p = &s->rp.kp;

    p->addr = s->insn->addr;
    p->fault_handler = s->aid == NO_AID ? NULL : on_fault;
    p->pre_handler = has_pre(s) ? pre : NULL;
    p->post_handler = has_post(s) ? post : NULL;
    p->light_handler = s->kind == LIGHT         ? light
                       : s->kind == LIGHT_PLAIN ? light_plain
                                                : NULL;
    if (s->kind == JPROBE)
        s->jp.entry = (void *)jprobe_handler;
    if (!is_return(s))
        return;
    s->rp.handler = returned;
    s->rp.entry_handler = s->kind == RETURN ? NULL : entry;
    s->rp.data_size = s->kind == RETURN_DATA ? DATA_LEN : 0;
    s->rp.maxactive = s->kind == RETURN_MAX ? 2 : 0;
}

static void slot_make(struct slot *s, uint64_t *state)
{
    bool stays = s < &slots[STAYING], needs_entry;

    *s = (struct slot){ .kind = (enum kind)(stress_next(state) % KINDS) };
    s->stays = stays;
    snprintf(s->name, sizeof(s->name), "p%u", (unsigned)(s - slots));
    s->seed = stress_next(state);
    needs_entry = s->kind >= JPROBE;
    s->insn = places[stress_next(state) % (needs_entry ? ENTRIES : PLACES)];
    give_temper(s, state);
    s->classes &= ~(uint32_t)BIT(STRESS_REDIRECT);
    if (stress_next(state) % 4 == 0)
        s->rp.kp.flags = KPROBE_FLAG_IRQS_OFF;
    slot_fill(s);
}

/* make_calm - make @s a probe at @insn with a pre-handler that may do all that never
 * makes the engine give it up.
 */
static void make_calm(struct slot *s, const struct stress_insn *insn)
{
    *s = (struct slot){ .kind = PRE, .stays = true, .one_in = 16, .seed = s->seed };
    snprintf(s->name, sizeof(s->name), "p%u", (unsigned)(s - slots));
    s->insn = insn;
    s->classes = allowed & ~STRESS_FAULTS;
    slot_fill(s);
}

/* make_changing - make two probes that change what the program does. When @redirecting
 * sends the program elsewhere, the probes behind it at its address are not hit. So it is
 * the last one of the probes that stay.
 */
static void make_changing(struct slot *image, struct slot *redirecting)
{
    for (size_t i = 0; i < stress_insn_count; i++)
        if (stress_insns[i].is_image)
            make_calm(image, &stress_insns[i]);
        else if (stress_insns[i].is_redirect)
            make_calm(redirecting, &stress_insns[i]);
}

static bool slot_in(struct slot *s)
{
    struct probe_reject why = { .reason = PROBE_OK };

    if (is_return(s))
        s->is_in = !register_kretprobe_why(&s->rp, &why);
    else if (s->kind == JPROBE)
        s->is_in = !register_jprobe_why(&s->jp, &why);
    else
        s->is_in = !register_kprobe_why(&s->rp.kp, &why);
    if (!s->is_in && why.reason != PROBE_HAS_JPROBE)
        stress_differs(why.why, s->name, why.at, 0);
    return s->is_in;
}

/* set_in - register the first @count slots: all kprobes as one set, all return probes as
 * one set, and each jprobe alone.
 */
static void set_in(size_t count)
{
    struct kprobe *ps[SLOTS];
    struct kretprobe *rps[SLOTS];
    size_t n = 0, rn = 0;
    bool kprobes_in, kretprobes_in;

    for (size_t i = 0; i < count; i++)
        if (is_return(&slots[i]))
            rps[rn++] = &slots[i].rp;
        else if (slots[i].kind != JPROBE)
            ps[n++] = &slots[i].rp.kp;
    kprobes_in = !register_kprobes(ps, n);
    kretprobes_in = !register_kretprobes(rps, rn);
    if (!kprobes_in || !kretprobes_in)
        stress_differs("refused, a set", "", kprobes_in, kretprobes_in);
    for (size_t i = 0; i < count; i++)
        if (slots[i].kind != JPROBE)
            slots[i].is_in = is_return(&slots[i]) ? kretprobes_in : kprobes_in;
        else
            slot_in(&slots[i]);
}

static void fill_up(void)
{
    for (size_t i = 0; i < STRESS_IDLE_COUNT; i++) {
        fillers[i] =
            (struct kprobe){ .addr = (uintptr_t)stress_idle + i * STRESS_IDLE_LEN,
                             .pre_handler = pre };
        if (register_kprobe(&fillers[i]))
            stress_differs("refused, a filler", "", i, 0);
    }
    filled = true;
}

void stress_slots_make(uint64_t *state, uint32_t classes)
{
    sums = (struct stress_sums){ 0 };
    memset(slots, 0, sizeof(slots));
    allowed = classes;
    places_choose(state);
    if (stress_next(state) % 2)
        fill_up();
    for (size_t i = 0; i < STAYING; i++)
        slot_make(&slots[i], state);
    make_changing(&slots[STAYING - 2], &slots[STAYING - 1]);
    if (stress_next(state) % 2)
        set_in(STAYING - 1);
    else
        for (size_t i = 0; i < STAYING - 1; i++)
            slot_in(&slots[i]);
    slot_in(&slots[STAYING - 1]);
    optimize_run();
}

/* ---- unregistering ---- */

static void note_jumps(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        sums.probes += slots[i].is_in;
        sums.jumps += slots[i].is_in && slots[i].rp.kp.flags & KPROBE_FLAG_OPTIMIZED;
    }
}

static void judge(const struct slot *s);

/* out - unregister those of @count slots that are registered, and add up
 * what they have seen.
 */
static void out(struct slot *const *all, size_t count)
{
    struct kretprobe *rps[SLOTS];
    struct kprobe *ps[SLOTS];
    size_t rn = 0, n = 0;

    for (size_t i = 0; i < count; i++) {
        if (all[i]->is_in && is_return(all[i]))
            rps[rn++] = &all[i]->rp;
        else if (all[i]->is_in)
            ps[n++] = &all[i]->rp.kp;
    }
    if (unregister_kprobes(ps, n) || unregister_kretprobes(rps, rn))
        stress_differs("probes do not go", "", n, rn);
    for (size_t i = 0; i < count; i++) {
        if (all[i]->is_in && !all[i]->stays)
            judge(all[i]);
        if (all[i]->is_in) {
            sums.hits += all[i]->rp.kp.hits;
            sums.missed += all[i]->rp.kp.nmissed;
            sums.returns += all[i]->returned;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (!all[i]->stays)
            all[i]->is_in = false;
}

void stress_slots_out(void)
{
    struct slot *all[SLOTS];

    note_jumps();
    for (size_t i = 0; i < SLOTS; i++) {
        const struct slot *s = all[i] = &slots[i];

        if (s->is_in && is_return(s) && s->rp.holder->active)
            stress_differs("instances that are left of", s->name,
                           (uint64_t)s->rp.holder->active, 0);
    }
    out(all, SLOTS);
    for (size_t i = 0; filled && i < STRESS_IDLE_COUNT; i++)
        unregister_kprobe(&fillers[i]);
    filled = false;
}

/* ---- changes during a round ---- */

static void half_changes(uint64_t *state)
{
    struct slot *going[SLOTS];
    size_t n = 0;

    for (size_t i = STAYING; i < SLOTS; i++) {
        if (stress_next(state) % 2)
            continue;
        if (slots[i].is_in) {
            going[n++] = &slots[i];
            continue;
        }
        slot_make(&slots[i], state);
        slot_in(&slots[i]);
    }
    out(going, n);
}

/* switch_one - disable @s, or enable it if it is disabled. A steady
 * probe is left as it is.
 */
static void switch_one(struct slot *s)
{
    struct kprobe *p = &s->rp.kp;
    bool is_off = p->flags & KPROBE_FLAG_DISABLED;
    int err;

    if (!s->is_in || is_steady(s))
        return;
    if (is_return(s))
        err = is_off ? enable_kretprobe(&s->rp) : disable_kretprobe(&s->rp);
    else
        err = is_off ? enable_kprobe(p) : disable_kprobe(p);
    if (err)
        stress_differs("cannot be switched:", s->name, (uint64_t)(long)err, 0);
}

/* switch_back - enable all probes that were given up, so that they can fault once more.
 */
static void switch_back(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].rp.kp.flags & KPROBE_FLAG_TRIPPED)
            switch_one(&slots[i]);
}

/* ---- what else changes text ---- */

static struct {
    bool film, module;
} others;

/* film_turn - begin a film of a place, or end the film. The patcher does not wait. */
static void film_turn(uint64_t chance)
{
    uintptr_t addr = places[chance % PLACES]->addr;
    int err = others.film ? film_stop() : film_start(addr, 0);

    if (err)
        stress_differs("a film", "", (uint64_t)(long)err, 0);
    others.film = !others.film;
}

#define TRIES 200

/* module_goes - unload the module. A word that is left over on a stack may keep it until
 * that thread has run on, and a busy host lets it wait.
 */
static int module_goes(void)
{
    int err = module_unload("plain", loaded_why);

    for (unsigned i = 1; i < TRIES && err == -EBUSY; i++) {
        thread_sleep_ns(10000000);
        err = module_unload("plain", loaded_why);
    }
    return err;
}

/* module_turn - load a module, or unload it. */
static void module_turn(void)
{
    int err = others.module ? module_goes() : LOAD(plain);

    if (err)
        stress_differs("a module", loaded_why, (uint64_t)(long)err, 0);
    others.module = !others.module;
}

void stress_others_first(void)
{
    places[0] = stress_entry(0);
    for (unsigned i = 0; i < 2; i++) {
        film_turn(0);
        module_turn();
    }
}

void stress_others_end(void)
{
    if (others.film)
        film_turn(0);
    if (others.module)
        module_turn();
    text_engine_set(text_engines[0]);
}

void stress_slots_change(uint64_t *state)
{
    uint64_t what = stress_next(state) % 19;

    if (stress_next(state) % 2)
        switch_back();
    if (what < 7)
        half_changes(state);
    else if (what < 12)
        switch_one(&slots[stress_next(state) % SLOTS]);
    else if (what < 14)
        step_set_engine(stress_next(state) % 2 ? STEP_INT3 : STEP_TF);
    else if (what < 15)
        optimize_run();
    else if (what == 16)
        text_engine_set(text_engines[stress_next(state) % text_engine_count]);
    else if (what == 17)
        film_turn(stress_next(state));
    else if (what == 18)
        module_turn();
    else if (stress_next(state) % 8 == 0)
        optimize_set_method(
            (enum optimize_method)(stress_next(state) % OPTIMIZE_METHODS));
}

/* ---- judging ---- */

static uint64_t sum_of(const uint64_t *missed, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += missed[i];
    return sum;
}

static void expect(const struct slot *s, const char *what, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        stress_differs(what, s->name, got, wanted);
}

static void expect_most(const struct slot *s, const char *what, uint64_t got,
                        uint64_t most)
{
    if (got > most)
        stress_differs(what, s->name, got, most);
}

/* judge_hits - check the counters of hits and misses; this holds for each probe. */
static void judge_hits(const struct slot *s)
{
    const struct kprobe *p = &s->rp.kp;
    uint64_t executed = stress_executed(s->insn), seen = p->hits + p->nmissed;

    expect(s, "wrong images", s->wrong, 0);
    expect(s, "misses by cause, and all", sum_of(p->missed, MISS_CAUSES), p->nmissed);
    if (has_entry(s))
        expect(s, "handlers called, and hits", s->entered, p->hits);
    if (is_steady(s))
        expect(s, "hits and misses, and executions", seen, executed);
    else
        expect_most(s, "hits and misses, and executions", seen, executed);
}

/* judge_post - check the calls of the post-handler of a steady probe. At a push or a pop
 * there may be enough of the stack before the instruction and too little after it, or the
 * other way round. Then only one of its two handlers is called.
 */
static void judge_post(const struct slot *s)
{
    uint64_t hits = s->rp.kp.hits, either = s->rp.kp.missed[MISS_STACK];

    if (!s->insn->is_fault && !s->insn->is_redirect)
        expect_most(s, "hits, and post-handlers called", hits, s->after + either);
    expect_most(s, "post-handlers called, and hits", s->after, hits + either);
}

static void judge_returns(const struct slot *s)
{
    const struct kretprobe *rp = &s->rp;
    uint64_t missed = sum_of(rp->missed, KRETPROBE_MISS_CAUSES);
    uint64_t unseen = missed - rp->missed[KRETPROBE_MISS_RETURN] + rp->coalesced;
    uint64_t all = s->returned + missed + rp->dropped + rp->coalesced + s->declined;

    expect(s, "misses of returns by cause, and all", missed, rp->nmissed);
    if (s->kind != RETURN)
        expect(s, "entries, and hits", s->entered + unseen, rp->kp.hits);
    if (s->stays)
        expect(s, "returns, and hits", all, rp->kp.hits);
    else /* it does not see the returns of calls that outlive it */
        expect_most(s, "returns, and hits", all, rp->kp.hits);
}

static void judge(const struct slot *s)
{
    judge_hits(s);
    if (has_post(s) && is_steady(s))
        judge_post(s);
    if (is_return(s))
        judge_returns(s);
}

void stress_slots_judge(void)
{
    uint64_t diverted = 0;

    for (size_t i = 0; i < STAYING; i++) {
        if (slots[i].is_in)
            judge(&slots[i]);
        if (slots[i].kind == PRE)
            diverted += slots[i].declined;
    }
    if (diverted != stress_diverted())
        stress_differs("sent elsewhere", "", stress_diverted(), diverted);
}

/* print_classes - print the classes in @mask to @text, as in "call,loop". */
static void print_classes(char *text, size_t len, uint32_t mask)
{
    int n = 0;

    text[0] = '\0';
    for (unsigned c = 0; c < STRESS_CLASSES; c++)
        if (mask & BIT(c))
            n += scnprintf(text + n, len - (size_t)n, "%s%s", n ? "," : "",
                           stress_class_name((enum stress_class)c));
}

static void print_slot(const struct slot *s)
{
    static const char *const aids[] = { "", ", asked", ", deals", ", faults again" };
    const struct kretprobe *rp = &s->rp;
    char classes[128], place[PLACE_TEXT_MAX];

    print_classes(classes, sizeof(classes), s->classes);
    ktest_note("%s: %s at %s, flags 0x%x, %s%s%s, 1 in %u: %s", s->name,
               kind_names[s->kind], place_text(place, rp->kp.addr), rp->kp.flags,
               s->stays ? "stays" : "comes", s->trips ? ", may be given up" : "",
               aids[s->aid], s->one_in, classes);
    ktest_note(
        "    hits %lu, missed %lu + %lu + %lu, handlers %lu, post %lu, executed %lu",
        rp->kp.hits, rp->kp.missed[MISS_RECURSION], rp->kp.missed[MISS_NESTED],
        rp->kp.missed[MISS_STACK], s->entered, s->after, stress_executed(s->insn));
    if (is_return(s))
        ktest_note("    returned %lu, missed %lu, dropped %lu, coalesced %lu, declined "
                   "%lu",
                   s->returned, rp->nmissed, rp->dropped, rp->coalesced, s->declined);
}

void stress_slots_print(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].insn)
            print_slot(&slots[i]);
}

void stress_slots_sums(struct stress_sums *result)
{
    *result = sums;
}
