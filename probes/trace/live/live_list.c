/* live_list.c - makes probes and events from lines, and deletes them.
 *
 * A line is checked completely before the first change that hits or other threads can
 * see.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/hash.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/debug/params.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"
#include "kernel/sync/wait_check.h"
#include "kernel/time/clock.h"
#include "probes/core/platform.h"
#include "probes/core/registry.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/language/def_mark.h"
#include "probes/trace/language/error.h"
#include "probes/trace/live/live.h"

#include <stdio.h>
#include <string.h>

static struct list lines = LIST_INIT(lines);
static struct list events = LIST_INIT(events);
static struct live_event *buckets[256]; /* finds an event by name among thousands */
static int (*add_files)(struct live_event *e), (*remove_files)(struct live_event *e);

INIT void live_set_files(int (*add)(struct live_event *e),
                         int (*remove)(struct live_event *e))
{
    add_files = add;
    remove_files = remove;
}

/* ---- the functions of struct def_host ---- */

#define SYMBOL_MAX 512 /* bytes of a name, NUL included */

/* module_symbol - find a symbol of a module. Return: 1; -ENOENT: it is not there now, but
 * may be loaded with its module later.
 */
static int module_symbol(const char *module, size_t module_len, const char *name,
                         size_t len, uintptr_t *addr)
{
    struct plat_symbol symbol;
    char text[SYMBOL_MAX];

    if (module_len + len + 2 > sizeof(text))
        return -ENOENT;
    snprintf(text, sizeof(text), "%.*s:%.*s", (int)module_len, module, (int)len, name);
    if (plat_symbol_find(text, &symbol))
        return -ENOENT;
    *addr = symbol.start;
    return 1;
}

static int host_symbol(const char *module, size_t module_len, const char *name,
                       size_t len, uintptr_t *addr)
{
    char text[SYMBOL_MAX];
    struct ksym sym;
    bool in_image = false;
    size_t iter = 0;
    int found = 0;

    if (module)
        return module_symbol(module, module_len, name, len, addr);
    if (len >= sizeof(text))
        return 0;
    memcpy(text, name, len);
    text[len] = '\0';
    /* If the image has the name, modules are not searched. */
    while (ksyms_next(text, &iter, &sym) && !(sym.module && in_image)) {
        in_image |= !sym.module;
        if (!found++)
            *addr = sym.start;
    }
    return found;
}

static bool host_is_entry(uintptr_t addr)
{
    struct ksym sym;

    return !ksyms_at(addr, &sym) && !sym.offset && (sym.type == 'T' || sym.type == 't');
}

static size_t host_param(uintptr_t addr, unsigned i, const char **name)
{
    struct param param;

    if (!params_get(addr, i, &param))
        return 0;
    *name = param.name;
    return param.name_len;
}

static bool host_function(uintptr_t addr, uintptr_t *start, uintptr_t *end)
{
    struct ksym sym;

    if (ksyms_at(addr, &sym))
        return false;
    *start = sym.start;
    *end = sym.start + sym.size;
    return true;
}

static bool host_param_is_text(uintptr_t addr, unsigned i)
{
    static const char text[] = "string";
    struct param param;

    return params_get(addr, i, &param) && param.type_len == sizeof(text) - 1 &&
           !memcmp(param.type, text, param.type_len);
}

const struct def_host live_host = {
    .function = host_function,
    .cpus = cpu_count,
    .symbol = host_symbol,
    .is_entry = host_is_entry,
    .param = host_param,
    .param_is_text = host_param_is_text,
    .alloc = kmalloc,
    .free = kfree,
    .entry_args = true,
};

/* ---- the log of errors ---- */

struct error_log live_errors;

void live_error(const char *subsystem, const char *text, const char *command,
                unsigned column)
{
    error_log_add(&live_errors, clock_ns(), subsystem, text, command, column);
}

static int live_refuse(const char *line, const struct trace_error *error)
{
    char *joined;

    if (error->id == TRACE_NO_ERROR)
        return error->err;
    joined = kmalloc(DEF_LINE_MAX);
    if (!joined)
        return error->err;
    def_join(line, joined, DEF_LINE_MAX);
    live_error(*line == 'w' ? "wprobe" : "trace_kprobe", trace_error_text(error->id),
               joined, error->column);
    kfree(joined);
    return error->err;
}

/* ---- lists ---- */

struct live_probe *live_probe_next(const struct live_probe *p)
{
    struct list *next = p ? p->all.next : lines.next;

    return next == &lines ? NULL : list_entry(next, struct live_probe, all);
}

struct live_event *live_event_next(const struct live_event *e)
{
    struct list *next = e ? e->link.next : events.next;

    return next == &events ? NULL : list_entry(next, struct live_event, link);
}

/* The places of the events and of their histograms, for probes/trace/host/dead_hist.py,
 * which reads the memory of a kernel that has crashed. Its list of names has the order of
 * this table.
 */
extern const uint64_t live_layout[];
USED const uint64_t live_layout[] = {
    (uintptr_t)&events,
    offsetof(struct list, next),
    offsetof(struct live_event, link),
    offsetof(struct live_event, group),
    offsetof(struct live_event, name),
    DEF_NAME_MAX,
    offsetof(struct live_event, attached),
    offsetof(struct live_attached, count),
    offsetof(struct live_attached, trigger),
    offsetof(struct live_trigger, hist),
};

/* event_bucket - return the bucket of @name. It may hold events with other names as well. */
static struct live_event **event_bucket(const char *name)
{
    return &buckets[hash_name(name, strlen(name)) % ARRAY_LEN(buckets)];
}

struct live_event *live_event_find(const char *group, const char *name)
{
    struct live_event *e = *event_bucket(name);

    while (e && (strcmp(e->name, name) != 0 || strcmp(e->group, group) != 0))
        e = e->next;
    return e;
}

struct live_event *live_watch_find(const char *name)
{
    struct live_event *found = live_event_find(DEF_WATCH_GROUP, name), *e = NULL;

    while (!found && (e = live_event_next(e)) != NULL)
        if (!strcmp(e->name, name))
            found = e;
    return found && live_event_probe(found)->def->is_watch ? found : NULL;
}

/* ---- a probe ---- */

#define MAXACTIVE_SHOWN_MIN 10 /* Linux's least MAXACTIVE for a line without a number */

/* maxactive_shown - return the MAXACTIVE that a line without a number is listed with. It
 * is the number that Linux would have chosen, but it is no limit here: see docs/trace.md.
 */
static unsigned maxactive_shown(void)
{
    unsigned both = 2 * cpu_count();

    return both > MAXACTIVE_SHOWN_MIN ? both : MAXACTIVE_SHOWN_MIN;
}

/* is_nowhere - tell whether @def has an address at which there is no code. Linux assumes
 * that a module will be loaded there, so the probe is listed, but is never hit.
 */
static bool is_nowhere(const struct def *def)
{
    struct plat_symbol function;
    struct ksym sym;

    return !def->is_watch && !def->symbol && def->addr &&
           !plat_text_contains(def->addr, 1) && ksyms_at(def->addr, &sym) &&
           plat_symbol_at(def->addr, &function);
}

static struct live_probe *probe_new(struct def *def)
{
    struct live_probe *p = kzalloc(sizeof(*p));

    if (!p)
        return NULL;
    p->def = def;
    list_init(&p->all);
    list_init(&p->sibling);
    if (def->is_return && def->maxactive != maxactive_shown())
        p->rp.maxactive = (int)def->maxactive;
    if (def->is_return && !def->maxactive && def->addr && !is_nowhere(def))
        def->maxactive = maxactive_shown();
    live_probe_fill(p);
    return p;
}

static void probe_free(struct live_probe *p)
{
    def_free(&live_host, p->def);
    kfree(p);
}

/* linux_errno - return Linux's errno for a place where no probe is possible: -EINVAL. */
static int linux_errno(const struct probe_reject *why)
{
    switch (why->err) {
    case -EPERM:
    case -ENOENT:
    case -EFAULT:
        return -EINVAL;
    default:
        return why->err;
    }
}

/* watch_is_possible - check a watch. It gets its debug register later, when the event is
 * enabled.
 */
static int watch_is_possible(const struct live_probe *p, const char *line)
{
    enum watch_reason why = watch_check(&p->watch);
    struct trace_error error;

    if (!why)
        return 0;
    log_warn("trace: %s: %s", line, watch_reason_text(why));
    def_refused(line, watch_reason_errno(why), &error);
    return live_refuse(line, &error);
}

/* may_come - tell whether MODULE of @symbol, MODULE:NAME, may be loaded later. When it is
 * there, it has the symbol or it has not.
 */
static bool may_come(const char *symbol)
{
    size_t len = strcspn(symbol, ":");
    const char *name;

    for (size_t i = 0; (name = module_name_get(i)) != NULL; i++)
        if (str_is(name, symbol, len))
            return false;
    return true;
}

/* is_module_def - is the place of @def the name of a module's symbol? The module may be
 * loaded later, and more than once, so the engine gets the name.
 */
static bool is_module_def(const struct def *def)
{
    return def->symbol &&
           (strchr(def->symbol, ':') || module_text_contains(def->addr, 1));
}

/* probe_register - register @p, enabled if its event is armed. @line: for the log. */
static int probe_register(struct live_probe *p, const char *line)
{
    struct probe_reject why = { 0 };
    struct trace_error error;
    int err;

    if (p->def->is_watch)
        return watch_is_possible(p, line);
    if (is_nowhere(p->def)) {
        log_warn("trace: %s: nothing is at this address, so nothing will hit it", line);
        return 0;
    }
    p->rp.kp.addr = p->def->addr;
    p->rp.kp.flags = p->event->armed ? 0 : KPROBE_FLAG_DISABLED;
    if (is_module_def(p->def)) {
        p->rp.kp.addr = 0;
        p->rp.kp.symbol_name = p->def->symbol;
        p->rp.kp.offset = p->def->offset;
        p->rp.kp.flags |= may_come(p->def->symbol) ? KPROBE_FLAG_PENDING : 0;
    }
    err = p->def->is_return ? register_kretprobe_why(&p->rp, &why)
                            : register_kprobe_why(&p->rp.kp, &why);
    if (!err) {
        p->is_registered = true;
        return 0;
    }
    if (why.err)
        log_warn("trace: %s: %s", line, why.why);
    def_refused(line, why.err ? linux_errno(&why) : err, &error);
    return live_refuse(line, &error);
}

static int probes_unregister(struct live_probe *const *probes, size_t count)
{
    struct kprobe **plain = kmalloc((count + 1) * sizeof(*plain));
    struct kretprobe **returns = kmalloc((count + 1) * sizeof(*returns));
    size_t plains = 0, returning = 0;
    int err = plain && returns ? 0 : -ENOMEM;

    for (size_t i = 0; !err && i < count; i++) {
        if (!probes[i]->is_registered)
            continue;
        if (probes[i]->def->is_return)
            returns[returning++] = &probes[i]->rp;
        else
            plain[plains++] = &probes[i]->rp.kp;
    }
    if (plains)
        err = unregister_kprobes(plain, plains);
    if (!err && returning)
        err = unregister_kretprobes(returns, returning);
    kfree(plain);
    kfree(returns);
    return err;
}

/* ---- an event ---- */

static void event_fill(struct live_event *e, const struct def *def)
{
    strlcpy(e->group, def->group, sizeof(e->group));
    strlcpy(e->name, def->event, sizeof(e->name));
    list_init(&e->probes);
    list_init(&e->link);
    e->event = (struct event){
        .group = e->group,
        .name = e->name,
        .shape = def->is_synth    ? EVENT_SYNTH
                 : def->is_return ? EVENT_RETURN
                                  : EVENT_PROBE,
        .arg_count = def->arg_count,
        .args = def->args,
    };
    e->fixed = (unsigned)event_head(&e->event) + def->args_size;
    e->has_strings = def->has_strings;
}

static void event_free(struct live_event *e)
{
    kfree(e->filter_block);
    kfree(e);
}

/* event_publish - give the event its number and files, and enter it in the lists. */
static int event_publish(struct live_event *e)
{
    int err = event_add(&e->event, buffer_now());

    if (err)
        return err;
    err = add_files(e);
    if (err) {
        event_remove(&e->event);
        return err;
    }
    list_insert(&events, &e->link);
    e->next = *event_bucket(e->name);
    *event_bucket(e->name) = e;
    return 0;
}

/* event_hide - take the event out of all lists. */
static void event_hide(struct live_event *e)
{
    struct live_event **at = event_bucket(e->name);

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    list_remove(&e->link);
    event_remove(&e->event);
}

static void link_probe(struct live_probe *p)
{
    list_append(&lines, &p->all);
    list_append(&p->event->probes, &p->sibling);
}

/* mark_new - make the probe of a marker. No line belongs to it, and nothing is
 * registered.
 */
static struct live_probe *mark_new(struct def *def, const char *format)
{
    struct live_probe *p = kzalloc(sizeof(*p));

    if (!p)
        return NULL;
    p->def = def;
    p->mark = kmalloc(strlen(format) + 1);
    if (!p->mark) {
        kfree(p);
        return NULL;
    }
    memcpy(p->mark, format, strlen(format) + 1);
    list_init(&p->all);
    list_init(&p->sibling);
    return p;
}

int live_publish(struct live_probe *p)
{
    struct live_event *e = kzalloc(sizeof(*e));
    int err;

    if (!e)
        return -ENOMEM;
    event_fill(e, p->def);
    p->event = e;
    list_append(&e->probes, &p->sibling);
    err = event_publish(e);
    if (err)
        event_free(e);
    return err;
}

int live_add_mark(const char *name, const char *format)
{
    struct live_probe *p;
    struct def *def;
    int err;

    if (live_event_find(DEF_MARK_GROUP, name))
        return -EEXIST;
    err = def_of_mark(&live_host, name, format, &def);
    if (err)
        return err;
    p = mark_new(def, format);
    err = p ? live_publish(p) : -ENOMEM;
    if (!err)
        return 0;
    if (p)
        kfree(p->mark);
    kfree(p);
    def_free(&live_host, def);
    return err;
}

/* is_owned - tell whether the name of @def belongs to an event that no line has made. */
static bool is_owned(const struct def *def, const struct live_event *there)
{
    const struct event *fixed[] = { &event_print, &event_stack };

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (!strcmp(def->group, fixed[i]->group) && !strcmp(def->event, fixed[i]->name))
            return true;
    return there && (live_mark(there) || live_event_probe(there)->def->is_synth);
}

static int define_new(struct live_probe *p, const char *line)
{
    struct live_event *e;
    int err;

    e = kzalloc(sizeof(*e));
    if (!e)
        return -ENOMEM;
    event_fill(e, p->def);
    p->event = e;
    err = probe_register(p, line);
    if (!err) {
        err = event_publish(e);
        if (err)
            probes_unregister(&p, 1);
    }
    if (err) {
        event_free(e);
        return err;
    }
    link_probe(p);
    return 0;
}

/* may_be_there - may a probe of @def's place be there already? The name in a module may have
 * another address. Of thousands of places the engine knows it at once.
 */
static bool may_be_there(const struct def *def)
{
    return registry_find(def->addr) || is_nowhere(def) || is_module_def(def);
}

/* define_more - make @p one more probe of @e. All probes of @e are of one kind, so the first
 * is asked, and then those that may be the same.
 */
static int define_more(struct live_probe *p, struct live_event *e, const char *line)
{
    struct trace_error error;
    const struct live_probe *other;
    int err = def_append(p->def, live_event_probe(e)->def, line, &error);

    if (!err && may_be_there(p->def))
        list_for_each(other, &e->probes, sibling)
            err = err ? err : def_append(p->def, other->def, line, &error);
    if (err)
        return live_refuse(line, &error);
    p->event = e;
    err = probe_register(p, line);
    if (!err)
        link_probe(p);
    return err;
}

static int define(const char *line)
{
    struct trace_error error, taken = { .err = -EEXIST, .id = TRACE_EVENT_EXIST };
    struct live_event *e;
    struct live_probe *p;
    struct def *def;
    int err = def_parse(&live_host, line, &def, &error);

    if (err)
        return live_refuse(line, &error);
    if (!def)
        return 0;
    p = probe_new(def);
    if (!p) {
        def_free(&live_host, def);
        return -ENOMEM;
    }
    e = live_event_find(def->group, def->event);
    if (is_owned(def, e))
        err = live_refuse(line, &taken);
    else
        err = e ? define_more(p, e, line) : define_new(p, line);
    if (err)
        probe_free(p);
    return err;
}

/* ---- deleting ---- */

/* detach - free the filter of @e. It has no trigger, because a trigger keeps an event
 * armed.
 */
static void detach(struct live_event *e)
{
    struct live_attached *old = (struct live_attached *)(uintptr_t)e->attached;

    e->attached = NULL;
    if (old && old->filter)
        filter_free(&live_host, old->filter);
    kfree(old);
}

/* probe_forget - free a probe that is not registered any more. With its last probe an
 * event is freed as well. If probes are left, the event now uses the arguments of one of
 * them: those of the freed probe are gone.
 */
static void probe_forget(struct live_probe *p)
{
    struct live_event *e = p->event;

    list_remove(&p->all);
    list_remove(&p->sibling);
    if (list_empty(&e->probes)) {
        event_hide(e);
        event_free(e);
    } else {
        e->event.args = live_event_probe(e)->def->args;
    }
    probe_free(p);
}

int live_withdraw(struct live_probe *p)
{
    const struct live_event *e = p->event;

    if (e->armed || e->attached || (e->files && remove_files(p->event)))
        return -EBUSY;
    kfree(p->mark);
    probe_forget(p);
    return 0;
}

/* ends_with - tell whether all probes of @e are among the @count probes of @gone. */
static bool ends_with(const struct live_event *e, struct live_probe *const *gone,
                      size_t count)
{
    const struct live_probe *p;
    size_t found = 0, all = 0;

    list_for_each(p, &e->probes, sibling)
        all++;
    for (size_t i = 0; i < count; i++)
        found += gone[i]->event == e;
    return found == all;
}

/* live_show - make the missing files of these events again. Without memory: log a warning. */
static void live_show(struct live_probe *const *probes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!probes[i]->event->files && add_files(probes[i]->event))
            log_warn("trace: no memory for the files of %s", probes[i]->event->name);
}

/* hide - remove the files of each event that loses its last probe. Return: 0; -EBUSY: a
 * file is open, and no files are removed.
 */
static int hide(struct live_probe *const *gone, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct live_event *e = gone[i]->event;

        if (!e->files || !ends_with(e, gone, count) || !remove_files(e))
            continue;
        live_show(gone, i);
        return -EBUSY;
    }
    return 0;
}

/* before_busy - return how many of @gone, from the first on, can be deleted. An armed
 * event keeps its last probe, and the deletion stops there.
 */
static size_t before_busy(struct live_probe *const *gone, size_t count)
{
    size_t i = 0;

    while (i < count &&
           !(gone[i]->event->armed && ends_with(gone[i]->event, gone, i + 1)))
        i++;
    return i;
}

/* delete_all - delete all probes of @gone, or none. */
static int delete_all(struct live_probe *const *gone, size_t count)
{
    int err = hide(gone, count);

    if (err)
        return err;
    for (size_t i = 0; i < count; i++)
        live_program_drop(gone[i]);
    err = probes_unregister(gone, count);
    if (err) {
        live_show(gone, count);
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        if (!gone[i]->event->files)
            detach(gone[i]->event);
        probe_forget(gone[i]);
    }
    return 0;
}

/* delete_those - delete the probes that @wanted matches. As on Linux, the deletion stops
 * at the first probe that is busy. With @wanted NULL: delete the probes of all lines, or
 * none.
 * Return: 0; -ENOENT no probe matches; -EBUSY a probe is busy; -ENOMEM.
 */
static int delete_those(const struct def_delete *wanted)
{
    struct live_probe **gone, *p = NULL;
    size_t count = 0, free_ones;
    int err = 0;

    while ((p = live_probe_next(p)) != NULL)
        count++;
    gone = kmalloc((count + 1) * sizeof(struct live_probe *));
    if (!gone)
        return -ENOMEM;
    count = 0;
    while ((p = live_probe_next(p)) != NULL)
        if (!wanted || def_delete_matches(wanted, p->def))
            gone[count++] = p;
    free_ones = before_busy(gone, count);
    if (free_ones == count || wanted)
        err = delete_all(gone, free_ones);
    if (!err && free_ones < count)
        err = -EBUSY;
    if (!err && !count && wanted)
        err = -ENOENT;
    kfree(gone);
    return err;
}

int live_clear(void)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    return delete_those(NULL);
}

static int delete_line(const char *line)
{
    struct def_delete *wanted = kmalloc(sizeof(*wanted));
    int err;

    if (!wanted)
        return -ENOMEM;
    err = def_delete_parse(line, wanted);
    if (!err)
        err = delete_those(wanted);
    kfree(wanted);
    return err;
}

int live_command(const char *line)
{
    int err = wait_check(__func__);

    if (err)
        return err;
    return def_is_delete(line) ? delete_line(line) : define(line);
}
