/* live_program.c - gives the probes of events their programs, and reads the programs'
 * words.
 *
 * What a program can say is done in the detour: histograms and filters over numbers, and
 * records of registers, constants and numbers in memory. Else live_hit.c does it, with an
 * image. A program is made for what is asked for at that moment: it is made anew when an
 * event is armed, and when a filter, a trigger or the recording changes while it is
 * armed. Then the words of the old one are added to the tables of the histograms.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/quiesce.h"
#include "probes/core/life.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/select.h"
#include "probes/trace/language/compile.h"
#include "probes/trace/live/live.h"

#define HISTS_MAX 4 /* of an event; with more, live_hit.c does the work */

struct live_program {
    struct kprobe_program program;
    struct kprobe_op ops[KPROBE_OPS_MAX];
    struct compile compile;
    unsigned hist_count;
    struct {
        struct hist *hist;
        struct compile_table table;
    } hists[HISTS_MAX];
};

/* ---- records ---- */

static struct kprobe_room program_reserve(struct kprobe *kp, uintptr_t ip,
                                          const struct pt_regs *regs)
{
    const struct live_probe *p = CONTAINER_OF(kp, struct live_probe, rp.kp);
    struct live_event *e = p->event;
    struct record_probe *record;
    struct ring *ring;

    if (!trace_takes_hit())
        return (struct kprobe_room){ 0 };
    record =
        record_begin_taken(&e->event, e->fixed, regs ? regs->flags : read_flags(), &ring);
    if (unlikely(!record)) {
        __atomic_add_fetch(&e->lost[LIVE_LOST_RING], 1, __ATOMIC_RELAXED);
        return (struct kprobe_room){ 0 };
    }
    if (regs)
        record->head.preempt_count = live_preempt_count();
    record->ip = ip;
    return (struct kprobe_room){ record, ring };
}

/* reserve_switched - the same, of an event whose recording other hits switch. */
static struct kprobe_room reserve_switched(struct kprobe *kp, uintptr_t ip,
                                           const struct pt_regs *regs)
{
    const struct live_probe *p = CONTAINER_OF(kp, struct live_probe, rp.kp);

    if (READ_ONCE(p->event->soft_disabled))
        return (struct kprobe_room){ 0 };
    return program_reserve(kp, ip, regs);
}

static void program_commit(void *ring)
{
    record_end(ring);
}

/* ---- making ---- */

/* is_switched - may a hit switch the recording of @e, or its histograms? */
static bool is_switched(const struct live_event *e)
{
    for (const struct live_event *other = live_event_next(NULL); other;
         other = live_event_next(other))
        for (unsigned i = 0; other->attached && i < other->attached->count; i++)
            if (other->attached->trigger[i]->other == e)
                return true;
    return false;
}

static void add_hist(struct live_program *out, const struct live_trigger *t)
{
    if (out->hist_count == HISTS_MAX) {
        out->compile.unable = true;
        return;
    }
    compile_begin_part(&out->compile);
    if (t->filter)
        compile_filter(&out->compile, t->filter);
    out->hists[out->hist_count].hist = t->hist;
    compile_hist(&out->compile, t->hist, &out->hists[out->hist_count++].table);
    compile_end_part(&out->compile);
}

static void compile_event(struct live_program *out, const struct live_event *e)
{
    const struct live_attached *attached = e->attached;
    bool switched = is_switched(e);

    for (unsigned i = 0; attached && i < attached->count; i++) {
        const struct live_trigger *t = attached->trigger[i];

        if (!t->hist || switched)
            out->compile.unable = true;
        else
            add_hist(out, t);
    }
    if (e->soft_disabled && !switched)
        return;
    compile_begin_part(&out->compile);
    if (attached && attached->filter)
        compile_filter(&out->compile, attached->filter);
    compile_record(&out->compile, event_head(&e->event),
                   switched ? reserve_switched : program_reserve, program_commit);
    compile_end_part(&out->compile);
}

/* program_new - the program of @p. NULL: live_hit.c has to do the work. */
static struct live_program *program_new(const struct live_probe *p)
{
    struct live_program *out;

    if (p->def->has_strings || p->event->fixed > KPROBE_RECORD_MAX || !live_is_plain(p))
        return NULL;
    out = kzalloc(sizeof(*out));
    if (!out)
        return NULL;
    out->compile.def = p->def;
    out->compile.type = p->event->event.id;
    out->compile.ops = out->ops;
    compile_event(out, p->event);
    compile_end(&out->compile);
    out->program = (struct kprobe_program){ .ops = out->ops,
                                            .count = (uint16_t)out->compile.count,
                                            .words = (uint16_t)out->compile.words };
    if (out->compile.unable || program_verify(&out->program, NULL)) {
        kfree(out);
        return NULL;
    }
    return out;
}

/* ---- words ---- */

static void fold_cpu(struct hist *into, const struct live_probe *p, unsigned i,
                     unsigned cpu)
{
    const struct live_program *from = p->program;

    compile_fold(into, &from->hists[i].table, &from->compile, p->rp.kp.addr, cpu,
                 program_word_of, &from->program);
}

/* fold_words - add the words of @p's program to the tables of its histograms. What a
 * histogram has counted while it was paused does not count.
 * @only: of this histogram, to the table of @into; NULL: of all, each to its own
 */
static void fold_words(const struct live_probe *p, const struct hist *only,
                       struct hist *into)
{
    const struct live_program *from = p->program;

    for (unsigned i = 0; from && i < from->hist_count; i++) {
        struct hist *hist = from->hists[i].hist;

        if (hist_is_paused(hist) || (only && !hist_shares(hist, only)))
            continue;
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            fold_cpu(into ? into : hist, p, i, cpu);
    }
}

static uint64_t faults_of(const struct live_probe *p)
{
    const struct kprobe_program *program = &p->program->program;

    if (!p->program || program_words(program) == program->words)
        return 0;
    return program_sum(program, program->words);
}

/* for_each_program - call @fn for each probe that has a program. */
static void for_each_program(void (*fn)(struct live_probe *p, void *arg), void *arg)
{
    struct live_probe *p = NULL;

    while ((p = live_probe_next(p)))
        if (p->program)
            fn(p, arg);
}

struct folding {
    const struct hist *only;
    struct hist *into;
};

static void fold_one(struct live_probe *p, void *arg)
{
    const struct folding *f = arg;

    fold_words(p, f->only, f->into);
}

/* begin_one - let the words of a histogram begin anew. Each CPU does that for itself: its
 * hits change words by instructions that other CPUs could overtake.
 */
static void begin_one(struct live_probe *p, void *arg)
{
    const struct hist *hist = arg;
    struct live_program *program = p->program;

    for (unsigned i = 0; i < program->hist_count; i++)
        if (hist_shares(program->hists[i].hist, hist))
            program_begin_words(&program->program, program->hists[i].table.first,
                                compile_words(hist, &program->hists[i].table));
}

static void begin_here(void *hist)
{
    for_each_program(begin_one, hist);
}

/* fold_at_panic - what programs have counted goes to the tables, where the host finds it. All
 * other CPUs stand still, or could not be stopped; no lock is taken.
 */
static void fold_at_panic(void)
{
    struct folding all = { NULL, NULL };

    for_each_program(fold_one, &all);
}

INIT void live_program_init(void)
{
    panic_add_report(fold_at_panic);
}

void live_hist_pause(struct hist *hist, bool pause)
{
    struct folding all = { hist, NULL };

    if (hist_is_paused(hist) == pause)
        return;
    if (pause)
        for_each_program(fold_one, &all);
    else
        smp_call_all(begin_here, hist);
    hist_pause(hist, pause);
}

void live_hist_clear(struct hist *hist)
{
    hist_hold(hist, true);
    quiesce();
    hist_clear(hist);
    smp_call_all(begin_here, hist);
    hist_hold(hist, false);
}

struct hist *live_hist_view(const struct hist *hist)
{
    struct folding all = { hist, hist_copy(&live_host, hist) };

    if (all.into)
        for_each_program(fold_one, &all);
    return all.into;
}

void live_hist_view_free(struct hist *view)
{
    if (view)
        hist_copy_free(&live_host, view);
}

uint64_t live_lost(const struct live_event *e, enum live_loss cause)
{
    uint64_t lost = READ_ONCE(e->lost[cause]);
    const struct live_probe *p;

    if (cause == LIVE_FAULT)
        list_for_each(p, &e->probes, sibling)
            lost += faults_of(p);
    return lost;
}

/* ---- exchange ---- */

/* What becomes of some probes at once. */
struct update {
    struct kprobe_exchange *x;
    struct live_probe **probe;
    struct live_program **program; /* NULL: live_hit.c */
    size_t count;
};

static bool update_make(struct update *u, size_t max)
{
    *u = (struct update){ .x = kmalloc((max + 1) * sizeof(*u->x)),
                          .probe = kmalloc((max + 1) * sizeof(*u->probe)),
                          .program = kmalloc((max + 1) * sizeof(*u->program)) };
    return u->x && u->probe && u->program;
}

static void update_free(struct update *u)
{
    kfree(u->x);
    kfree(u->probe);
    kfree(u->program);
}

static void update_add(struct update *u, struct live_probe *p, struct live_program *new)
{
    if (!new && !p->program)
        return;
    u->x[u->count] = (struct kprobe_exchange){ &p->rp.kp, new ? &new->program : NULL,
                                               new ? NULL : live_hit_probe };
    u->probe[u->count] = p;
    u->program[u->count++] = new;
}

/* program_set - hits of @p run @new now, and no hit runs the program from before. */
static void program_set(struct live_probe *p, struct live_program *new)
{
    struct live_program *old = p->program;

    fold_words(p, NULL, NULL);
    p->event->lost[LIVE_FAULT] += faults_of(p);
    p->program = new;
    if (old)
        kprobe_program_end(&old->program);
    kfree(old);
}

/* by_image - without memory for anything else, live_hit.c does what the hits of @p do. */
static void by_image(struct live_probe *p)
{
    struct kprobe_exchange one = { &p->rp.kp, NULL, live_hit_probe };

    if (!p->program)
        return;
    kprobe_exchange(&one, 1);
    program_set(p, NULL);
}

static size_t update_max(struct live_event *const *events, size_t count)
{
    const struct live_probe *p;
    size_t probes = 0;

    for (size_t i = 0; i < count; i++)
        list_for_each(p, &events[i]->probes, sibling)
            probes++;
    return probes;
}

static void update_collect(struct update *u, struct live_event *const *events,
                           size_t count, bool arming)
{
    struct live_probe *p;

    for (size_t i = 0; i < count; i++)
        list_for_each(p, &events[i]->probes, sibling)
            if (p->is_registered && live_is_plain(p))
                update_add(u, p, arming || events[i]->armed ? program_new(p) : NULL);
}

void live_program_update(struct live_event *const *events, size_t count, bool arming)
{
    struct update u;
    struct live_probe *p;

    if (update_make(&u, update_max(events, count))) {
        update_collect(&u, events, count, arming);
        if (!kprobe_exchange(u.x, u.count)) {
            for (size_t i = 0; i < u.count; i++)
                program_set(u.probe[i], u.program[i]);
            update_free(&u);
            return;
        }
        for (size_t i = 0; i < u.count; i++)
            kfree(u.program[i]);
    }
    update_free(&u);
    for (size_t i = 0; i < count; i++)
        list_for_each(p, &events[i]->probes, sibling)
            by_image(p);
}
