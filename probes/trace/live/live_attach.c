/* live_attach.c - attaches filters and triggers to an event, and removes them.
 *
 * A change makes a new struct live_attached from the parts of the old one, and publishes
 * it to hits. Then it waits until no hit can use the old one, and frees the old one with
 * the parts that the new one does not have.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/quiesce.h"
#include "kernel/sync/wait_check.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/language/error.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the exchange ---- */

static struct live_attached *attached_new(unsigned count)
{
    return kzalloc(sizeof(struct live_attached) + count * sizeof(struct live_trigger *));
}

/* looks_at_record - tell whether @t needs the record to be made before it acts. traceoff
 * does not read the record. But the hit that switches tracing off is to be recorded, as
 * on Linux, and that takes the same order.
 */
static bool looks_at_record(const struct live_trigger *t)
{
    return t->filter || t->line->field || t->line->kind == TRIGGER_HIST ||
           t->line->kind == TRIGGER_STACK || t->line->kind == TRIGGER_OFF;
}

static void look_at_triggers(struct live_attached *new)
{
    new->needs_record = new->filter != NULL;
    for (unsigned i = 0; i < new->count; i++)
        new->needs_record |= looks_at_record(new->trigger[i]);
}

/* live_exchange - replace the attached parts of @e by @new, which is freed if it is empty.
 * When the function returns, no hit uses the old struct.
 */
static void live_exchange(struct live_event *e, struct live_attached *new)
{
    struct live_attached *old = (struct live_attached *)(uintptr_t)e->attached;

    look_at_triggers(new);
    if (!new->filter && !new->count) {
        kfree(new);
        new = NULL;
    }
    __atomic_store_n(&e->attached, new, __ATOMIC_RELEASE);
    live_program_update(&e, 1, false);
    if (old) /* even of a disarmed event: a hit may have begun before */
        quiesce();
    kfree(old);
}

static const struct live_attached nothing;

static const struct live_attached *attached_of(const struct live_event *e)
{
    return e->attached ? e->attached : &nothing;
}

/* ---- filters ---- */

static const struct def *def_of(const struct live_event *e)
{
    return live_event_probe(e)->def;
}

/* parse_filter - parse a filter over the fields of @e. */
static int parse_filter(const struct live_event *e, const char *text, struct filter **out,
                        struct filter_error *error)
{
    struct filter_field *fields = kmalloc(FILTER_FIELDS_MAX * sizeof(*fields));
    int err;

    if (!fields)
        return -ENOMEM;
    err = filter_parse(&live_host, text, fields, filter_fields(def_of(e), fields), out,
                       error);
    kfree(fields);
    return err;
}

static int put_filter(struct live_event *e, struct filter *filter)
{
    const struct live_attached *old = attached_of(e);
    struct filter *before = old->filter;
    struct live_attached *new;

    if (!filter && !before)
        return 0;
    if (filter && live_scratch_init())
        return -ENOMEM;
    new = attached_new(old->count);
    if (!new)
        return -ENOMEM;
    *new = *old;
    memcpy(new->trigger, old->trigger, old->count * sizeof(struct live_trigger *));
    new->filter = filter;
    live_exchange(e, new);
    if (before)
        filter_free(&live_host, before);
    return 0;
}

static void forget_block(struct live_event *e)
{
    kfree(e->filter_block);
    e->filter_block = NULL;
}

/* refuse_filter - remove the filter, and let the file `filter` show the mistake. */
static int refuse_filter(struct live_event *e, const char *text,
                         const struct filter_error *error)
{
    size_t len = filter_block(text, error, NULL, 0);
    int err = put_filter(e, NULL);

    if (err)
        return err;
    forget_block(e);
    e->filter_block = kmalloc(len + 1);
    if (e->filter_block)
        filter_block(text, error, e->filter_block, len + 1);
    live_error(FILTER_LOG_NAME, filter_error_text(error->id), text, error->column);
    return error->err;
}

/* is_zero - tell whether @text is "0", after any blanks. */
static bool is_zero(const char *text)
{
    return !strcmp(skip_blanks(text), "0");
}

int live_set_filter(struct live_event *e, const char *text, bool of_group)
{
    struct filter_error error = { 0 };
    struct filter *filter = NULL;
    int err = wait_check(__func__);

    if (err)
        return err;
    if (!is_zero(text)) {
        err = parse_filter(e, text, &filter, &error);
        if (err == -ENOMEM)
            return err;
        if (err && of_group)
            error = (struct filter_error){ err, FILTER_BAD_SUBSYS_FILTER_ERROR, 0 };
        if (err)
            return refuse_filter(e, text, &error);
    }
    err = put_filter(e, filter);
    if (err && filter)
        filter_free(&live_host, filter);
    if (!err)
        forget_block(e);
    return err;
}

/* ---- triggers ---- */

static void live_watch_take(struct live_event *e)
{
    struct live_probe *p = live_event_probe(e);

    watch_move(&p->watch, 0);
    p->claim = LIVE_WITHOUT;
}

/* setter_goes - count a trigger set_wprobe of the watch @e out. With the last one the
 * watch loses its address.
 */
static void setter_goes(struct live_event *e)
{
    if (!--e->setters)
        live_watch_take(e);
}

/* trigger_destroy - free a trigger that is not attached. */
static void trigger_destroy(struct live_trigger *t)
{
    if (t->other && t->line->kind == TRIGGER_SET_WATCH)
        setter_goes(t->other);
    if (t->other)
        live_release(t->other);
    if (t->hist) {
        live_window_take(t->hist);
        hist_free(&live_host, t->hist);
    }
    if (t->filter)
        filter_free(&live_host, t->filter);
    trigger_free(&live_host, t->line);
    kfree(t);
}

/* hold_with - keep @e armed for one trigger more, which @new has. If it is not armed yet, it
 * is armed with @new at once: so its probes get their programs before they are jumps.
 */
static int hold_with(struct live_event *e, struct live_attached *new)
{
    const struct live_attached *old = e->attached;
    bool was_armed = e->armed;
    int err;

    if (!was_armed) {
        look_at_triggers(new);
        e->attached = new;
    }
    err = live_hold(e);
    if (was_armed) {
        live_exchange(e, new); /* live_hold() was not refused */
        return 0;
    }
    if (err)
        e->attached = old;
    if (err || old)
        quiesce();
    kfree(err ? new : (void *)(uintptr_t)old);
    return err;
}

static int put_trigger(struct live_event *e, struct live_trigger *t)
{
    const struct live_attached *old = attached_of(e);
    struct live_attached *new;
    unsigned plain = 0;

    if (looks_at_record(t) && live_scratch_init())
        return -ENOMEM;
    new = attached_new(old->count + 1);
    if (!new)
        return -ENOMEM;
    new->filter = old->filter;
    new->count = old->count + 1;
    /* As on Linux, a histogram is placed behind all triggers that are not histograms. */
    while (t->hist && plain < old->count && !old->trigger[plain]->hist)
        plain++;
    memcpy(new->trigger, old->trigger, plain * sizeof(*new->trigger));
    new->trigger[plain] = t;
    memcpy(new->trigger + plain + 1, old->trigger + plain,
           (old->count - plain) * sizeof(*new->trigger));
    return hold_with(e, new);
}

static int take_trigger(struct live_event *e, struct live_trigger *t)
{
    const struct live_attached *old = attached_of(e);
    struct live_attached *new;

    if (t->hist && hist_is_read(t->hist))
        return -EBUSY;
    new = attached_new(old->count);
    if (!new)
        return -ENOMEM;
    new->filter = old->filter;
    for (unsigned i = 0; i < old->count; i++)
        if (old->trigger[i] != t)
            new->trigger[new->count++] = old->trigger[i];
    live_release(
        e); /* first: then no program is made for what is left, and jumps for it */
    live_exchange(e, new);
    trigger_destroy(t);
    return 0;
}

static bool same_filter(const struct live_trigger *a, const struct live_trigger *b)
{
    if (!a->filter || !b->filter)
        return !a->filter && !b->filter;
    return !strcmp(filter_text(a->filter), filter_text(b->filter));
}

static bool is_same(const struct live_trigger *a, const struct live_trigger *b)
{
    if (a->hist || b->hist)
        return a->hist && b->hist && hist_is_same(a->hist, b->hist) && same_filter(a, b);
    return trigger_is_same(a->line, b->line);
}

static struct live_trigger *find_same(const struct live_event *e,
                                      const struct live_trigger *t)
{
    const struct live_attached *there = attached_of(e);

    for (unsigned i = 0; i < there->count; i++)
        if (is_same(there->trigger[i], t))
            return there->trigger[i];
    return NULL;
}

/* ---- histograms ---- */

static void refuse_hist(const struct live_event *e, const char *spec,
                        enum hist_error_id id, unsigned column)
{
    /* The log keeps only a pointer to the name, and an event may be freed before its
     * entry in the log. So the names are kept here, as many as the log has entries.
     */
    static char names[ERROR_LOG_KEPT][2 * DEF_NAME_MAX + 8];
    static unsigned next;
    char *name = names[next++ % ERROR_LOG_KEPT], *command;
    size_t len = strlen(spec) + sizeof("hist:");

    if (id == HIST_NONE_ERROR)
        return;
    command = kmalloc(len);
    if (!command)
        return;
    snprintf(command, len, "hist:%s", spec);
    snprintf(name, sizeof(names[0]), "hist:%s:%s", e->group, e->name);
    live_error(name, hist_error_text(id), command, column);
    kfree(command);
}

static void each_hist(bool (*fn)(struct hist *hist, const char *group, const char *event,
                                 void *arg),
                      void *arg)
{
    for (struct live_event *e = live_event_next(NULL); e; e = live_event_next(e))
        for (unsigned i = 0; i < attached_of(e)->count; i++) {
            struct hist *hist = attached_of(e)->trigger[i]->hist;

            if (hist && !fn(hist, e->group, e->name, arg))
                return;
        }
}

static int make_hist(struct live_event *e, struct live_trigger *t)
{
    const struct hist_world world = { e->group, e->name, each_hist, live_synth_find };
    struct filter_field *fields = kmalloc(FILTER_FIELDS_MAX * sizeof(*fields));
    struct hist_error error = { 0 };
    int err;

    if (!fields)
        return -ENOMEM;
    err = hist_parse(&live_host, t->line->spec, fields, filter_fields(def_of(e), fields),
                     &world, &t->hist, &error);
    kfree(fields);
    if (err)
        refuse_hist(e, t->line->spec, error.id, error.column);
    return err;
}

/* ask_hist - carry out a line that pauses, continues or clears the histogram @there.
 * @there: the event's histogram that @t describes, or NULL
 * Return: 1: done; 0: there is no such histogram, and the caller makes it; a negative
 *         errno.
 */
static int ask_hist(struct live_event *e, const struct live_trigger *t,
                    struct live_trigger *there)
{
    enum hist_request request = hist_request(t->hist);

    if (!there && hist_needs_another(t->hist)) {
        refuse_hist(e, t->line->spec, HIST_TRIGGER_ENOENT_CLEAR_ERROR, 0);
        return -ENOENT;
    }
    if (!there)
        return 0;
    switch (request) {
    case HIST_MAKE:
        refuse_hist(e, t->line->spec, HIST_TRIGGER_EEXIST_ERROR, 0);
        return -EEXIST;
    case HIST_PAUSE:
    case HIST_CONTINUE:
        live_hist_pause(there->hist, request == HIST_PAUSE);
        break;
    case HIST_CLEAR:
        live_hist_clear(there->hist);
        break;
    }
    return 1;
}

struct named_search {
    const char *name;
    struct hist *found;
};

static bool search_named(struct hist *hist, const char *group UNUSED,
                         const char *event UNUSED, void *arg)
{
    struct named_search *search = arg;

    if (!hist_name(hist) || strcmp(hist_name(hist), search->name) != 0)
        return true;
    search->found = hist;
    return false;
}

/* find_named - find a histogram named @name at any event. Return: NULL: there is none. */
static struct hist *find_named(const char *name)
{
    struct named_search search = { name, NULL };

    each_hist(search_named, &search);
    return search.found;
}

/* share_table - share the table of the histogram with the same name, if there is one. */
static int share_table(const struct live_event *e, struct live_trigger *t)
{
    struct hist *named = hist_name(t->hist) ? find_named(hist_name(t->hist)) : NULL;
    int err;

    if (!named)
        return 0;
    err = hist_share(&live_host, t->hist, named);
    if (err)
        refuse_hist(e, t->line->spec, HIST_NAMED_MISMATCH_ERROR,
                    hist_value_column(t->line->spec, "name="));
    return err;
}

/* set_clock - set the clock of all records to that of the histogram, because its times
 * are read from the clock of the buffer.
 */
static int set_clock(const struct live_event *e, const struct live_trigger *t)
{
    const char *clock = hist_clock(t->hist);
    int err = clock ? trace_set_clock(clock, strlen(clock)) : 0;

    if (err == -EINVAL)
        refuse_hist(e, t->line->spec, HIST_SET_CLOCK_FAIL_ERROR,
                    hist_value_column(t->line->spec, "clock="));
    return err;
}

/* ---- watches ---- */

static int refuse_watch(const char *text, const char *at, enum trace_error_id id, int err)
{
    live_error("wprobe_trigger", trace_error_text(id), text, (unsigned)(at - text));
    return err;
}

/* find_field - find the field of a watch's trigger in the records of @e. Return: 0;
 * -ENOMEM; -ENOENT there is none; -ENOEXEC the field cannot hold an address.
 */
static int find_field(const struct live_event *e, struct live_trigger *t)
{
    struct filter_field *fields = kmalloc(FILTER_FIELDS_MAX * sizeof(*fields));
    const struct filter_field *found;
    const char *name = t->line->field;

    if (!fields)
        return -ENOMEM;
    found =
        filter_field_find(fields, filter_fields(def_of(e), fields), name, strlen(name));
    if (found)
        t->field = *found;
    kfree(fields);
    if (!found)
        return -ENOENT;
    return t->field.size == sizeof(uintptr_t) && t->field.kind == FILTER_NUMBER
               ? 0
               : -ENOEXEC;
}

/* prepare_watch - check a trigger of a watch. @text: its line, for the log. */
static int prepare_watch(const struct live_event *e, struct live_trigger *t,
                         const char *text)
{
    const struct live_event *other = live_watch_find(t->line->event);
    const char *name = strchr(text, ':') + 1;
    const char *field = strchr(name, ':');
    int err;

    if (!other)
        return refuse_watch(text, name, TRACE_WPROBE_NOT_FOUND, -ENOENT);
    if (t->line->kind == TRIGGER_SET_WATCH && !t->line->remove && other->armed &&
        !live_is_soft(other))
        return refuse_watch(text, name, TRACE_WPROBE_BUSY, -EBUSY);
    err = t->line->field ? find_field(e, t) : 0;
    if (err == -ENOENT)
        return refuse_watch(text, field + 1, TRACE_NO_EVENT_FIELD, err);
    if (err == -ENOEXEC)
        return refuse_watch(text, field + 1, TRACE_WPROBE_BAD_FIELD, err);
    return err;
}

static bool is_of_watch(const struct live_trigger *t)
{
    return t->line->kind == TRIGGER_SET_WATCH || t->line->kind == TRIGGER_CLEAR_WATCH;
}

static int hold_watch(struct live_trigger *t)
{
    struct live_event *other = live_watch_find(t->line->event);
    bool sets = t->line->kind == TRIGGER_SET_WATCH;
    int err;

    other->setters += sets;
    if (sets && other->setters == 1 && other->armed)
        live_watch_take(other);
    err = live_hold(other);
    if (err)
        other->setters -= sets;
    else
        t->other = other;
    return err;
}

/* ---- a line ---- */

static bool switches_event(enum trigger_kind kind)
{
    return kind >= TRIGGER_ENABLE_EVENT && kind <= TRIGGER_DISABLE_HIST;
}

/* live_prepare - check @t, and make its histogram and its filter. Nothing is attached yet. */
static int live_prepare(struct live_event *e, struct live_trigger *t, const char *text)
{
    struct filter_error error = { 0 };
    int err;

    if (is_of_watch(t)) {
        err = prepare_watch(e, t, text);
        if (err)
            return err;
    }
    if (switches_event(t->line->kind) && !live_event_find(t->line->group, t->line->event))
        return -EINVAL;
    if (t->line->kind == TRIGGER_HIST) {
        err = make_hist(e, t);
        if (err)
            return err;
    }
    if (!t->line->filter)
        return 0;
    err = parse_filter(e, t->line->filter, &t->filter, &error);
    if (err && err != -ENOMEM) /* Linux 6.12 notes this error, Linux 6.1 does not */
        live_error(FILTER_LOG_NAME, filter_error_text(error.id), t->line->filter,
                   error.column);
    return err;
}

static int add_trigger(struct live_event *e, struct live_trigger *t)
{
    int err;

    if (t->line->kind == TRIGGER_SNAPSHOT && snapshot_prepare())
        return -ENOMEM;
    if (switches_event(t->line->kind)) {
        struct live_event *other = live_event_find(t->line->group, t->line->event);

        err = live_hold(other);
        if (err)
            return err;
        t->other = other;
    }
    if (is_of_watch(t)) {
        err = hold_watch(t);
        if (err)
            return err;
    }
    return put_trigger(e, t);
}

/* live_apply - carry out the line @text, parsed as @t. Return: 1: @t is attached; 0: the line
 * is done and @t is not needed any more; a negative errno.
 */
static int live_apply(struct live_event *e, struct live_trigger *t, const char *text)
{
    struct live_trigger *there;
    int err = live_prepare(e, t, text);

    if (err)
        return err;
    there = find_same(e, t);
    if (t->line->remove && t->hist) { /* which may read a variable of @there */
        hist_free(&live_host, t->hist);
        t->hist = NULL;
    }
    if (t->line->remove)
        return there ? take_trigger(e, there) : 0;
    if (t->hist) {
        err = ask_hist(e, t, there);
        if (err)
            return err < 0 ? err : 0;
        err = share_table(e, t);
        if (!err)
            err = set_clock(e, t);
        if (err)
            return err;
    } else if (there) {
        return -EEXIST;
    }
    if (t->hist)
        live_window_give(t->hist);
    err = add_trigger(e, t);
    if (!err && t->other)
        live_program_update(&t->other, 1, false);
    return err ? err : 1;
}

int live_trigger_write(struct live_event *e, const char *text)
{
    struct live_trigger *t;
    int err = wait_check(__func__);

    if (err)
        return err;
    t = kzalloc(sizeof(*t));
    if (!t)
        return -ENOMEM;
    err = trigger_parse(&live_host, text, &t->line);
    if (err) {
        kfree(t);
        return err;
    }
    err = live_apply(e, t, text);
    if (err > 0)
        return 0;
    trigger_destroy(t);
    return err;
}

/* goes_with_hists - tell whether live_clear_hists() removes @t. As on Linux, triggers
 * that switch histograms are removed as well.
 */
static bool goes_with_hists(const struct live_trigger *t)
{
    return t->hist || t->line->kind == TRIGGER_ENABLE_HIST ||
           t->line->kind == TRIGGER_DISABLE_HIST;
}

int live_clear_hists(struct live_event *e)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    for (unsigned i = 0; i < attached_of(e)->count;) {
        struct live_trigger *t = e->attached->trigger[i];

        if (!goes_with_hists(t) || take_trigger(e, t))
            i++;
    }
    return 0;
}
