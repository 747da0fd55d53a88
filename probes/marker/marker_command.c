/* marker_command.c - adds the console's `marker`, and /sys/kernel/debug/markers. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "probes/marker/marker.h"

#include <string.h>

/* A marker that was switched on by hand: its calls are counted. */
struct tally {
    struct tally *next;
    uint64_t count; /* calls, on any CPU; atomic */
    char name[MARKER_NAME_MAX];
};

static struct mutex lock = MUTEX_INIT(lock);
static struct tally *tallies; /* [lock] */

static void tally_call(void *private, struct marker_call *call UNUSED)
{
    __atomic_fetch_add((uint64_t *)private, 1, __ATOMIC_RELAXED);
}

static struct tally *tally_find(const char *name)
{
    struct tally *t = tallies;

    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

/* ---- list ---- */

static void print_facts(const struct marker_facts *m, void *out)
{
    seq_printf(out, "%-16s %3zu %3zu %8lu  %s%s%s\n", m->name, m->places, m->functions,
               m->missed, m->format, m->module ? "  " : "", m->module ? m->module : "");
}

static void print_all(struct seq *out)
{
    seq_printf(out, "%-16s %3s %3s %8s  %s\n", "name", "at", "fns", "missed", "format");
    marker_for_each(print_facts, out);
}

static int marker_list(struct shell *sh, const char *name UNUSED)
{
    print_all(shell_out(sh));
    return 0;
}

static int file_show(struct seq *s, void *priv UNUSED)
{
    print_all(s);
    return 0;
}

/* ---- on, off, count ---- */

struct marker_search {
    const char *name;
    char format[2 * MARKER_NAME_MAX];
    bool found;
};

static void marker_match(const struct marker_facts *m, void *arg)
{
    struct marker_search *s = arg;

    if (s->found || strcmp(m->name, s->name) != 0 ||
        strlen(m->format) >= sizeof(s->format))
        return;
    memcpy(s->format, m->format, strlen(m->format) + 1);
    s->found = true;
}

static bool marker_look_up(struct marker_search *s)
{
    marker_for_each(marker_match, s);
    return s->found;
}

static int tally_connect(struct tally *t)
{
    struct marker_search s = { .name = t->name };

    if (!marker_look_up(&s))
        return -ENOENT;
    return marker_connect(t->name, s.format, tally_call, &t->count);
}

static int on_locked(const char *name)
{
    struct tally *t;
    int err;

    if (tally_find(name))
        return -EEXIST;
    if (strlen(name) >= MARKER_NAME_MAX)
        return -ENOENT;
    t = kzalloc(sizeof(*t));
    if (!t)
        return -ENOMEM;
    memcpy(t->name, name, strlen(name) + 1);
    err = tally_connect(t);
    if (err) {
        kfree(t);
        return err;
    }
    t->next = tallies;
    tallies = t;
    return 0;
}

static int off_locked(const char *name)
{
    struct tally **link = &tallies, *t;

    while (*link && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    t = *link;
    if (!t)
        return -ENOENT;
    marker_disconnect(name, tally_call, &t->count);
    *link = t->next;
    kfree(t);
    return 0;
}

static void marker_offer(const struct marker_facts *m, void *arg)
{
    shell_offer(arg, m->name);
}

static void complete_names(struct shell_completion *c, int index UNUSED)
{
    marker_for_each(marker_offer, c);
}

static int say_error(struct shell *sh, int err, const char *name)
{
    char suggestion[SHELL_SUGGESTION_MAX];

    if (err == -EEXIST)
        return shell_refuse(sh, EEXIST, "marker: %s is on already", name);
    if (err == -ENOENT && marker_look_up(&(struct marker_search){ .name = name }))
        return shell_refuse(sh, ENOENT, "marker: %s is not on", name);
    if (err == -ENOENT)
        return shell_refuse(sh, ENOENT, "marker: no marker is called %s%s", name,
                            shell_suggest(suggestion, name, complete_names, 1));
    return err ? shell_error(sh, err, "marker: %s", name) : 0;
}

static int marker_on(struct shell *sh, const char *name)
{
    int err;

    mutex_lock(&lock);
    err = on_locked(name);
    mutex_unlock(&lock);
    return say_error(sh, err, name);
}

static int marker_off(struct shell *sh, const char *name)
{
    int err;

    mutex_lock(&lock);
    err = off_locked(name);
    mutex_unlock(&lock);
    return say_error(sh, err, name);
}

static int show_count(struct shell *sh, const char *name)
{
    const struct tally *t;
    uint64_t calls = 0;

    mutex_lock(&lock);
    t = tally_find(name);
    if (t)
        calls = t->count;
    mutex_unlock(&lock);
    if (!t)
        return say_error(sh, -ENOENT, name);
    shell_printf(sh, "%s %lu\n", name, calls);
    return 0;
}

/* ---- the command ---- */

static const struct {
    const char *name;
    int words; /* how many words follow it */
    int (*run)(struct shell *sh, const char *name);
} verbs[] = {
    { "list", 0, marker_list },
    { "on", 1, marker_on },
    { "off", 1, marker_off },
    { "count", 1, show_count },
};

static const struct shell_command command;

static int marker_run_command(struct shell *sh, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++)
        if (!strcmp(argv[1], verbs[i].name) && argc == 2 + verbs[i].words)
            return verbs[i].run(sh, argc > 2 ? argv[2] : NULL);
    return shell_refuse(sh, EINVAL, "usage: marker %s", command.usage);
}

static void marker_complete(struct shell_completion *c, int index)
{
    for (size_t i = 0; index == 1 && i < ARRAY_LEN(verbs); i++)
        shell_offer(c, verbs[i].name);
    if (index == 2)
        complete_names(c, index);
}

static const struct shell_command command = {
    "marker",
    "list | on NAME | off NAME | count NAME",
    "switch the places of the kernel that say what happens there\n"
    "list   name, places, functions that are called, calls left out, format\n"
    "on     count how often the marker NAME is passed\n"
    "off    no longer\n"
    "count  how often that was",
    marker_run_command,
    marker_complete,
};

static const struct vfs_file files[] = {
    { .name = "markers", .mode = 0400, .show = file_show },
};

INIT int marker_add_command(void)
{
    int err = vfs_add_tree("/sys/kernel/debug", files, ARRAY_LEN(files));

    return err ? err : shell_add_command(&command);
}
