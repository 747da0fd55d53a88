/* events.c - makes events/GROUP/EVENT/ and events/GROUP/ with their files, and set_event
 * and available_events.
 */
#include "probes/trace/files/events.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/log.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"
#include "probes/trace/files/tracefs.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"
#include "probes/trace/ring/format.h"

#include <ctype.h>
#include <string.h>

/* ---- written texts ---- */

/* copy_written - copy a written text as a string, without the blanks at its end.
 * Return: NULL: no memory.
 */
static char *copy_written(const char *text, size_t len)
{
    char *copy;

    len = cut_blanks(text, len);
    copy = kmalloc(len + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

#define WRITTEN_MAX 4096 /* bytes of a written filter or trigger, with a NUL */

/* write_copy - call @fn with the written text. Return: as vfs_file.write. */
static long write_copy(const char *text, size_t len, void *priv,
                       int (*fn)(void *priv, const char *text))
{
    char *copy;
    int err;

    if (len >= WRITTEN_MAX)
        return -EINVAL;
    copy = copy_written(text, len);
    if (!copy)
        return -ENOMEM;
    trace_lock();
    err = fn(priv, copy);
    trace_unlock();
    kfree(copy);
    return err ? err : (long)len;
}

/* ---- one event ---- */

static int enable_show(struct seq *s, void *priv)
{
    const struct live_event *e = priv;
    bool off, soft;

    trace_lock();
    off = READ_ONCE(e->soft_disabled);
    soft = live_is_soft(e) || off;
    seq_printf(s, "%d%s\n", e->armed && !off, soft ? "*" : "");
    trace_unlock();
    return 0;
}

static long enable_write(void *priv, const char *text, size_t len)
{
    struct live_event *e = priv;
    bool on;
    int err = trace_switch(text, len, &on);

    if (err)
        return err;
    trace_lock();
    err = live_switch(&e, 1, on);
    trace_unlock();
    return err ? err : (long)len;
}

static int filter_show(struct seq *s, void *priv)
{
    const struct live_event *e = priv;

    trace_lock();
    if (e->attached && e->attached->filter)
        seq_printf(s, "%s\n", filter_text(e->attached->filter));
    else
        seq_printf(s, "%s\n", e->filter_block ? e->filter_block : "none");
    trace_unlock();
    return 0;
}

static int set_filter(void *priv, const char *text)
{
    return live_set_filter(priv, text, false);
}

static long filter_write(void *priv, const char *text, size_t len)
{
    return write_copy(text, len, priv, set_filter);
}

static int format_show(struct seq *s, void *priv)
{
    const struct live_event *e = priv;
    struct print p;

    trace_lock();
    trace_printer(&p, s);
    format_event(&p, &e->event);
    trace_unlock();
    return 0;
}

static int id_show(struct seq *s, void *priv)
{
    seq_printf(s, "%u\n", ((const struct live_event *)priv)->event.id);
    return 0;
}

/* ---- triggers and histograms ---- */

static void print_trigger(struct seq *s, const struct live_trigger *t)
{
    const char *filter = t->line->filter;

    if (t->hist)
        PRINT_SIZED(s, hist_print_spec(t->hist, filter, sized_buf, sized_size));
    else
        PRINT_SIZED(s, trigger_print(t->line, sized_buf, sized_size));
    seq_puts(s, "\n");
}

static int trigger_show(struct seq *s, void *priv)
{
    const struct live_event *e = priv;
    const struct live_attached *there;

    trace_lock();
    there = e->attached;
    for (unsigned i = 0; there && i < there->count; i++)
        print_trigger(s, there->trigger[i]);
    if (!there || !there->count)
        seq_puts(s, TRIGGER_NONE);
    trace_unlock();
    return 0;
}

static int set_trigger(void *priv, const char *text)
{
    return live_trigger_write(priv, text);
}

static long trigger_write(void *priv, const char *text, size_t len)
{
    return write_copy(text, len, priv, set_trigger);
}

static int trigger_truncate(void *priv)
{
    int err;

    trace_lock();
    err = live_clear_hists(priv);
    trace_unlock();
    return err;
}

static void print_hist(struct seq *s, const struct live_trigger *t)
{
    struct hist *hist = live_hist_view(t->hist);
    uint32_t *order = hist ? kmalloc(hist_size(hist) * sizeof(*order)) : NULL;
    size_t count = order ? hist_sorted(hist, order) : 0;

    if (!order) {
        s->err = -ENOMEM;
        live_hist_view_free(hist);
        return;
    }
    seq_puts(s, "# event histogram\n#\n# trigger info: ");
    print_trigger(s, t);
    seq_puts(s, "#\n\n");
    for (size_t i = 0; i < count && !s->err; i++)
        PRINT_SIZED(s,
                    hist_print_entry(hist, order[i], ksyms_text, sized_buf, sized_size));
    PRINT_SIZED(s, hist_print_totals(hist, sized_buf, sized_size));
    kfree(order);
    live_hist_view_free(hist);
}

static int hist_show(struct seq *s, void *priv)
{
    const struct live_event *e = priv;
    unsigned shown = 0;
    bool was_own = thread_set_own_work(true); /* else the table could grow meanwhile */

    trace_lock();
    for (unsigned i = 0; e->attached && i < e->attached->count; i++) {
        if (!e->attached->trigger[i]->hist)
            continue;
        if (shown++)
            seq_puts(s, "\n\n");
        print_hist(s, e->attached->trigger[i]);
    }
    trace_unlock();
    thread_set_own_work(was_own);
    return 0;
}

static const struct vfs_file event_files[] = {
    { .name = "enable", .mode = 0640, .show = enable_show, .write = enable_write },
    { .name = "filter", .mode = 0640, .show = filter_show, .write = filter_write },
    { .name = "format", .mode = 0440, .show = format_show, .write = tracefs_read_only },
    { .name = "id", .mode = 0440, .show = id_show, .write = tracefs_read_only },
    { .name = "trigger",
      .mode = 0640,
      .show = trigger_show,
      .write = trigger_write,
      .truncate = trigger_truncate },
    { .name = "hist", .mode = 0440, .show = hist_show, .write = tracefs_read_only },
};

/* ---- groups ---- */

#define GROUP_FILES 2

struct group {
    struct list link;
    struct tracefs_dir *dir;
    struct vfs_file files[GROUP_FILES];
    unsigned count; /* events of the group that have files */
    char name[DEF_NAME_MAX];
};

static struct list groups = LIST_INIT(groups);
static struct tracefs_dir *events_dir;

struct event_dir {
    struct group *group;
    struct tracefs_dir *dir;
    struct vfs_file files[ARRAY_LEN(event_files)];
};

static bool is_event_of(const struct live_event *e, const struct group *g)
{
    return !g || !strcmp(e->group, g->name);
}

static int group_enable_show(struct seq *s, void *priv)
{
    const struct live_event *e = NULL;
    unsigned seen = 0;

    trace_lock();
    while ((e = live_event_next(e)) != NULL)
        if (is_event_of(e, priv))
            seen |= e->armed ? 2 : 1;
    trace_unlock();
    seq_printf(s, "%c\n", "001X"[seen]);
    return 0;
}

/* switch_matching - switch all events that match. Return: -EINVAL: no event matches. */
static int switch_matching(bool (*matches)(const struct live_event *e, const void *arg),
                           const void *arg, bool on)
{
    struct live_event *e = NULL, **found;
    size_t count = 0;
    int err;

    while ((e = live_event_next(e)) != NULL)
        count++;
    found = kmalloc((count + 1) * sizeof(struct live_event *));
    if (!found)
        return -ENOMEM;
    count = 0;
    while ((e = live_event_next(e)) != NULL)
        if (matches(e, arg))
            found[count++] = e;
    err = count ? live_switch(found, count, on) : -EINVAL;
    kfree(found);
    return err;
}

static bool is_of_group(const struct live_event *e, const void *group)
{
    return is_event_of(e, group);
}

static long group_enable_write(void *priv, const char *text, size_t len)
{
    bool on;
    int err = trace_switch(text, len, &on);

    if (err)
        return err;
    trace_lock();
    err = switch_matching(is_of_group, priv, on);
    trace_unlock();
    /* Writing events/enable never fails on Linux, where events always exist. */
    if (err == -EINVAL && !priv)
        err = 0;
    return err ? err : (long)len;
}

/* group_filter_show - show Linux's text, which does not depend on the filter. */
static int group_filter_show(struct seq *s, void *priv UNUSED)
{
    seq_puts(s, "### global filter ###\n"
                "# Use this to set filters for multiple events.\n"
                "# Only events with the given fields will be affected.\n"
                "# If no events are modified, an error message will be displayed here\n");
    return 0;
}

/* set_group_filter - set the filter of all events of a group that have its fields. An
 * event without these fields loses its own filter, and its file `filter` shows the
 * refusal.
 */
static int set_group_filter(void *priv, const char *text)
{
    struct live_event *e = NULL;
    int err = 0;

    while (err != -ENOMEM && (e = live_event_next(e)) != NULL)
        if (is_event_of(e, priv))
            err = live_set_filter(e, text, true);
    return err == -ENOMEM ? err : 0;
}

static long group_filter_write(void *priv, const char *text, size_t len)
{
    return write_copy(text, len, priv, set_group_filter);
}

static const struct vfs_file group_files[GROUP_FILES] = {
    { .name = "enable",
      .mode = 0640,
      .show = group_enable_show,
      .write = group_enable_write },
    { .name = "filter",
      .mode = 0640,
      .show = group_filter_show,
      .write = group_filter_write },
};

static struct group *group_find(const char *name)
{
    struct group *g;

    list_for_each(g, &groups, link)
        if (!strcmp(g->name, name))
            return g;
    return NULL;
}

static void group_free(struct group *g)
{
    list_remove(&g->link);
    kfree(g);
}

static struct group *group_new(const char *name)
{
    struct group *g = kzalloc(sizeof(*g));
    bool is_own = !strcmp(name, event_print.group);

    if (!g)
        return NULL;
    list_init(&g->link);
    /* The tracer's own events stay, and, as on Linux, their group has no files. */
    g->count = is_own;
    strlcpy(g->name, name, sizeof(g->name));
    for (size_t i = 0; i < GROUP_FILES; i++) {
        g->files[i] = group_files[i];
        g->files[i].priv = g;
    }
    g->dir = tracefs_create_dir(name, events_dir);
    if (g->dir && !tracefs_add(g->dir, g->files, is_own ? 0 : GROUP_FILES)) {
        list_append(&groups, &g->link);
        return g;
    }
    tracefs_remove(g->dir);
    kfree(g);
    return NULL;
}

/* ---- making and removing directories ---- */

static int add_directory(struct event_dir *d, struct live_event *e)
{
    d->dir = tracefs_create_dir(e->name, d->group->dir);
    if (!d->dir)
        return -EEXIST;
    for (size_t i = 0; i < ARRAY_LEN(event_files); i++) {
        d->files[i] = event_files[i];
        d->files[i].priv = e;
    }
    return tracefs_add(d->dir, d->files, ARRAY_LEN(event_files));
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    while (count--)
        if (!strcmp(name, names[count]))
            return true;
    return false;
}

/* has_no_directory - tell whether the directory of @e would have the name of a file of
 * the tracer. As on Linux, such an event exists without files, and only set_event
 * switches it.
 */
static bool has_no_directory(const struct live_event *e)
{
    static const char *const beside_groups[] = { "enable", "header_page",
                                                 "header_event" };
    static const char *const beside_events[] = { "enable", "filter" };

    return is_one_of(e->group, beside_groups, ARRAY_LEN(beside_groups)) ||
           is_one_of(e->name, beside_events, ARRAY_LEN(beside_events));
}

static int add_event_directory(struct live_event *e)
{
    struct group *g = group_find(e->group);
    struct event_dir *d = kzalloc(sizeof(*d));
    int err = -ENOMEM;

    if (!g)
        g = group_new(e->group);
    if (d && g) {
        d->group = g;
        err = add_directory(d, e);
    }
    if (!err) {
        g->count++;
        e->files = d;
        return 0;
    }
    if (d)
        tracefs_remove(d->dir);
    kfree(d);
    if (g && !g->count && !tracefs_remove(g->dir))
        group_free(g);
    return err;
}

static int add_event_files(struct live_event *e)
{
    int err = 0;

    if (has_no_directory(e))
        log_warn("trace: %s:%s has no files: the tracer has one of that name", e->group,
                 e->name);
    else
        err = add_event_directory(e);
    if (!err)
        trace_describe(e);
    return err;
}

static int remove_files(struct live_event *e)
{
    struct event_dir *d = e->files;
    struct group *g = d->group;
    int err = tracefs_remove(d->dir);

    if (err)
        return err;
    kfree(d);
    e->files = NULL;
    /* If a file of the group is open, the empty group stays. It is removed after the next
     * event of the group has been made and removed.
     */
    if (!--g->count && !tracefs_remove(g->dir))
        group_free(g);
    return 0;
}

/* ---- set_event, available_events ---- */

static void list_event(struct seq *s, const struct live_event *e)
{
    seq_printf(s, "%s:%s\n", e->group, e->name);
}

static int available_show(struct seq *s, void *priv UNUSED)
{
    const struct live_event *e = NULL;

    trace_lock();
    while ((e = live_event_next(e)) != NULL)
        list_event(s, e);
    trace_unlock();
    return 0;
}

static int set_show(struct seq *s, void *priv UNUSED)
{
    const struct live_event *e = NULL;

    trace_lock();
    while ((e = live_event_next(e)) != NULL)
        if (e->armed)
            list_event(s, e);
    trace_unlock();
    return 0;
}

/* The events that a word of set_event means. NULL matches all names. */
struct wanted {
    const char *group, *name;
    const char *either; /* the group or the name */
};

static bool is_wanted_event(const struct live_event *e, const void *arg)
{
    const struct wanted *w = arg;

    if (w->either)
        return !strcmp(w->either, e->group) || !strcmp(w->either, e->name);
    return (!w->group || !strcmp(w->group, e->group)) &&
           (!w->name || !strcmp(w->name, e->name));
}

static const char *all_or(const char *word)
{
    return *word && strcmp(word, "*") != 0 ? word : NULL;
}

static int switch_word(char *word)
{
    bool off = *word == '!';
    struct wanted w = { 0 };
    char *colon;

    word += off;
    colon = strchr(word, ':');
    if (colon) {
        *colon = '\0';
        w.group = all_or(word);
        w.name = all_or(colon + 1);
    } else {
        w.either = word;
    }
    return switch_matching(is_wanted_event, &w, !off);
}

#define BLANKS " \t\n\v\f\r"

static int set_words(void *priv UNUSED, const char *text)
{
    int err = 0;

    /* The text may be changed: it is the copy that write_copy() made. */
    text += strspn(text, BLANKS);
    for (char *word = (char *)(uintptr_t)text; !err && *word;) {
        size_t len = strcspn(word, BLANKS);
        char *next = word + len;

        if (*next) {
            *next++ = '\0';
            next += strspn(next, BLANKS);
        }
        err = switch_word(word);
        word = next;
    }
    return err;
}

static long set_write(void *priv, const char *text, size_t len)
{
    return write_copy(text, len, priv, set_words);
}

static bool is_any(const struct live_event *e UNUSED, const void *arg UNUSED)
{
    return true;
}

static int set_truncate(void *priv UNUSED)
{
    int err;

    trace_lock();
    err = switch_matching(is_any, NULL, false);
    trace_unlock();
    return err == -EINVAL ? 0 : err;
}

static const struct vfs_file files[] = {
    { .name = "events/enable",
      .mode = 0640,
      .show = group_enable_show,
      .write = group_enable_write },
    { .name = "set_event",
      .mode = 0640,
      .show = set_show,
      .write = set_write,
      .truncate = set_truncate },
    { .name = "available_events",
      .mode = 0440,
      .show = available_show,
      .write = tracefs_read_only },
};

INIT int trace_add_events(void)
{
    int err = tracefs_add(NULL, files, ARRAY_LEN(files));

    if (err)
        return err;
    live_set_files(add_event_files, remove_files);
    events_dir = tracefs_create_dir("events", NULL);
    return events_dir ? 0 : -ENOMEM;
}
