/* marker.c - switches markers on and off.
 *
 * A marker has a name, and any number of places in the source, each with a struct
 * marker_site. A place is on while the immediate byte of its `mov` is 1. These steps connect
 * functions to one marker or to several, even while CPUs execute their places:
 *
 *   1. a list with the new functions is made for each marker; after that only step 3 can
 *      fail
 *   2. each place of the marker gets the new list, by one store. At a place that is on
 *      already, CPUs call the functions of the old list or those of the new list. At a
 *      place that is off, no CPU looks at the list: its byte is still 0
 *   3. all bytes become 1, in one batch (xmc_batch(): int3 first). A CPU that reads 1 finds
 *      the list of step 2, or a list that is newer. If the batch fails, no byte has
 *      changed, and the places get their old lists back; until then, CPUs may have called
 *      new functions at places that were on before
 *   4. quiescence; then the old lists are freed
 *
 * To disconnect functions, the same steps are taken with a list that is shorter. If no
 * function is left, a place gets the empty list in step 2, so a CPU that reads 1 there
 * calls nothing. Then its byte becomes 0, and its list NULL. If there is no memory for
 * the batch, the byte stays 1, and the empty list stays: that place then costs a call,
 * until functions are disconnected the next time, when its byte is in the batch again.
 *
 * A function never gets arguments of another format than its own. A list belongs to one
 * name and one format. A place with the name but another format never gets the list.
 */
#include "probes/marker/marker.h"

#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/debug/panic.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/wait_check.h"
#include "probes/core/life.h"
#include "probes/core/recover.h"
#include "probes/xmc/xmc.h"

#include <stdlib.h>
#include <string.h>

#define INSN_LEN 2 /* mov $imm8, %al */

/* The functions that are connected to a name. There may be no marker of that name yet. */
struct marker {
    struct marker *next;
    struct marker_hooks *hooks; /* NULL only while the first function is connected, or the
                                 * last one is disconnected */
    struct marker_hooks *other; /* if @changes: the new list, after step 2 the old */
    bool changes;
    char name[MARKER_NAME_MAX], format[2 * MARKER_NAME_MAX];
};

/* linker.ld */
extern struct marker_site markers_start[], markers_end[];
extern const struct marker_insn marker_insns_start[], marker_insns_end[];

static struct mutex lock = MUTEX_INIT(lock);
static struct marker *markers;                    /* [lock] */
static struct marker_part image, *parts = &image; /* [lock] */

static const struct marker_hooks empty; /* calls nothing, where a byte may still be 1 */

static const uint8_t code[][INSN_LEN] = { { 0xb0, 0 }, { 0xb0, 1 } };

/* ---- names and formats ---- */

static struct marker *marker_find(const char *name)
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

/* format_fits - check that no marker or function of that name has another format. */
static bool format_fits(const char *name, const char *format)
{
    const struct marker *m = marker_find(name);

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

/* is_on - is the byte of @insn 1? This looks at the program's own bytes: in the text a
 * probe may have written over them.
 */
static bool is_on(const struct marker_insn *insn)
{
    uint8_t bytes[INSN_LEN];

    return !recover_bytes(bytes, insn->insn, INSN_LEN) && bytes[1] == code[1][1];
}

/* collect - find the instructions in @p that must change. With @on these are instructions
 * that are off at sites with functions; without @on, instructions that are on at sites
 * with the empty list.
 * @out: receives the changes, @p->insn_count at most
 * Locks: PLAT_PROBES held.  Return: how many there are.
 */
static size_t collect(const struct marker_part *p, bool on, struct xmc_change *out)
{
    size_t count = 0;

    for (size_t i = 0; i < p->insn_count; i++) {
        const struct marker_insn *insn = &p->insns[i];
        const struct marker_hooks *hooks = insn->site->hooks;

        if (hooks && (hooks != &empty) == on && is_on(insn) != on)
            out[count++] = (struct xmc_change){ insn->insn, code[on], INSN_LEN };
    }
    return count;
}

/* switch_all - do step 3 for the markers of all text. There is room for all of them: how
 * many must change may be another number at each look, because xmc_batch() exchanges
 * any instruction.
 */
static int switch_all(bool on)
{
    struct probe_reject why;
    struct xmc_change *changes;
    size_t room = 0, count = 0;
    int err;

    for (const struct marker_part *p = parts; p; p = p->next)
        room += p->insn_count;
    changes = plat_alloc(room * sizeof(*changes));
    if (!changes)
        return -ENOMEM;
    plat_lock(PLAT_PROBES);
    for (const struct marker_part *p = parts; p; p = p->next)
        count += collect(p, on, changes + count);
    plat_unlock(PLAT_PROBES);
    qsort(changes, count, sizeof(*changes), compare_addresses);
    err = xmc_batch(changes, count, &why);
    plat_free(changes);
    return err;
}

/* ---- the lists ---- */

static void marker_nothing(void *private UNUSED, struct marker_call *call UNUSED)
{
}

static struct marker_hooks *hooks_make(size_t count)
{
    struct marker_hooks *h = plat_alloc(sizeof(*h) + count * sizeof(h->hook[0]));

    if (h)
        h->count = 0;
    return h;
}

/* latest - return the list that @m will have after the changes that are planned. */
static struct marker_hooks *latest(const struct marker *m)
{
    return m->changes ? m->other : m->hooks;
}

static struct marker_hook *hook_find(const struct marker *m, marker_fn fn,
                                     const void *private)
{
    struct marker_hooks *h = m ? latest(m) : NULL;

    for (size_t i = 0; h && i < h->count; i++)
        if (h->hook[i].fn == fn && h->hook[i].private == private)
            return &h->hook[i];
    return NULL;
}

static struct marker *marker_new(const char *name, const char *format)
{
    struct marker *m = plat_alloc(sizeof(*m));

    if (!m)
        return NULL;
    memcpy(m->name, name, strlen(name) + 1);
    memcpy(m->format, format, strlen(format) + 1);
    m->next = markers;
    markers = m;
    return m;
}

/* marker_plan - do step 1 for @m: make a copy of its latest list, without @gone and with
 * @added. @gone or @added may be NULL. Return: 0; -ENOMEM.
 */
static int marker_plan(struct marker *m, const struct marker_hook *gone,
                       const struct marker_hook *added)
{
    const struct marker_hooks *from = latest(m);
    size_t count = from ? from->count : 0, left = added != NULL;
    struct marker_hooks *to = NULL;

    for (size_t i = 0; i < count; i++)
        left += &from->hook[i] != gone && from->hook[i].fn != marker_nothing;
    if (left)
        to = hooks_make(left);
    if (left && !to)
        return -ENOMEM;
    for (size_t i = 0; left && i < count; i++)
        if (&from->hook[i] != gone && from->hook[i].fn != marker_nothing)
            to->hook[to->count++] = from->hook[i];
    if (added)
        to->hook[to->count++] = *added;
    if (m->changes)
        plat_free(m->other);
    m->other = to;
    m->changes = true;
    return 0;
}

static int plan_to_add(const struct marker_wish *w)
{
    struct marker_hook hook = { w->fn, w->private };
    struct marker *m = marker_find(w->name);

    if (!format_fits(w->name, w->format))
        return -EINVAL;
    if (hook_find(m, w->fn, w->private))
        return -EEXIST;
    if (!m)
        m = marker_new(w->name, w->format);
    return m ? marker_plan(m, NULL, &hook) : -ENOMEM;
}

/* plan_to_remove - plan a list of @m without @gone. If there is no memory for this list,
 * @gone stays in its list until the next change, but calls a function that does nothing.
 * CPUs may be using the list; that is safe, because one store changes the function, and
 * the function that does nothing takes any argument.
 */
static void plan_to_remove(struct marker *m, struct marker_hook *gone)
{
    if (marker_plan(m, gone, NULL))
        WRITE_ONCE(gone->fn, marker_nothing);
}

/* ---- carry out the plans ---- */

static void hooks_publish(const struct marker *m)
{
    const struct marker_hooks *hooks = m->hooks ? m->hooks : &empty;

    for (struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            if (site_is_of(&p->sites[i], m))
                __atomic_store_n(&p->sites[i].hooks, hooks, __ATOMIC_RELEASE);
}

/* plans_exchange - do step 2: give the sites their new lists. A second call gives the old
 * lists back. Return: true: there were lists before.
 */
static bool plans_exchange(void)
{
    bool any = false;

    for (struct marker *m = markers; m; m = m->next) {
        struct marker_hooks *before = m->hooks;

        if (!m->changes)
            continue;
        m->hooks = m->other;
        m->other = before;
        any |= before != NULL;
        hooks_publish(m);
    }
    return any;
}

/* plans_forget - free the lists that are not in use: the old ones, or the new ones if the
 * change was not made. No CPU is in them. Names that have no functions are freed, too.
 */
static void plans_forget(void)
{
    struct marker **link = &markers;

    while (*link) {
        struct marker *m = *link;

        if (m->changes)
            plat_free(m->other);
        m->other = NULL;
        m->changes = false;
        if (m->hooks) {
            link = &m->next;
            continue;
        }
        *link = m->next;
        plat_free(m);
    }
}

/* sites_are_off - take the empty list away from all sites: their bytes are 0 now. */
static void sites_are_off(void)
{
    for (struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            if (p->sites[i].hooks == &empty)
                p->sites[i].hooks = NULL;
}

/* plans_add - do steps 2 to 4 for functions that are connected. */
static int plans_add(void)
{
    bool any = plans_exchange();
    int err = switch_all(true);

    if (err)
        plans_exchange();
    if (any || err)
        plat_quiesce();
    plans_forget();
    return err;
}

/* plans_remove - do steps 2 to 4 for functions that are disconnected. */
static void plans_remove(void)
{
    plans_exchange();
    if (!switch_all(false))
        sites_are_off();
    plat_quiesce();
    plans_forget();
}

static bool is_too_long(const struct marker_wish *w)
{
    return !*w->name || strlen(w->name) >= MARKER_NAME_MAX ||
           strlen(w->format) >= 2 * MARKER_NAME_MAX;
}

int marker_connect_all(const struct marker_wish *wishes, size_t count)
{
    int err = register_check_caller("marker_connect", NULL);

    if (err)
        return err;
    mutex_lock(&lock);
    for (size_t i = 0; i < count && !err; i++)
        err = is_too_long(&wishes[i]) ? -EINVAL : plan_to_add(&wishes[i]);
    if (err)
        plans_forget();
    else
        err = plans_add();
    mutex_unlock(&lock);
    return err;
}

int marker_disconnect_all(const struct marker_wish *wishes, size_t count)
{
    int err = register_check_caller("marker_disconnect", NULL);

    if (err)
        return err;
    mutex_lock(&lock);
    for (size_t i = 0; i < count && !err; i++)
        if (!hook_find(marker_find(wishes[i].name), wishes[i].fn, wishes[i].private))
            err = -ENOENT;
    for (size_t i = 0; i < count && !err; i++) {
        struct marker *m = marker_find(wishes[i].name);
        struct marker_hook *hook = hook_find(m, wishes[i].fn, wishes[i].private);

        if (hook) /* NULL: @wishes has it twice, and it is removed already */
            plan_to_remove(m, hook);
    }
    if (!err)
        plans_remove();
    mutex_unlock(&lock);
    return err;
}

int marker_connect(const char *name, const char *format, marker_fn fn, void *private)
{
    return marker_connect_all(&(struct marker_wish){ name, format, fn, private }, 1);
}

int marker_disconnect(const char *name, marker_fn fn, void *private)
{
    return marker_disconnect_all(&(struct marker_wish){ name, NULL, fn, private }, 1);
}

/* ---- text comes and goes ---- */

/* part_find_places - store in each site the address of its first instruction. The loop
 * goes from the last instruction to the first, so the address of the first one stays.
 */
static void part_find_places(const struct marker_part *p)
{
    for (size_t i = p->insn_count; i > 0; i--)
        p->insns[i - 1].site->ip = p->insns[i - 1].insn;
}

static int part_connect(struct marker_part *p)
{
    int err = 0;

    for (size_t i = 0; i < p->site_count; i++) {
        const struct marker *m = marker_find(p->sites[i].name);

        if (m && site_is_of(&p->sites[i], m))
            p->sites[i].hooks = m->hooks;
        else if (m)
            err = -EINVAL;
    }
    return err;
}

static marker_watch_fn marker_watch; /* set at boot */

INIT void marker_set_watch(marker_watch_fn watch)
{
    marker_watch = watch;
    watch(image.sites, image.site_count, true);
}

bool marker_exists(const char *name, const char *format)
{
    bool found = false;

    mutex_lock(&lock);
    for (const struct marker_part *p = parts; p; p = p->next)
        for (size_t i = 0; i < p->site_count; i++)
            found |=
                !strcmp(p->sites[i].name, name) && !strcmp(p->sites[i].format, format);
    mutex_unlock(&lock);
    return found;
}

int marker_comes(struct marker_part *part)
{
    int err = wait_check(__func__), odd;

    if (err)
        return err;
    part_find_places(part);
    mutex_lock(&lock);
    odd = part_connect(part);
    part->next = image.next;
    image.next = part;
    err = switch_all(true);
    if (err)
        image.next = part->next;
    mutex_unlock(&lock);
    if (!err && marker_watch)
        marker_watch(part->sites, part->site_count, true);
    return err ? err : odd;
}

static struct marker_hook *find_inside(const struct marker *m,
                                       const struct marker_part *part)
{
    struct marker_hooks *h = latest(m);

    for (size_t i = 0; h && i < h->count; i++)
        if (h->hook[i].fn != marker_nothing &&
            leads_into(&h->hook[i], sizeof(h->hook[i]), part->memory, part->memory_end))
            return &h->hook[i];
    return NULL;
}

void marker_leaves(const struct marker_part *part)
{
    struct marker_hook *hook;
    bool any = false;

    BUG_ON(wait_check(__func__)); /* as in marker_goes() */
    mutex_lock(&lock);
    for (struct marker *m = markers; m; m = m->next)
        while ((hook = find_inside(m, part)) != NULL) {
            plan_to_remove(m, hook);
            any = true;
        }
    if (any)
        plans_remove();
    mutex_unlock(&lock);
}

void marker_goes(struct marker_part *part)
{
    BUG_ON(wait_check(__func__)); /* module_unload() has been refused */
    mutex_lock(&lock);
    for (struct marker_part *p = parts; p; p = p->next)
        if (p->next == part)
            p->next = part->next;
    mutex_unlock(&lock);
    if (marker_watch)
        marker_watch(part->sites, part->site_count, false);
}

/* ---- facts about markers ---- */

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
