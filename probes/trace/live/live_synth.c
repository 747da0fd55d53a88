/* live_synth.c - owns the synthetic events, events/synthetic/NAME. They have no place: an
 * action of a histogram lets one happen, within a hit of the histogram's event.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/wait_check.h"
#include "probes/trace/language/synth.h"
#include "probes/trace/live/live.h"

#include <string.h>

/* Locks:  the trace lock; a hit reads @probe, which is immutable. */
struct live_synth {
    struct list link;
    struct hist_synth seen;
    struct live_probe *probe;
};

static struct list synths = LIST_INIT(synths);

struct live_probe *live_synth_probe(const struct hist_synth *synth)
{
    return CONTAINER_OF(synth, struct live_synth, seen)->probe;
}

struct live_probe *live_synth_next(const struct live_probe *p)
{
    struct live_synth *s;
    bool is_next = !p;

    list_for_each(s, &synths, link) {
        if (is_next)
            return s->probe;
        is_next = s->probe == p;
    }
    return NULL;
}

struct hist_synth *live_synth_find(const char *name, size_t len)
{
    struct live_synth *s;

    list_for_each(s, &synths, link)
        if (str_is(s->seen.name, name, len))
            return &s->seen;
    return NULL;
}

/* ---- making ---- */

static int refuse_synth_line(const char *line, enum synth_error_id id, unsigned column)
{
    if (id != SYNTH_NONE_ERROR)
        live_error(SYNTH_LOG_NAME, synth_error_text(id), line, column);
    return -EINVAL;
}

static void fill_seen(struct hist_synth *seen, const struct def *def)
{
    seen->name = def->event;
    seen->field_count = def->arg_count;
    for (unsigned i = 0; i < def->arg_count; i++)
        if (def->args[i].type->kind == FETCH_STRING)
            seen->texts |= UINT32_C(1) << i;
}

static int add_synth(struct def *def)
{
    struct live_synth *s = kzalloc(sizeof(*s));
    struct live_probe *p = kzalloc(sizeof(*p));
    int err = s && p ? 0 : -ENOMEM;

    if (!err) {
        p->def = def;
        list_init(&p->all);
        list_init(&p->sibling);
        s->probe = p;
        fill_seen(&s->seen, def);
        err = live_publish(p);
    }
    if (err) {
        kfree(p);
        kfree(s);
        return err;
    }
    list_append(&synths, &s->link);
    return 0;
}

static int define_synth(const char *line)
{
    struct synth_error error;
    struct def *def;
    int err = synth_parse(&live_host, line, &def, &error);

    if (err == -EINVAL)
        return refuse_synth_line(line, error.id, error.column);
    if (err)
        return err;
    if (live_event_find(def->group, def->event)) {
        refuse_synth_line(line, SYNTH_EVENT_EXISTS_ERROR, 0);
        err = -EEXIST;
    } else {
        err = add_synth(def);
    }
    if (err)
        def_free(&live_host, def);
    return err;
}

/* ---- deleting ---- */

static int remove_synth(struct live_synth *s)
{
    int err = s->seen.users ? -EBUSY : live_withdraw(s->probe);

    if (err)
        return err;
    list_remove(&s->link);
    kfree(s);
    return 0;
}

static int delete_synth(const char *line)
{
    char name[DEF_NAME_MAX];
    struct hist_synth *seen;

    if (synth_name(line, name))
        return refuse_synth_line(line, SYNTH_BAD_NAME_ERROR, 0);
    seen = live_synth_find(name, strlen(name));
    return seen ? remove_synth(CONTAINER_OF(seen, struct live_synth, seen)) : -ENOENT;
}

int live_synth_clear(void)
{
    int err = 0;

    while (!err && !list_empty(&synths))
        err = remove_synth(list_first(&synths, struct live_synth, link));
    return err;
}

int live_synth_command(const char *line)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    line = skip_blanks(line);
    if (!*line)
        return 0;
    return *line == '!' ? delete_synth(line) : define_synth(line);
}
