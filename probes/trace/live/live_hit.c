/* live_hit.c - handles a hit: fetches the arguments, asks filter and triggers, and
 * records. It takes no lock and allocates no memory.
 *
 * There are three cases:
 *   1. Nothing is attached: the record is written directly into the ring.
 *   2. Only triggers are attached, and none of them reads the record: the triggers act.
 *      Then the hit is recorded as in 1, unless a trigger has switched this event off.
 *   3. A filter or a trigger reads the record: the record is first written into scratch
 *      room. The triggers act, then the filter decides, and the record is copied into the
 *      ring. Records that follow the hit's own record (stacks) are written last.
 *
 * In 3 the hit checks whether tracing is on before the triggers act. So a hit that
 * switches tracing off is still recorded, as on Linux.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/backtrace.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/marker.h"
#include "kernel/mm/extable.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/core/life.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/buffer/select.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/language/def_mark.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"

#include <stdio.h>
#include <string.h>

/* One hit of one probe. */
struct hit {
    struct live_probe *probe;
    struct live_event *event;
    const struct def *def;
    bool is_mark;
    uint64_t at[2]; /* words before the arguments: ip, or function and return address */
    struct fetch_from from;
};

/* ---- room ---- */

/* A hit that has a record in scratch room may be interrupted by another hit. The hits of
 * a CPU end in the opposite order of their beginning, so they use the rooms like a stack.
 */
#define SCRATCH_DEPTH (PROBE_NEST_MAX + 1)

static struct scratch {
    unsigned depth;                      /* rooms in use; only this CPU changes it */
    uint8_t (*room)[RING_EVENT_MAX + 8]; /* SCRATCH_DEPTH rooms */
} scratch[MAX_CPUS];

int live_scratch_init(void)
{
    for (unsigned i = 0; i < cpu_count(); i++) {
        if (!scratch[i].room)
            scratch[i].room = kmalloc(SCRATCH_DEPTH * sizeof(*scratch[i].room));
        if (!scratch[i].room)
            return -ENOMEM;
    }
    return 0;
}

static uint8_t *scratch_get(void)
{
    struct scratch *mine = &scratch[cpu_id()];
    unsigned depth = READ_ONCE(mine->depth);

    if (depth >= SCRATCH_DEPTH)
        return NULL;
    WRITE_ONCE(mine->depth, depth + 1);
    barrier();
    return mine->room[depth];
}

static void scratch_put(void)
{
    struct scratch *mine = &scratch[cpu_id()];

    barrier();
    WRITE_ONCE(mine->depth, mine->depth - 1);
}

/* ---- the record ---- */

static int hit_read_memory(void *dst, uintptr_t addr, size_t len, bool user UNUSED)
{
    return copy_nofault(dst, (const void *)addr, len);
}

/* size_of - return the size of the record, at most what a page holds. Return: 0: not even
 * the fixed part fits on a page.
 */
static size_t size_of(const struct hit *hit)
{
    size_t size = hit->event->fixed;

    if (unlikely(size > RING_EVENT_MAX)) {
        live_count_loss(hit->event, LIVE_LOST_LONG, 1);
        return 0;
    }
    if (hit->event->has_strings) {
        size += fetch_strings_size(hit->def->args, hit->def->arg_count, &hit->from);
        if (size > RING_EVENT_MAX)
            size = RING_EVENT_MAX;
    }
    return size;
}

/* preempt_count_of - return the preempt count that the program had at the hit. The engine
 * has noted it before it added its own counts. A marker adds one itself.
 */
uint8_t live_preempt_count(void)
{
    const struct probe_cpu *cpu = plat_this_cpu();

    return (uint8_t)cpu->hits[cpu->depth - 1].found.preempt;
}

static uint8_t preempt_count_of(const struct hit *hit)
{
    return hit->is_mark ? (uint8_t)(preempt_count() - 1) : live_preempt_count();
}

/* hit_fill_record - fill in the record, except the head; of the head only preempt_count.
 * Bytes that the strings have left over are zeroed.
 */
static void hit_fill_record(const struct hit *hit, uint8_t *record, size_t size)
{
    size_t head = event_head(&hit->event->event);
    struct fetch_to to = { .record = record, .size = size };

    memcpy(record + sizeof(struct record_head), hit->at,
           head - sizeof(struct record_head));
    ((struct record_head *)(void *)record)->preempt_count = preempt_count_of(hit);
    if (!hit->def->arg_count)
        return;
    fetch_args(hit->def->args, hit->def->arg_count, head, &hit->from, &to);
    if (to.used < size)
        memset(record + to.used, 0, size - to.used);
    if (unlikely(to.faults))
        live_count_loss(hit->event, LIVE_FAULT, to.faults);
    if (unlikely(to.cut))
        live_count_loss(hit->event, LIVE_CUT, to.cut);
}

bool live_stacks;

static void record_stack(const struct hit *hit)
{
    uintptr_t callers[STACK_RECORD_MAX];
    size_t found, size;
    struct record_stack *to;
    struct ring *ring;

    if (!buffer_is_on())
        return;
    found = backtrace_collect(hit->from.regs, callers, STACK_RECORD_MAX);
    if (found && !hit->def->is_return)
        callers[0] = hit->at[0];
    size = sizeof(*to) + found * sizeof(callers[0]);
    to = record_begin(&event_stack, size, hit->from.regs->flags, &ring);
    if (!to) {
        live_count_loss(hit->event, LIVE_LOST_RING, ring != NULL);
        return;
    }
    to->head.preempt_count = preempt_count_of(hit);
    to->size = (int32_t)found;
    to->unused = 0;
    memcpy(to->caller, callers, found * sizeof(callers[0]));
    record_end(ring);
}

static void hit_record(const struct hit *hit)
{
    struct ring *ring;
    uint8_t *to;
    size_t size;

    if (!trace_takes_hit())
        return;
    size = size_of(hit);
    if (!size)
        return;
    to = record_begin(&hit->event->event, size, hit->from.regs->flags, &ring);
    if (unlikely(!to)) {
        live_count_loss(hit->event, LIVE_LOST_RING, ring != NULL);
        return;
    }
    hit_fill_record(hit, to, size);
    record_end(ring);
    if (unlikely(READ_ONCE(live_stacks)))
        record_stack(hit);
}

/* ---- triggers ---- */

static void switch_event(struct live_trigger *t, bool on)
{
    if (READ_ONCE(t->other->soft_disabled) == !on)
        return;
    if (trigger_take(t->line))
        WRITE_ONCE(t->other->soft_disabled, !on);
}

static void switch_tracing(struct live_trigger *t, bool on)
{
    if (buffer_is_off() == on && trigger_take(t->line))
        buffer_switch(on);
}

static void switch_hists(struct live_trigger *t, bool on)
{
    const struct live_attached *there = READ_ONCE(t->other->attached);

    if (!there || !trigger_take(t->line))
        return;
    for (unsigned i = 0; i < there->count; i++)
        if (there->trigger[i]->hist)
            hist_pause(there->trigger[i]->hist, !on);
}

/* The hit, as a histogram knows it. */
struct hit_in_hist {
    struct hist_hit one;
    const struct hit *hit;
};

static void hit_act_attached(const struct hit *hit);

/* hit_emit - a synthetic event happens within a hit of another event. Its record has the
 * values, and everything else is that of the hit.
 */
static void hit_emit(const struct hist_hit *one, struct hist_synth *synth,
                     const uint64_t *values)
{
    struct hit hit = *CONTAINER_OF(one, const struct hit_in_hist, one)->hit;

    if (hit.def->is_return)
        hit.at[0] = hit.at[1];
    hit.probe = live_synth_probe(synth);
    hit.event = hit.probe->event;
    hit.def = hit.probe->def;
    hit.from.entry = values;
    if (READ_ONCE(hit.event->armed))
        hit_act_attached(&hit);
}

static void add_to_hist(struct hist *hist, const struct hit *hit, const uint8_t *record,
                        size_t len)
{
    uintptr_t callers[HIST_STACK_MAX];
    struct hit_in_hist in_hist = { .one = { .record = record,
                                            .len = len,
                                            .cpu = cpu_id(),
                                            .comm = hit->from.comm,
                                            .emit = hit_emit },
                                   .hit = hit };

    if (hist_wants_stack(hist)) {
        struct hist_hit *one = &in_hist.one;

        one->stack_len = backtrace_collect(hit->from.regs, callers, HIST_STACK_MAX);
        if (one->stack_len && !hit->def->is_return)
            callers[0] = hit->at[0];
        one->stack = callers;
    }
    if (hist_clock(hist)) {
        struct hist_time time = { buffer_now(), !trace_clock_is_cycles() };

        hist_add_at(hist, &in_hist.one, &time);
    } else {
        hist_add(hist, &in_hist.one);
    }
}

/* hit_act - carry out a trigger. Stacks are not written here, but after the record. */
static void hit_act(struct live_trigger *t, const struct hit *hit, const uint8_t *record,
                    size_t len)
{
    switch (t->line->kind) {
    case TRIGGER_ON:
    case TRIGGER_OFF:
        switch_tracing(t, t->line->kind == TRIGGER_ON);
        break;
    case TRIGGER_ENABLE_EVENT:
    case TRIGGER_DISABLE_EVENT:
        switch_event(t, t->line->kind == TRIGGER_ENABLE_EVENT);
        break;
    case TRIGGER_ENABLE_HIST:
    case TRIGGER_DISABLE_HIST:
        switch_hists(t, t->line->kind == TRIGGER_ENABLE_HIST);
        break;
    case TRIGGER_HIST:
        add_to_hist(t->hist, hit, record, len);
        break;
    case TRIGGER_SET_WATCH:
        live_watch_set(t, record);
        break;
    case TRIGGER_CLEAR_WATCH:
        live_watch_clear(t, record);
        break;
    case TRIGGER_SNAPSHOT:
        if (READ_ONCE(t->line->count) && snapshot_take())
            trigger_take(t->line);
        break;
    case TRIGGER_STACK:
    case TRIGGER_KINDS:
        break;
    }
}

static bool is_kept(const struct filter *filter, const struct hit *hit,
                    const uint8_t *record, size_t len)
{
    return !filter || filter_match(filter, record, len, cpu_id(), hit->from.comm);
}

static void look_then_record(const struct live_attached *attached, const struct hit *hit,
                             uint8_t *room)
{
    uint8_t was_stopped = trace_stops_hit();
    bool stack = false;
    size_t size = size_of(hit);

    if (!size)
        return;
    record_head_fill((struct record_head *)(void *)room, &hit->event->event,
                     hit->from.regs->flags);
    hit_fill_record(hit, room, size);
    for (unsigned i = 0; i < attached->count; i++) {
        struct live_trigger *t = attached->trigger[i];

        if (!is_kept(t->filter, hit, room, size))
            continue;
        if (t->line->kind == TRIGGER_STACK)
            stack |= trigger_take(t->line);
        else
            hit_act(t, hit, room, size);
    }
    if (!was_stopped && !READ_ONCE(hit->event->soft_disabled) &&
        is_kept(attached->filter, hit, room, size)) {
        if (record_copy(room, size))
            stack |= READ_ONCE(live_stacks);
        else
            live_count_loss(hit->event, LIVE_LOST_RING, 1);
    }
    if (stack)
        record_stack(hit);
}

static void with_attached(const struct live_attached *attached, const struct hit *hit)
{
    uint8_t *room;

    if (!attached->needs_record) {
        for (unsigned i = 0; i < attached->count; i++)
            hit_act(attached->trigger[i], hit, NULL, 0);
        if (!READ_ONCE(hit->event->soft_disabled))
            hit_record(hit);
        return;
    }
    room = scratch_get();
    if (!room) {
        live_count_loss(hit->event, LIVE_LOST_NESTED, 1);
        return;
    }
    look_then_record(attached, hit, room);
    scratch_put();
}

/* ---- handlers ---- */

/* is_idle - is there nothing to do: no recording, and all histograms pause? */
static bool is_idle(const struct hit *hit, const struct live_attached *attached)
{
    if (!READ_ONCE(hit->event->soft_disabled))
        return false;
    for (unsigned i = 0; i < attached->count; i++)
        if (!attached->trigger[i]->hist || !hist_is_paused(attached->trigger[i]->hist))
            return false;
    return true;
}

static void hit_act_attached(const struct hit *hit)
{
    const struct live_attached *attached = READ_ONCE(hit->event->attached);

    if (attached)
        with_attached(attached, hit);
    else if (!READ_ONCE(hit->event->soft_disabled))
        hit_record(hit);
}

/* hit_take - record @hit. Functions that record a hit may be probed, too. Their hits are the
 * tracer's own: they are misses, else recording them would cause more of them.
 */
static void hit_take(const struct hit *hit)
{
    const struct live_attached *attached = READ_ONCE(hit->event->attached);

    if (attached && is_idle(hit, attached))
        return;
    if (unlikely(own_work())) {
        __atomic_add_fetch(&hit->probe->own, 1, __ATOMIC_RELAXED);
        return;
    }
    own_work_begin();
    if (unlikely(attached))
        with_attached(attached, hit);
    else if (likely(!READ_ONCE(hit->event->soft_disabled)))
        hit_record(hit);
    own_work_end();
}

int live_hit_probe(struct kprobe *kp, struct pt_regs *regs)
{
    struct live_probe *p = CONTAINER_OF(kp, struct live_probe, rp.kp);
    struct hit hit = {
        .probe = p,
        .event = p->event,
        .def = p->def,
        .at = { kp->addr },
        .from = { .regs = regs,
                  .ip = kp->addr,
                  .comm = thread_current()->name,
                  .returns = kretprobe_find_ret,
                  .read = hit_read_memory,
                  .symbol = ksyms_text },
    };

    hit_take(&hit);
    return 0;
}

/* hit_run_program - run the program of @p, if it has one. */
static bool hit_run_program(const struct live_probe *p, const struct program_hit *hit)
{
    const struct kprobe_program *program = __atomic_load_n(&p->in_c, __ATOMIC_ACQUIRE);

    if (program)
        kprobe_program_run(program, hit);
    return program;
}

static void hit_watch(struct watch *w, struct pt_regs *regs)
{
    struct live_probe *p = CONTAINER_OF(w, struct live_probe, watch);
    uint64_t addr = READ_ONCE(w->addr);
    const struct program_hit in_c = {
        .p = &p->rp.kp, .ip = regs->ip, .regs = regs, .entry = &addr
    };
    struct hit hit = {
        .probe = p,
        .event = p->event,
        .def = p->def,
        .at = { regs->ip },
        .from = { .regs = regs,
                  .comm = thread_current()->name,
                  .ip = regs->ip,
                  .watched = addr,
                  .read = hit_read_memory,
                  .symbol = ksyms_text },
    };

    if (addr && !hit_run_program(p, &in_c)) /* 0: another CPU has just cleared it */
        hit_take(&hit);
}

static int hit_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    const struct live_probe *p = CONTAINER_OF(ri->rp, struct live_probe, rp);
    struct fetch_from from = { .regs = regs, .read = hit_read_memory };
    bool was = own_work();

    if (p->def->within && kretprobe_depth(p->def->within) < 0)
        return 1;
    if (!was)
        own_work_begin();
    from.time = clock_ns();
    fetch_entry(p->def->entry, p->def->entry_count, &from, (uint64_t *)(void *)ri->data);
    if (!was)
        own_work_end();
    return 0;
}

static int hit_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    struct live_probe *p = CONTAINER_OF(ri->rp, struct live_probe, rp);
    const uint64_t *entry =
        p->def->entry_count ? (const uint64_t *)(void *)ri->data : NULL;
    const struct program_hit in_c = { .p = &p->rp.kp,
                                      .ip = p->rp.kp.addr,
                                      .regs = regs,
                                      .ret = ri->ret_addr,
                                      .entry = entry };
    struct hit hit = {
        .probe = p,
        .event = p->event,
        .def = p->def,
        .at = { p->rp.kp.addr, ri->ret_addr },
        .from = { .regs = regs,
                  .ip = ri->ret_addr,
                  .entry = entry,
                  .comm = thread_current()->name,
                  .depth = kretprobe_depth,
                  .returns = kretprobe_find_ret,
                  .read = hit_read_memory,
                  .symbol = ksyms_text },
    };

    if (hit_run_program(p, &in_c))
        return 0;
    if (entry)
        hit.from.time = clock_ns(); /* not after the time of the record */
    hit_take(&hit);
    return 0;
}

static void fill_watch(struct live_probe *p)
{
    struct watch *w = &p->watch;

    snprintf(w->name, sizeof(w->name), "%s/%s", p->def->group, p->def->event);
    w->kind = p->def->of_writes ? WATCH_WRITE : WATCH_ACCESS;
    w->len = p->def->watch_len;
    w->addr = p->def->addr;
    w->handler = hit_watch;
}

void live_mark_hit(void *private, struct marker_call *call)
{
    struct live_probe *p = private;
    const struct pt_regs regs = {
        .ip = call->cold_ip, .sp = call->sp, .bp = call->bp, .flags = read_flags()
    };
    uint64_t values[DEF_MARK_ARGS_MAX];
    const struct program_hit in_c = {
        .p = &p->rp.kp, .ip = call->ip, .regs = &regs, .entry = values
    };
    struct hit hit = {
        .probe = p,
        .event = p->event,
        .def = p->def,
        .is_mark = true,
        .at = { call->ip },
        .from = { .regs = &regs,
                  .entry = values,
                  .comm = thread_current()->name,
                  .read = hit_read_memory,
                  .symbol = ksyms_text },
    };

    for (unsigned i = 0; i < p->def->arg_count; i++)
        values[i] = va_arg(call->args, uint64_t);
    if (!hit_run_program(p, &in_c))
        hit_take(&hit);
}

void live_probe_fill(struct live_probe *p)
{
    if (p->def->is_watch) {
        fill_watch(p);
        return;
    }
    if (!p->def->is_return) {
        p->rp.kp.pre_handler = live_hit_probe;
        return;
    }
    p->rp.handler = hit_return;
    if (p->def->entry_count || p->def->within)
        p->rp.entry_handler = hit_entry;
    p->rp.data_size = p->def->entry_count * sizeof(uint64_t);
}

const char *live_loss_name(enum live_loss cause)
{
    static const char *const names[LIVE_LOSSES] = {
        [LIVE_LOST_RING] = "ring",    [LIVE_LOST_LONG] = "long",
        [LIVE_LOST_NESTED] = "depth", [LIVE_FAULT] = "fault",
        [LIVE_CUT] = "cut",           [LIVE_NOT_SET] = "not_set",
    };

    return names[cause];
}
