/* marker.c - markers are switched on and off.
 *
 * Connecting, while all CPUs come by:
 *
 *   1. the list with the new function is made; from here on only 4 can fail
 *   2. each site of the name gets it, in one store. Where the byte is 1 already, CPUs call
 *      by the old list or by the new one
 *   3. where there was no list, no CPU has come to marker_run(): the byte is still 0
 *   4. the bytes become 1, all in one batch (xmc_batch(): int3 first). A CPU that reads 1
 *      finds the list of 2, or a later one. If it fails, nothing was called by the new list
 *      alone: the old one comes back
 *   5. quiescence, and the old list is freed
 *
 * Disconnecting is the reverse: the bytes become 0, then the list goes, then quiescence. A
 * CPU that has read 1 before finds no list, or is in one that is freed only afterwards.
 * Without memory a byte stays 1: then the marker costs a call, and calls nothing.
 *
 * A function never sees arguments of another format: the list belongs to name and format,
 * and a site with another format never gets it.
 */
#include "probes/marker/marker.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/sync/mutex.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/xmc/xmc.h"

#include <stdlib.h>
#include <string.h>

#define INSN_LEN 2 /* mov $imm8, %al */

/* What is connected to a name, whether or not there is such a marker. */
struct marker {
    struct marker *next;
    struct marker_hooks *hooks; /* at least one */
    char name[MARKER_NAME_MAX], format[2 * MARKER_NAME_MAX];
};

/* linker.ld */
extern struct marker_site markers_start[], markers_end[];
extern const struct marker_insn marker_insns_start[], marker_insns_end[];

static struct mutex lock = MUTEX_INIT(lock);
static struct marker *markers;                    /* [lock] */
static struct marker_part image, *parts = &image; /* [lock] */

static const uint8_t code[][INSN_LEN] = { { 0xb0, 0 }, { 0xb0, 1 } };

/* ---- which there are ---- */

static struct marker *find(const char *name)
{
    struct marker *m = markers;

    while (m && strcmp(m->name, name) != 0)
        m = m->next;
    return m;
}

static bool site_is_of(const struct marker_site *site, const struct marker *m)
{
    return strcmp(site->name, m->name) == 0 && strcmp(site->format, m->format) == 0;
}

/* format_fits - has no marker of that name another format? */
static bool format_fits(const char *name, const char *format)
{
    const struct marker *m = find(name);

    if (m && strcmp(m->format, format) != 0)
        return false;
    for (const struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            if (strcmp(p->sites[i].name, name) == 0 &&
                strcmp(p->sites[i].format, format) != 0)
                return false;
    return true;
}

/* ---- the bytes ---- */

/* is_on - in the program's own bytes: a probe may have written over them. */
static bool is_on(const struct marker_insn *insn)
{
    uint8_t bytes[INSN_LEN];

    return !recover_bytes(bytes, insn->insn, INSN_LEN) && bytes[1] == code[1][1];
}

/* collect - the instructions in @p whose byte is to change, for the sites of @m, or for all
 * that are connected.
 * @out: NULL: only count
 * Locks: PLAT_PROBES held.
 */
static size_t collect(const struct marker_part *p, const struct marker *m, bool on,
                      struct xmc_change *out)
{
    size_t count = 0;

    for (size_t i = 0; i < p->insn_count; i++) {
        const struct marker_insn *insn = &p->insns[i];

        if ((m ? !site_is_of(insn->site, m) : !insn->site->hooks) || is_on(insn) == on)
            continue;
        if (out)
            out[count] = (struct xmc_change){ insn->insn, code[on], INSN_LEN };
        count++;
    }
    return count;
}

static int compare_changes(const void *a, const void *b)
{
    uintptr_t x = ((const struct xmc_change *)a)->addr;
    uintptr_t y = ((const struct xmc_change *)b)->addr;

    return x < y ? -1 : x > y;
}

/* collect_all - of @first and, if @m, the parts behind it. */
static size_t collect_all(const struct marker_part *first, const struct marker *m,
                          bool on, struct xmc_change *out)
{
    size_t count = 0;

    plat_lock(PLAT_PROBES);
    for (const struct marker_part *p = first; p; p = m ? p->next : NULL)
        count += collect(p, m, on, out ? out + count : NULL);
    plat_unlock(PLAT_PROBES);
    return count;
}

static int switch_all(const struct marker_part *first, const struct marker *m, bool on)
{
    struct probe_reject why;
    struct xmc_change *changes;
    size_t count = collect_all(first, m, on, NULL);
    int err;

    if (!count)
        return 0;
    changes = plat_alloc(count * sizeof(*changes));
    if (!changes)
        return -ENOMEM;
    collect_all(first, m, on, changes);
    qsort(changes, count, sizeof(*changes), compare_changes);
    err = xmc_batch(changes, count, &why);
    plat_free(changes);
    return err;
}

/* ---- the lists ---- */

static void hooks_publish(const struct marker *m, const struct marker_hooks *hooks)
{
    for (struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            if (site_is_of(&p->sites[i], m))
                __atomic_store_n(&p->sites[i].hooks, hooks, __ATOMIC_RELEASE);
}

static struct marker_hooks *hooks_make(size_t count)
{
    struct marker_hooks *h = plat_alloc(sizeof(*h) + count * sizeof(h->hook[0]));

    if (h)
        h->count = count;
    return h;
}

static size_t hook_find(const struct marker *m, marker_fn fn, const void *private)
{
    size_t i = 0;

    while (i < m->hooks->count &&
           (m->hooks->hook[i].fn != fn || m->hooks->hook[i].private != private))
        i++;
    return i;
}

static struct marker *marker_new(const char *name, const char *format)
{
    struct marker *m = plat_alloc(sizeof(*m));

    if (!m)
        return NULL;
    memcpy(m->name, name, strlen(name) + 1);
    memcpy(m->format, format, strlen(format) + 1);
    return m;
}

static void marker_drop(struct marker *m)
{
    struct marker **link = &markers;

    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    plat_free(m);
}

/* caller_may_switch - not from a handler, nor from a marker's function: both would wait for
 * themselves.
 */
static int caller_may_switch(void)
{
    struct probe_reject why;

    return marker_is_running() ? -EDEADLK : register_check_caller(&why);
}

/* hook_add - steps 1 to 5; @m is in the list, and may have no functions. */
static int hook_add(struct marker *m, marker_fn fn, void *private)
{
    struct marker_hooks *old = m->hooks, *new = hooks_make(old ? old->count + 1 : 1);
    int err;

    if (!new)
        return -ENOMEM;
    for (size_t i = 0; i + 1 < new->count; i++)
        new->hook[i] = old->hook[i];
    new->hook[new->count - 1] = (struct marker_hook){ fn, private };
    hooks_publish(m, new);            /* 2 */
    err = switch_all(parts, m, true); /* 4 */
    if (err)
        hooks_publish(m, old);
    else
        m->hooks = new;
    if (err || old)
        plat_quiesce(); /* 5 */
    plat_free(err ? new : old);
    return err;
}

static int connect_locked(const char *name, const char *format, marker_fn fn,
                          void *private)
{
    struct marker *m = find(name);
    int err;

    if (!format_fits(name, format))
        return -EINVAL;
    if (m && hook_find(m, fn, private) < m->hooks->count)
        return -EEXIST;
    if (!m) {
        m = marker_new(name, format);
        if (!m)
            return -ENOMEM;
        m->next = markers;
        markers = m;
    }
    err = hook_add(m, fn, private);
    if (!m->hooks)
        marker_drop(m);
    return err;
}

int marker_connect(const char *name, const char *format, marker_fn fn, void *private)
{
    int err = caller_may_switch();

    if (err)
        return err;
    if (!*name || strlen(name) >= MARKER_NAME_MAX ||
        strlen(format) >= 2 * MARKER_NAME_MAX)
        return -EINVAL;
    mutex_lock(&lock);
    err = connect_locked(name, format, fn, private);
    mutex_unlock(&lock);
    return err;
}

static void nothing(void *private UNUSED, struct marker_call *call UNUSED)
{
}

/* hook_take_out - function @at of @m. Without memory for a shorter list its place stays until
 * the next change, and does nothing: one store, and both functions take any argument.
 */
static void hook_take_out(struct marker *m, size_t at)
{
    struct marker_hooks *old = m->hooks, *new = NULL;
    size_t left = 0, n = 0;

    for (size_t i = 0; i < old->count; i++)
        left += i != at && old->hook[i].fn != nothing;
    if (!left)
        switch_all(parts, m, false); /* where it fails the list is empty all the same */
    else
        new = hooks_make(left);
    if (left && !new) {
        WRITE_ONCE(old->hook[at].fn, nothing);
        plat_quiesce();
        return;
    }
    for (size_t i = 0; i < old->count && left; i++)
        if (i != at && old->hook[i].fn != nothing)
            new->hook[n++] = old->hook[i];
    hooks_publish(m, new);
    plat_quiesce();
    plat_free(old);
    m->hooks = new;
    if (!new)
        marker_drop(m);
}

int marker_disconnect(const char *name, marker_fn fn, void *private)
{
    struct marker *m;
    size_t at;
    int err = caller_may_switch();

    if (err)
        return err;
    mutex_lock(&lock);
    m = find(name);
    at = m ? hook_find(m, fn, private) : 0;
    err = m && at < m->hooks->count ? 0 : -ENOENT;
    if (!err)
        hook_take_out(m, at);
    mutex_unlock(&lock);
    return err;
}

/* ---- text comes and goes ---- */

/* part_find_places - from the last to the first. */
static void part_find_places(const struct marker_part *p)
{
    for (size_t i = p->insn_count; i > 0; i--)
        p->insns[i - 1].site->ip = p->insns[i - 1].insn;
}

static int part_connect(struct marker_part *p)
{
    int err = 0;

    for (size_t i = 0; i < p->site_count; i++) {
        const struct marker *m = find(p->sites[i].name);

        if (m && site_is_of(&p->sites[i], m))
            p->sites[i].hooks = m->hooks;
        else if (m)
            err = -EINVAL;
    }
    return err;
}

static marker_watch_fn watch_came, watch_went; /* set at boot */

INIT void marker_set_watch(marker_watch_fn came, marker_watch_fn went)
{
    watch_came = came;
    watch_went = went;
    came(image.sites, image.site_count);
}

bool marker_exists(const char *name)
{
    bool found = false;

    mutex_lock(&lock);
    for (const struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            found |= strcmp(p->sites[i].name, name) == 0;
    mutex_unlock(&lock);
    return found;
}

int marker_comes(struct marker_part *part)
{
    int err, odd;

    part_find_places(part);
    mutex_lock(&lock);
    odd = part_connect(part);
    err = switch_all(part, NULL, true);
    if (!err) {
        part->next = image.next;
        image.next = part;
    }
    mutex_unlock(&lock);
    if (!err && watch_came)
        watch_came(part->sites, part->site_count);
    return err ? err : odd;
}

static bool hook_is_inside(const struct marker_part *part, const struct marker_hook *hook)
{
    return ((uintptr_t)hook->fn >= part->memory &&
            (uintptr_t)hook->fn < part->memory_end) ||
           ((uintptr_t)hook->private >= part->memory &&
            (uintptr_t)hook->private < part->memory_end);
}

/* take_one_inside - Return: false: none is left that is inside. */
static bool take_one_inside(const struct marker_part *part)
{
    for (struct marker *m = markers; m; m = m->next)
        for (size_t i = 0; i < m->hooks->count; i++)
            if (hook_is_inside(part, &m->hooks->hook[i])) {
                hook_take_out(m, i);
                return true;
            }
    return false;
}

void marker_leaves(const struct marker_part *part)
{
    mutex_lock(&lock);
    while (take_one_inside(part))
        ;
    mutex_unlock(&lock);
}

void marker_goes(struct marker_part *part)
{
    mutex_lock(&lock);
    for (struct marker_part *p = parts; p; p = p->next)
        if (p->next == part)
            p->next = part->next;
    mutex_unlock(&lock);
    if (watch_went)
        watch_went(part->sites, part->site_count);
}

/* ---- what there is to know ---- */

static void facts_tell(const struct marker_part *p, const struct marker_site *site,
                       void (*fn)(const struct marker_facts *m, void *arg), void *arg)
{
    struct marker_facts f = {
        .name = site->name,
        .format = site->format,
        .module = p->module,
        .functions = site->hooks ? site->hooks->count : 0,
        .missed = site->missed,
    };

    for (size_t i = 0; i < p->insn_count; i++)
        f.places += p->insns[i].site == site;
    fn(&f, arg);
}

void marker_for_each(void (*fn)(const struct marker_facts *m, void *arg), void *arg)
{
    mutex_lock(&lock);
    for (const struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            facts_tell(p, &p->sites[i], fn, arg);
    mutex_unlock(&lock);
}

INIT void marker_init(void)
{
    image.sites = markers_start;
    image.site_count = (size_t)(markers_end - markers_start);
    image.insns = marker_insns_start;
    image.insn_count = (size_t)(marker_insns_end - marker_insns_start);
    part_find_places(&image);
}
