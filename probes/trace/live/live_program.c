/* live_program.c - gives the probes of events their programs, and reads the programs'
 * words.
 *
 * What a program can say is done in the detour: histograms and filters over numbers, and
 * records of registers, constants and numbers in memory. Else live_hit.c does it, with an
 * image. A program is made for what is asked for at that moment: it is made anew when an
 * event is armed, and when a filter, a trigger or the recording changes while it is
 * armed. Then the words of the old one are added to the tables of the histograms.
 *
 * The program of a probe at an instruction belongs to the engine, which compiles it into
 * the detour. That of a return probe, a watch or a marker runs in C, from its handler.
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
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"
#include "probes/trace/ring/ring.h"

#define HISTS_MAX 4 /* of an event; with more, live_hit.c does the work */

struct live_program {
    struct kprobe_program program;
    struct kprobe_op ops[KPROBE_OPS_MAX];
    struct compile compile;
    bool counts_own; /* word 0 does */
    unsigned hist_count;
    struct {
        struct hist *hist;
        struct compile_table table;
    } hists[HISTS_MAX];
};

/* ---- records ---- */

static ALWAYS_INLINE struct kprobe_room event_reserve(struct live_event *e, uintptr_t ip,
                                                      unsigned long flags)
{
    return record_reserve(&e->event, e->fixed, flags, ip, &e->lost[LIVE_LOST_RING]);
}

static NOINLINE struct kprobe_room reserve_with_image(struct live_event *e, uintptr_t ip,
                                                      const struct pt_regs *regs)
{
    struct kprobe_room room = event_reserve(e, ip, regs->flags);

    if (room.at)
        ((struct record_probe *)room.at)->head.preempt_count = live_preempt_count();
    return room;
}

HOT static struct kprobe_room program_reserve(struct kprobe *kp, uintptr_t ip,
                                              const struct pt_regs *regs)
{
    const struct live_probe *p = CONTAINER_OF(kp, struct live_probe, rp.kp);
    struct live_event *e = p->event;

    if (!trace_takes_hit())
        return (struct kprobe_room){ 0 };
    own_work_begin();
    return likely(!regs) ? event_reserve(e, ip, read_flags())
                         : reserve_with_image(e, ip, regs);
}

/* reserve_for_mark - the same, of a marker, which has no hit, and adds one to the count of
 * preemption.
 */
static struct kprobe_room reserve_for_mark(struct kprobe *kp, uintptr_t ip,
                                           const struct pt_regs *regs UNUSED)
{
    struct kprobe_room room = program_reserve(kp, ip, NULL);

    if (room.at)
        ((struct record_probe *)room.at)->head.preempt_count =
            (uint8_t)(preempt_count() - 1);
    return room;
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

HOT static void program_commit(void *ring)
{
    ring_commit(ring);
    own_work_end();
}

/* ---- tables of keys ---- */

#define KEYS_ALIGN 128

/* keys_new - the word in front of the table is the block that holds both. */
static uint64_t *keys_new(unsigned bits)
{
    void *block = kzalloc(sizeof(void *) + KEYS_ALIGN + (sizeof(uint64_t) << bits));
    void **keys;
    uintptr_t at;

    if (!block)
        return NULL;
    at = (uintptr_t)block + sizeof(void *) + KEYS_ALIGN - 1;
    keys = (void **)(at - at % KEYS_ALIGN);
    keys[-1] = block;
    return (uint64_t *)keys;
}

static void keys_free(const uint64_t *keys)
{
    if (keys)
        kfree(((void *const *)(const void *)keys)[-1]);
}

static void program_free(struct live_program *program)
{
    for (unsigned i = 0; program && i < program->hist_count; i++)
        keys_free(program->hists[i].table.keys);
    kfree(program);
}

/* ---- windows ---- */

/* A histogram that was defined with `pause` is a question that somebody opens and closes:
 * what happens in between is the answer. One store opens it, on all CPUs, and neither the
 * tracer's work before it nor that behind it is in the answer. So programs ask a byte, which
 * lies here, where their code reaches it.
 */
static uint8_t windows[64];
static uint64_t windows_used; /* bit i: a histogram has windows[i] */

void live_window_give(struct hist *hist)
{
    for (unsigned i = 0; hist_begins_paused(hist) && i < ARRAY_LEN(windows); i++) {
        if (windows_used >> i & 1)
            continue;
        windows_used |= UINT64_C(1) << i;
        hist_pause_at(hist, &windows[i]);
        return;
    }
}

static bool has_window(const struct hist *hist)
{
    const uint8_t *at = hist_pause_byte(hist);

    return at >= windows && at < windows + ARRAY_LEN(windows);
}

void live_window_take(const struct hist *hist)
{
    if (has_window(hist))
        windows_used &= ~(UINT64_C(1) << (hist_pause_byte(hist) - windows));
}

/* ---- making ---- */

/* A table of keys takes memory for each probe and CPU. */
#define KEYED_PROBES_MAX 16

static bool has_few_probes(const struct live_event *e)
{
    const struct live_probe *p;
    unsigned count = 0;

    list_for_each(p, &e->probes, sibling)
        if (++count > KEYED_PROBES_MAX)
            return false;
    return true;
}

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
    if (has_window(t->hist))
        compile_unless_paused(&out->compile, t->hist);
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
    kprobe_reserve_t reserve = live_mark(e) ? reserve_for_mark
                               : switched   ? reserve_switched
                                            : program_reserve;

    for (unsigned i = 0; attached && i < attached->count; i++) {
        const struct live_trigger *t = attached->trigger[i];

        if (!t->hist || switched || !hist_is_plain(t->hist))
            out->compile.unable = true;
        else
            add_hist(out, t);
    }
    if (e->soft_disabled && !switched)
        return;
    out->compile.unable |= (switched && live_mark(e)) || READ_ONCE(live_stacks);
    compile_begin_part(&out->compile);
    if (attached && attached->filter)
        compile_filter(&out->compile, attached->filter);
    compile_record(&out->compile, event_head(&e->event), reserve, program_commit);
    compile_end_part(&out->compile);
}

extern const char tracer_text_start[],
    tracer_text_end[]; /* all that recording and printing can reach */

/* count_own - a hit in the tracer's own work is a miss. Only where that work can reach the
 * place, or while a thread is hidden, is there a need to ask.
 */
static void count_own(struct live_program *out, const struct live_probe *p)
{
    uintptr_t addr = p->rp.kp.addr;

    if (!p->def->is_watch && !p->mark && !select_hides_thread() &&
        (addr < (uintptr_t)tracer_text_start || addr >= (uintptr_t)tracer_text_end))
        return;
    out->counts_own = true;
    compile_own(&out->compile);
}

/* entry_words_of - how many words a hit gives beside the registers: those that were saved at
 * the entry; of a watch, the address; of a marker, its values.
 */
static uint8_t entry_words_of(const struct live_probe *p)
{
    if (p->def->is_watch)
        return 1;
    return (uint8_t)(p->mark ? p->def->arg_count : p->def->entry_count);
}

/* program_new - the program of @p. NULL: live_hit.c has to do the work. */
static struct live_program *program_new(const struct live_probe *p)
{
    struct live_program *out;

    if (p->def->has_strings || p->event->fixed > KPROBE_RECORD_MAX)
        return NULL;
    out = kzalloc(sizeof(*out));
    if (!out)
        return NULL;
    out->compile.def = p->def;
    out->compile.type = p->event->event.id;
    out->compile.ops = out->ops;
    out->compile.one_address = live_is_plain(p) || p->def->is_return;
    out->compile.new_keys = has_few_probes(p->event) ? keys_new : NULL;
    count_own(out, p);
    compile_event(out, p->event);
    compile_end(&out->compile);
    out->program = (struct kprobe_program){ .ops = out->ops,
                                            .count = (uint16_t)out->compile.count,
                                            .words = (uint16_t)out->compile.words,
                                            .in_c = !live_is_plain(p),
                                            .entry_words = entry_words_of(p) };
    if (out->compile.unable || program_verify(&out->program, NULL) ||
        (out->program.in_c && kprobe_program_begin(&out->program))) {
        program_free(out);
        return NULL;
    }
    return out;
}

/* ---- words ---- */

static void fold_cpu(struct hist *into, const struct live_probe *p,
                     const struct live_program *from, unsigned i, unsigned cpu)
{
    compile_fold(into, from->hists[i].hist, &from->hists[i].table, &from->compile,
                 p->rp.kp.addr, cpu, program_word_of, &from->program);
}

/* fold_words - add the words of @from, a program of @p, to the tables of its histograms.
 * What a histogram without a window has counted while it was paused does not count, nor what
 * is being cleared.
 * @only: of this histogram; NULL: of all
 * @into: to this table, also of those that share the one of @only; NULL: each to its own
 */
static void fold_words(const struct live_probe *p, const struct live_program *from,
                       const struct hist *only, struct hist *into)
{
    for (unsigned i = 0; from && i < from->hist_count; i++) {
        struct hist *hist = from->hists[i].hist;

        if ((hist_is_paused(hist) && !has_window(hist)) || hist_is_held(hist) ||
            (only && hist != only && !(into && hist_shares(hist, only))))
            continue;
        for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
            fold_cpu(into ? into : hist, p, from, i, cpu);
    }
}

static uint64_t own_of(const struct live_program *of)
{
    return of && of->counts_own ? program_sum(&of->program, 0) : 0;
}

uint64_t live_own(const struct live_probe *p)
{
    return READ_ONCE(p->own) + own_of(p->program);
}

uint64_t live_probe_hits(const struct live_probe *p)
{
    uint64_t hits =
        p->def->is_watch ? p->hits + watch_hits(&p->watch) : kprobe_hits(&p->rp.kp);

    return hits - live_own(p);
}

uint64_t live_probe_misses(const struct live_probe *p)
{
    uint64_t missed = READ_ONCE(p->rp.kp.nmissed) + live_own(p);

    if (p->def->is_watch)
        return p->misses + watch_misses(&p->watch) + live_own(p);
    return p->def->is_return ? missed + READ_ONCE(p->rp.nmissed) : missed;
}

static uint64_t faults_of(const struct live_program *of)
{
    if (!of || program_words(&of->program) == of->program.words)
        return 0;
    return program_sum(&of->program, of->program.words);
}

/* for_each_program - call @fn for each probe that has a program. */
static void for_each_program(void (*fn)(struct live_probe *p, void *arg), void *arg)
{
    const struct live_event *e = NULL;
    struct live_probe *p;

    while ((e = live_event_next(e)))
        list_for_each(p, &e->probes, sibling)
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

    fold_words(p, p->program, f->only, f->into);
}

/* begin_one - let the words of a histogram begin anew, and if its table is held, those of all
 * that share it. Each CPU does that for itself: its hits change words by instructions that
 * other CPUs could overtake.
 */
static COLD void begin_one(struct live_probe *p, void *arg)
{
    const struct hist *hist = arg;
    struct live_program *program = p->program;

    for (unsigned i = 0; i < program->hist_count; i++)
        if (program->hists[i].hist == hist ||
            (hist_is_held(hist) && hist_shares(program->hists[i].hist, hist)))
            program_begin_words(&program->program, program->hists[i].table.first,
                                compile_words(hist, &program->hists[i].table));
}

static COLD void begin_here(void *hist)
{
    for_each_program(begin_one, hist);
}

/* fold_at_panic - what programs have counted goes to the tables, where the host finds it. All
 * other CPUs stand still, or could not be stopped; no lock is taken.
 */
static COLD void fold_at_panic(void)
{
    struct folding all = { NULL, NULL };

    for_each_program(fold_one, &all);
}

INIT void live_program_init(void)
{
    panic_add_report(fold_at_panic);
}

COLD void live_hist_pause(struct hist *hist, bool pause)
{
    struct folding all = { hist, NULL };

    if (hist_is_paused(hist) == pause)
        return;
    if (has_window(hist)) {
        hist_pause(hist, pause);
        return;
    }
    if (pause)
        for_each_program(fold_one, &all);
    else
        smp_call_all(begin_here, hist);
    hist_pause(hist, pause);
}

/* renew_keys - give the event of @p new programs if its keys are in a table, which may be
 * full: hits on all CPUs use it, so it cannot begin anew.
 */
static COLD void renew_keys(struct live_probe *p, void *hist)
{
    struct live_event *e = p->event;
    bool has_keys = false;

    for (unsigned i = 0; i < p->program->hist_count; i++)
        has_keys |= p->program->hists[i].table.keys &&
                    hist_shares(p->program->hists[i].hist, hist);
    if (has_keys)
        live_program_update(&e, 1, false);
}

COLD void live_hist_clear(struct hist *hist)
{
    hist_hold(hist, true);
    quiesce();
    for_each_program(renew_keys, hist);
    hist_clear(hist);
    smp_call_all(begin_here, hist);
    hist_hold(hist, false);
}

/* A key that has an entry in a view has one in the table from then on: else a key that comes
 * later could take its place in the next view.
 */
COLD struct hist *live_hist_view(struct hist *hist)
{
    struct folding all = { hist, hist_copy(&live_host, hist) };

    if (!all.into)
        return NULL;
    all.into->keeps = hist;
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
            lost += faults_of(p->program);
    return lost;
}

/* ---- exchange ---- */

/* What becomes of some probes at once. */
struct update {
    struct kprobe_exchange *x; /* those of the engine */
    size_t x_count;
    struct change {
        struct live_probe *p;
        struct live_program *new, *old; /* NULL: live_hit.c */
    } * change;
    size_t count;
};

static bool update_make(struct update *u, size_t max)
{
    *u = (struct update){ .x = kmalloc((max + 1) * sizeof(*u->x)),
                          .change = kmalloc((max + 1) * sizeof(*u->change)) };
    return u->x && u->change;
}

static void update_free(struct update *u)
{
    kfree(u->x);
    kfree(u->change);
}

static void update_add(struct update *u, struct live_probe *p, struct live_program *new)
{
    if (!new && !p->program)
        return;
    if (live_is_plain(p))
        u->x[u->x_count++] =
            (struct kprobe_exchange){ &p->rp.kp, new ? &new->program : NULL,
                                      new ? NULL : live_hit_probe };
    u->change[u->count++] = (struct change){ p, new, p->program };
}

/* program_retire - no hit of @p runs @old any more. */
static void program_retire(struct live_probe *p, struct live_program *old)
{
    if (!old)
        return;
    fold_words(p, old, NULL, NULL);
    p->event->lost[LIVE_FAULT] += faults_of(old);
    __atomic_add_fetch(&p->own, own_of(old), __ATOMIC_RELAXED);
    kprobe_program_end(&old->program);
    program_free(old);
}

/* update_finish - the engine has done its part. Handlers that run programs in C find the new
 * ones from now on, and after quiescence none runs an old one.
 */
static void update_finish(struct update *u)
{
    bool by_handler = false;

    for (size_t i = 0; i < u->count; i++) {
        struct live_probe *p = u->change[i].p;
        struct live_program *new = u->change[i].new;

        p->program = new;
        if (live_is_plain(p))
            continue;
        __atomic_store_n(&p->in_c, new ? &new->program : NULL, __ATOMIC_RELEASE);
        by_handler = true;
    }
    if (by_handler)
        quiesce();
    for (size_t i = 0; i < u->count; i++)
        program_retire(u->change[i].p, u->change[i].old);
}

COLD void live_program_drop(struct live_probe *p)
{
    struct kprobe_exchange one = { &p->rp.kp, NULL, live_hit_probe };
    struct change change = { p, NULL, p->program };
    struct update u = { .change = &change, .count = 1 };

    if (!p->program)
        return;
    if (live_is_plain(p))
        kprobe_exchange(&one, 1);
    update_finish(&u);
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
            if (p->is_registered || !live_is_plain(p))
                update_add(u, p, arming || events[i]->armed ? program_new(p) : NULL);
}

/* update_give_up - no program was exchanged: free the new ones. */
static void update_give_up(struct update *u)
{
    for (size_t i = 0; i < u->count; i++) {
        if (u->change[i].new && u->change[i].new->program.in_c)
            kprobe_program_end(&u->change[i].new->program);
        program_free(u->change[i].new);
    }
}

COLD void live_program_update(struct live_event *const *events, size_t count, bool arming)
{
    struct update u;
    struct live_probe *p;
    bool done = false;

    if (update_make(&u, update_max(events, count))) {
        update_collect(&u, events, count, arming);
        done = !u.x_count || !kprobe_exchange(u.x, u.x_count);
        done ? update_finish(&u) : update_give_up(&u);
    }
    update_free(&u);
    for (size_t i = 0; !done && i < count; i++)
        list_for_each(p, &events[i]->probes, sibling)
            live_program_drop(p);
}

void live_set_stacks(bool on)
{
    struct live_event *e = NULL;

    WRITE_ONCE(live_stacks, on);
    while ((e = live_event_next(e)))
        if (e->armed)
            live_program_update(&e, 1, false);
}
