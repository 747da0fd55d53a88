/* console_probe.c - the list of the console's probes. */
#include "probes/port/console_probe.h"

#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"

#include <stdio.h>
#include <string.h>

static struct mutex lock = MUTEX_INIT(lock);
static struct list probes = LIST_INIT(probes);
static unsigned next_number = 1;

void console_probe_lock(void)
{
    mutex_lock(&lock);
}

void console_probe_unlock(void)
{
    mutex_unlock(&lock);
}

struct console_probe *console_probe_next(struct console_probe *cp)
{
    struct list *next = cp ? cp->link.next : probes.next;

    return next == &probes ? NULL : CONTAINER_OF(next, struct console_probe, link);
}

struct console_probe *console_probe_find(const char *name)
{
    struct console_probe *cp = NULL;

    while ((cp = console_probe_next(cp)) != NULL)
        if (strcmp(cp->name, name) == 0)
            return cp;
    return NULL;
}

/* ---- new, free ---- */

static bool is_taken(const char *name)
{
    return strcmp(name, "all") == 0 || console_probe_find(name);
}

static int check_name(const char *name)
{
    if (strlen(name) >= CONSOLE_PROBE_NAME)
        return -ENAMETOOLONG;
    return is_taken(name) ? -EEXIST : 0;
}

static void make_up_name(char *name)
{
    do {
        snprintf(name, CONSOLE_PROBE_NAME, "p%u", next_number++);
    } while (is_taken(name));
}

static int make_room(struct console_probe *cp, size_t room)
{
    cp->room = room;
    if (!room) {
        cp->one_ptr = &cp->one;
        cp->ps = &cp->one_ptr;
        return 0;
    }
    cp->probes = kzalloc(room * sizeof(cp->probes[0]));
    cp->ps = kzalloc(room * sizeof(cp->ps[0]));
    return cp->probes && cp->ps ? 0 : -ENOMEM;
}

int console_probe_new(struct console_probe **out, const char *name, size_t room)
{
    int err = name ? check_name(name) : 0;
    struct console_probe *cp;

    if (err)
        return err;
    cp = kzalloc(sizeof(*cp));
    if (!cp)
        return -ENOMEM;
    err = make_room(cp, room);
    if (err) {
        console_probe_free(cp);
        return err;
    }
    if (name)
        strlcpy(cp->name, name, sizeof(cp->name));
    else
        make_up_name(cp->name);
    *out = cp;
    return 0;
}

void console_probe_free(struct console_probe *cp)
{
    if (cp->ps != &cp->one_ptr)
        kfree(cp->ps);
    kfree(cp->probes);
    kfree(cp);
}

void console_probe_add(struct console_probe *cp)
{
    list_append(&probes, &cp->link);
}

/* ---- what can be done with one ---- */

int console_probe_del(struct console_probe *cp)
{
    int err = unregister_kprobes(cp->ps, cp->count);

    if (err)
        return err;
    list_remove(&cp->link);
    console_probe_free(cp);
    return 0;
}

int console_probe_switch(struct console_probe *cp, bool on)
{
    return on ? enable_kprobes(cp->ps, cp->count) : disable_kprobes(cp->ps, cp->count);
}

static void count_post(struct kprobe *p, struct pt_regs *regs UNUSED,
                       unsigned long flags UNUSED)
{
    struct console_probe *cp = CONTAINER_OF(p, struct console_probe, one);

    __atomic_add_fetch(&cp->posts, 1, __ATOMIC_RELAXED);
}

void console_probe_count_post(struct console_probe *cp)
{
    cp->one.post_handler = count_post;
}

void console_probe_sums(const struct console_probe *cp, uint64_t *hits, uint64_t *missed)
{
    *hits = *missed = 0;
    for (size_t i = 0; i < cp->count; i++) {
        *hits += READ_ONCE(cp->ps[i]->hits);
        *missed += READ_ONCE(cp->ps[i]->nmissed);
    }
}
