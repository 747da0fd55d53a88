/* console_probe.c - owns the list of the console's probes. */
#include "probes/console/console_probe.h"

#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "kernel/time/clock.h"
#include "probes/many/mass.h"
#include "probes/trace/buffer/select.h"

#include <stdio.h>
#include <string.h>

struct mutex console_mutex = MUTEX_INIT(console_mutex);
static struct list probes = LIST_INIT(probes);
static unsigned next_number = 1;
static bool hides; /* there are hidden threads */

unsigned console_changes;

void console_note_change(void)
{
    __atomic_add_fetch(&console_changes, 1, __ATOMIC_RELAXED);
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

/* ---- hidden threads ---- */

void console_probe_hide(void)
{
    select_hide_thread();
    hides = true;
}

void console_probe_program(struct console_probe *cp, const struct program_line *line)
{
    cp->takes = !program_line_is_empty(line);
    cp->hides = hides && !cp->one.post_handler;
    if (!cp->takes && !cp->hides)
        return;
    program_line_make(line, cp->hides, &cp->program, cp->ops);
    cp->one.program = &cp->program;
}

/* set_hides - let the kprobes of a set ask for hidden threads. Return: 0; -ENOMEM. */
static int set_hides(struct console_probe *cp)
{
    const struct program_line empty = { .count = 0 };

    cp->programs = kzalloc(cp->room * sizeof(cp->programs[0]));
    if (!cp->programs)
        return -ENOMEM;
    cp->hides = true;
    for (size_t i = 0; i < cp->room; i++) {
        program_line_make(&empty, true, &cp->programs[i], cp->ops);
        cp->probes[i].program = &cp->programs[i];
    }
    return 0;
}

/* Before its text has come, a kprobe has no words. */
static bool asks_now(const struct console_probe *cp, const struct kprobe *p)
{
    return cp->hides && p->program->first;
}

uint64_t console_probe_hits(const struct console_probe *cp, const struct kprobe *p)
{
    return asks_now(cp, p) ? program_sum(p->program, LINE_OTHERS) : kprobe_hits(p);
}

/* The sum of others is read first: it never is the greater one. */
uint64_t console_probe_hidden(const struct console_probe *cp, const struct kprobe *p)
{
    uint64_t others = console_probe_hits(cp, p);

    return asks_now(cp, p) ? kprobe_hits(p) - others : 0;
}

/* ---- new, free ---- */

static NOINLINE bool is_taken(const char *name)
{
    return strcmp(name, "all") == 0 || console_probe_find(name);
}

static int check_name(const char *name)
{
    if (strlen(name) >= CONSOLE_PROBE_NAME)
        return -ENAMETOOLONG;
    /* An option is not read behind the place. A name is one column, and no pattern. */
    if (name[0] == '-' || strpbrk(name, " \t\n|#*?["))
        return -EINVAL;
    return is_taken(name) ? -EEXIST : 0;
}

/* Only a probe that is registered uses up a number; a refused probe does not. */
static void make_up_name(char *name)
{
    do {
        snprintf(name, CONSOLE_PROBE_NAME, "p%u", next_number++);
    } while (is_taken(name));
}

/* The search is short: only a watch has a name like this, and there are few debug
 * registers.
 */
void console_probe_name_watch(struct console_probe *cp)
{
    unsigned n = 0;

    do {
        snprintf(cp->name, CONSOLE_PROBE_NAME, "w%u", ++n);
    } while (is_taken(cp->name));
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
    if (!cp->probes || !cp->ps)
        return -ENOMEM;
    return hides ? set_hides(cp) : 0;
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
    *out = cp;
    return 0;
}

void console_probe_free(struct console_probe *cp)
{
    if (cp->ps != &cp->one_ptr)
        kfree(cp->ps);
    kfree(cp->programs);
    kfree(cp->probes);
    kfree(cp);
}

void console_probe_add(struct console_probe *cp)
{
    if (!cp->name[0])
        make_up_name(cp->name);
    list_append(&probes, &cp->link);
    console_note_change();
}

/* ---- operations on a probe ---- */

static int unregister_of(struct shell *sh, struct console_probe *cp)
{
    const struct mass_caller caller = { shell_stop, shell_show_progress, sh };

    if (cp->kind == CONSOLE_WATCH)
        return unregister_watch(&cp->watch);
    return cp->kind == CONSOLE_RETURN ? unregister_kretprobe(&cp->ret)
                                      : mass_unregister(&caller, cp->ps, &cp->count);
}

int console_probe_del(struct shell *sh, struct console_probe *cp)
{
    int err = unregister_of(sh, cp);

    console_note_change();
    if (err)
        return err;
    list_remove(&cp->link);
    console_probe_free(cp);
    return 0;
}

int console_probe_on(struct shell *sh UNUSED, struct console_probe *cp)
{
    console_note_change();
    if (cp->kind == CONSOLE_WATCH)
        return enable_watch(&cp->watch);
    return enable_kprobes(cp->ps, cp->count);
}

int console_probe_off(struct shell *sh, struct console_probe *cp)
{
    const struct mass_caller caller = { shell_stop, shell_show_progress, sh };

    console_note_change();
    if (cp->kind == CONSOLE_WATCH)
        return disable_watch(&cp->watch);
    return mass_disable(&caller, cp->ps, cp->count);
}

size_t console_probe_disabled(const struct console_probe *cp)
{
    size_t count = 0;

    for (size_t i = 0; i < cp->count; i++)
        count += (READ_ONCE(cp->ps[i]->flags) & KPROBE_FLAG_DISABLED) != 0;
    return count;
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

struct stamp {
    uint64_t start_ns;
};

static int start_clock(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    ((struct stamp *)ri->data)->start_ns = clock_ns();
    return 0;
}

static int note_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    struct console_probe *cp = CONTAINER_OF(ri->rp, struct console_probe, ret);
    uint64_t ns = clock_ns() - ((const struct stamp *)ri->data)->start_ns;

    __atomic_add_fetch(&cp->returns.count, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&cp->returns.total_ns, ns, __ATOMIC_RELAXED);
    WRITE_ONCE(cp->returns.last_ns, ns);
    WRITE_ONCE(cp->returns.last_value, regs_return_value(regs));
    return 0;
}

void console_probe_follow(struct console_probe *cp)
{
    cp->kind = CONSOLE_RETURN;
    cp->one_ptr = &cp->ret.kp;
    cp->ret.entry_handler = start_clock;
    cp->ret.handler = note_return;
    cp->ret.data_size = sizeof(struct stamp);
}

void console_probe_sums(const struct console_probe *cp, uint64_t *hits, uint64_t *missed)
{
    *hits = *missed = 0;
    for (size_t i = 0; i < cp->count; i++) {
        *hits += console_probe_hits(cp, cp->ps[i]);
        *missed += console_probe_hidden(cp, cp->ps[i]) + READ_ONCE(cp->ps[i]->nmissed);
    }
}
