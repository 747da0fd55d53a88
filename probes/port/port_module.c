/* port_module.c - makes the text of modules known to the engine: it connects
 * kernel/module/module.h with probes/text/text_part.h.
 *
 * The planner of regions needs to know where CPUs enter a module's text. This is found
 * when the module is loaded, by the rules that the build uses for the image:
 * probes/region/find_targets.h.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/memmap.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/insn.h"
#include "probes/jump/optimize.h"
#include "probes/jump/platform_jump.h"
#include "probes/marker/marker.h"
#include "probes/marker/static_key.h"
#include "probes/port/port.h"
#include "probes/region/find_targets.h"
#include "probes/region/targets.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/shadow.h"
#include "probes/text/text_part.h"
#include "probes/watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0xffffffff00000000) /* of targets: all text is above it */

/* What this file keeps about one module, or about the text that is freed after boot. */
struct guest {
    struct guest *next;
    struct text_part part;
    struct marker_part markers;
    struct static_key_part keys;
    uint32_t *targets;
    struct plat_opaque *opaque;
    struct nokprobe_range *ranges;
    size_t target_count, opaque_count; /* 0: none, or they are in the image's table */
};

static struct guest *guests; /* [PLAT_PROBES] */

/* ---- targets and opaque text ---- */

static bool is_in_module(const struct module_facts *m, uintptr_t addr)
{
    return addr >= m->text && addr < m->text_end;
}

static bool is_data(const struct module_symbol *sym)
{
    return sym->type == 'r' || sym->type == 'R';
}

/* search_free - free what search_make() has allocated. */
static void search_free(struct target_search *s, struct target_pointer **pointers)
{
    for (size_t i = 0; i < MODULE_POINTER_KINDS; i++)
        kfree(pointers[i]);
    kfree(s->spans);
    kfree(s->marks);
    kfree(s->pending);
}

static void collect_spans(struct target_search *s, const struct module_facts *m)
{
    for (size_t i = 0; i < m->symbol_count; i++) {
        const struct module_symbol *sym = &m->symbols[i];

        if (is_in_module(m, sym->start))
            s->spans[s->span_count++] =
                (struct target_span){ .start = sym->start,
                                      .end = sym->start + sym->size,
                                      .family = target_family(sym->name),
                                      .is_compiled = plat_is_compiled(sym->start),
                                      .is_data = is_data(sym) };
    }
}

static void collect_pointers(struct target_search *s, const struct module_facts *m,
                             struct target_pointer **pointers)
{
    size_t counts[MODULE_POINTER_KINDS] = { 0 };

    for (size_t i = 0; i < m->pointer_count; i++) {
        const struct module_pointer *p = &m->pointers[i];

        if (p->kind == MODULE_POINTER_ELSEWHERE)
            continue;
        pointers[p->kind][counts[p->kind]++] = (struct target_pointer){ p->place, p->to };
    }
    s->in_code = pointers[MODULE_POINTER_CODE];
    s->in_code_count = counts[MODULE_POINTER_CODE];
    s->in_data = pointers[MODULE_POINTER_DATA];
    s->in_data_count = counts[MODULE_POINTER_DATA];
    s->differences = pointers[MODULE_POINTER_DIFFERENCE];
    s->difference_count = counts[MODULE_POINTER_DIFFERENCE];
}

/* search_make - collect what targets_search() needs. Return: false: there is no memory. */
static bool search_make(struct target_search *s, const struct module_facts *m,
                        struct target_pointer **pointers)
{
    bool is_full = true;

    *s = (struct target_search){ .bytes = (const uint8_t *)m->text,
                                 .addr = m->text,
                                 .size = m->text_end - m->text };
    s->spans = kmalloc((2 * m->symbol_count + 1) * sizeof(*s->spans));
    s->marks = kzalloc(s->size + 1);
    s->pending = kmalloc((s->size + 1) * sizeof(*s->pending));
    for (size_t i = 0; i < MODULE_POINTER_KINDS; i++) {
        pointers[i] = kmalloc((m->pointer_count + 1) * sizeof(**pointers));
        is_full &= pointers[i] != NULL;
    }
    if (!is_full || !s->spans || !s->marks || !s->pending)
        return false;
    collect_spans(s, m);
    collect_pointers(s, m, pointers);
    return true;
}

/* write_targets - write what was found to the table of @g, or only count if it has no memory
 * yet.
 */
static void write_targets(struct guest *g, const struct target_search *s)
{
    uint32_t base = (uint32_t)(s->addr - BASE);
    uint8_t before = 0;

    g->target_count = g->opaque_count = 0;
    for (uint32_t i = 0; i < s->size; before = s->marks[i++]) {
        uint8_t mark = s->marks[i];

        if (mark & TARGET_HERE && g->targets)
            g->targets[g->target_count] = base + i;
        g->target_count += (mark & TARGET_HERE) != 0;
        if (!(mark & TARGET_OPAQUE))
            continue;
        g->opaque_count += !(before & TARGET_OPAQUE);
        if (g->opaque && !(before & TARGET_OPAQUE))
            g->opaque[g->opaque_count - 1].start = base + i;
        if (g->opaque)
            g->opaque[g->opaque_count - 1].end = base + i + 1;
    }
}

static int find_targets(struct guest *g, const struct module_facts *m)
{
    struct target_pointer *pointers[MODULE_POINTER_KINDS];
    struct target_search s;
    int err = -ENOMEM;

    if (search_make(&s, m, pointers)) {
        targets_search(&s);
        write_targets(g, &s);
        g->targets = kmalloc((g->target_count + 1) * sizeof(*g->targets));
        g->opaque = kmalloc((g->opaque_count + 1) * sizeof(*g->opaque));
        if (g->targets && g->opaque) {
            write_targets(g, &s);
            err = 0;
        }
    }
    search_free(&s, pointers);
    return err;
}

/* Code of @m may go into the middle of functions elsewhere: where it comes there, it must
 * find the instructions.
 */
static int know_leads_of(const struct module_facts *m)
{
    const struct module_pointer *p = m->pointers;
    int err = 0;

    plat_lock(PLAT_PROBES);
    for (; p < m->pointers + m->pointer_count && !err; p++) {
        if (p->kind != MODULE_POINTER_ELSEWHERE)
            continue;
        unoptimize_region(p->to);
        err = targets_add(p->place, p->to);
    }
    plat_unlock(PLAT_PROBES);
    return err;
}

static void forget_leads_of(const struct module_facts *m)
{
    const struct module_pointer *p = m->pointers;
    bool removed = false;

    plat_lock(PLAT_PROBES);
    for (; p < m->pointers + m->pointer_count; p++)
        if (p->kind == MODULE_POINTER_ELSEWHERE)
            removed |= targets_remove(p->place, p->to);
    if (removed)
        optimize_retry();
    plat_unlock(PLAT_PROBES);
}

static const struct guest *guest_at(uintptr_t addr)
{
    const struct guest *g = guests;

    while (g && (addr < g->part.start || addr >= g->part.end))
        g = g->next;
    return g;
}

void port_module_targets(uintptr_t addr, struct plat_targets *out)
{
    const struct guest *g = guest_at(addr);

    *out = (struct plat_targets){ .base = BASE };
    if (!g)
        return;
    out->offsets = g->targets;
    out->count = g->target_count;
    out->opaque = g->opaque;
    out->opaque_count = g->opaque_count;
}

/* ---- the module's blacklist ---- */

static bool is_marked(const struct module_facts *m, uintptr_t addr)
{
    const uintptr_t *marks = (const uintptr_t *)m->nokprobe.start;
    struct plat_symbol sym;

    if (!is_in_module(m, addr))
        return blacklist_why(addr) || plat_is_entry(addr);
    if (addr >= m->kprobes_text && addr < m->kprobes_end)
        return true;
    if (plat_symbol_at(addr, &sym))
        return false;
    for (size_t i = 0; i < m->nokprobe.count; i++)
        if (marks[i] == sym.start)
            return true;
    return false;
}

/* leaves_marks - may @insn, of the marked function in [@start, @end), go to code that is not
 * marked? A call through a pointer may go anywhere. Only a jump by a table of places in the
 * function itself stays there.
 */
static bool leaves_marks(const struct module_facts *m, const struct insn *insn,
                         uintptr_t start, uintptr_t end)
{
    uint64_t to = insn->target;

    switch (insn->kind) {
    case INSN_CALL_REG:
    case INSN_CALL_MEM:
    case INSN_JMP_REG:
        return true;
    case INSN_JMP_MEM:
        if (insn->base != INSN_REG_NONE || insn->scale != 8 ||
            plat_read(&to, (uintptr_t)(intptr_t)insn->disp))
            return true;
        break;
    default:
        if (!insn_has_target(insn) ||
            (!is_in_module(m, to) && !plat_text_contains(to, 1)))
            return false;
    }
    return (to < start || to >= end) && !is_marked(m, to);
}

static int refuse_call(uintptr_t at, const struct insn *insn, char *why)
{
    struct plat_symbol from = { .name = "?" }, to = { .name = "?" };

    plat_symbol_at(at, &from);
    if (insn_has_target(insn)) {
        plat_symbol_at(insn->target, &to);
        snprintf(why, MODULE_WHY_MAX, "%s is marked NOKPROBE and calls %s, which is not",
                 from.name, to.name);
    } else {
        snprintf(why, MODULE_WHY_MAX,
                 "%s is marked NOKPROBE and calls through a pointer, which may lead to a "
                 "function that is not",
                 from.name);
    }
    return -ENOEXEC;
}

/* check_closed - check that the function in [@start, @end), which is marked NOKPROBE, goes
 * only to functions that are marked, too. Otherwise a probe could be hit while the function
 * runs. For the image tests/lint/check_nokprobe checks this. Bytes that do not decode may be
 * data, with code behind.
 */
static int check_closed(const struct module_facts *m, uintptr_t start, uintptr_t end,
                        char *why)
{
    struct insn insn;

    for (uintptr_t at = start; at < end; at += insn.len) {
        if (insn_decode(&insn, (const uint8_t *)at, end - at, at))
            insn.len = 1;
        else if (leaves_marks(m, &insn, start, end))
            return refuse_call(at, &insn, why);
    }
    return 0;
}

static int check_marks(const struct module_facts *m, char *why)
{
    const uintptr_t *marks = (const uintptr_t *)m->nokprobe.start;
    struct plat_symbol sym;
    int err = 0;

    for (size_t i = 0; i < m->nokprobe.count && !err; i++) {
        if (plat_symbol_at(marks[i], &sym) || sym.start != marks[i]) {
            snprintf(why, MODULE_WHY_MAX, "NOKPROBE of what is no function");
            return -ENOEXEC;
        }
        err = check_closed(m, sym.start, sym.start + sym.size, why);
    }
    return err ? err : check_closed(m, m->kprobes_text, m->kprobes_end, why);
}

/* is_boundary - is @addr the start of an instruction of @function, or its end? */
static bool is_boundary(const struct plat_symbol *function, uintptr_t addr)
{
    uintptr_t at = function->start, end = at + function->size;
    struct insn insn;

    for (; at < addr; at += insn.len)
        if (insn_decode(&insn, (const uint8_t *)at, end - at, at))
            return false;
    return at == addr;
}

/* check_ranges - check that each range consists of whole instructions of one function, that
 * this function is not marked as a whole, and that no two ranges overlap.
 */
static int check_ranges(const struct module_facts *m, char *why)
{
    const struct nokprobe_range *r = (const void *)m->nokprobe_ranges.start;
    struct plat_symbol sym = { .name = "?" };

    for (size_t i = 0; i < m->nokprobe_ranges.count; i++) {
        bool bad = plat_symbol_at(r[i].start, &sym) || is_marked(m, r[i].start) ||
                   !is_boundary(&sym, r[i].start) || !is_boundary(&sym, r[i].end) ||
                   r[i].end > sym.start + sym.size;

        for (size_t k = 0; k < i; k++)
            bad |= r[k].start < r[i].end && r[i].start < r[k].end;
        if (!bad)
            continue;
        snprintf(why, MODULE_WHY_MAX,
                 "a blacklisted range of %s is not made of its instructions, or "
                 "overlaps another one",
                 sym.name);
        return -ENOEXEC;
    }
    return 0;
}

/* make_ranges - fill in the marks of @g, with copies of the sentences: the engine may need
 * them after the module is gone.
 */
static int make_ranges(struct guest *g, const struct module_facts *m)
{
    const struct nokprobe_range *r = (const void *)m->nokprobe_ranges.start;
    size_t count = m->nokprobe_ranges.count;

    g->ranges = kmalloc((count + 1) * sizeof(*g->ranges));
    if (!g->ranges)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        g->ranges[i] =
            (struct nokprobe_range){ r[i].start, r[i].end, name_keep(r[i].why) };
        if (!g->ranges[i].why)
            return -ENOMEM;
    }
    g->ranges[count] = (struct nokprobe_range){ m->kprobes_text, m->kprobes_end, NULL };
    g->part.nokprobe = (struct nokprobe_marks){
        .functions = (const uintptr_t *)m->nokprobe.start,
        .function_count = m->nokprobe.count,
        .ranges = g->ranges,
        .range_count = count + 1,
        .why = port_marked_text,
    };
    return 0;
}

/* ---- a module is loaded ---- */

static void guest_free(struct guest *g)
{
    kfree(g->targets);
    kfree(g->opaque);
    kfree(g->ranges);
    kfree(g);
}

static struct guest *guest_new(const struct module_facts *m)
{
    struct guest *g = kzalloc(sizeof(*g));

    if (!g)
        return NULL;
    g->part = (struct text_part){ .start = m->text,
                                  .end = m->text_end,
                                  .memory = m->memory,
                                  .memory_end = m->memory_end };
    if (!find_targets(g, m) && !make_ranges(g, m))
        return g;
    guest_free(g);
    return NULL;
}

static void guest_link(struct guest *g)
{
    plat_lock(PLAT_PROBES);
    g->next = guests;
    guests = g;
    plat_unlock(PLAT_PROBES);
}

static struct guest *guest_unlink(uintptr_t start)
{
    struct guest **link = &guests, *g;

    plat_lock(PLAT_PROBES);
    while (*link && (*link)->part.start != start)
        link = &(*link)->next;
    g = *link;
    if (g)
        *link = g->next;
    plat_unlock(PLAT_PROBES);
    return g;
}

static int markers_come(struct guest *g, const struct module_facts *m, char *why)
{
    int err;

    g->markers = (struct marker_part){
        .module = m->name,
        .memory = m->memory,
        .memory_end = m->memory_end,
        .sites = (struct marker_site *)m->markers.start,
        .site_count = m->markers.count,
        .insns = (const struct marker_insn *)m->marker_insns.start,
        .insn_count = m->marker_insns.count,
    };
    err = marker_comes(&g->markers);
    if (err == -EINVAL) {
        plat_log("%s: a marker has another format than what waits for it", m->name);
        return 0;
    }
    if (err)
        snprintf(why, MODULE_WHY_MAX, "its markers cannot be switched on");
    return err;
}

static int keys_come(struct guest *g, const struct module_facts *m, char *why)
{
    int err;

    g->keys = (struct static_key_part){
        .insns = (const struct static_key_insn *)m->static_keys.start,
        .count = m->static_keys.count,
    };
    err = static_keys_come(&g->keys);
    if (err)
        snprintf(why, MODULE_WHY_MAX, "its static keys cannot be switched on");
    return err;
}

/* switches_come - the module's constructors have not run yet: switch on the static keys
 * and markers in its text that must be on.
 */
static int switches_come(struct guest *g, const struct module_facts *m, char *why)
{
    int err = keys_come(g, m, why);

    if (err)
        return err;
    err = markers_come(g, m, why);
    if (err)
        static_keys_go(&g->keys);
    return err;
}

static int port_module_comes(const struct module_facts *m, char *why)
{
    int err = check_marks(m, why);
    struct guest *g;

    if (!err)
        err = check_ranges(m, why);
    if (err)
        return err;
    g = guest_new(m);
    if (!g)
        return -ENOMEM;
    guest_link(g);
    err = text_comes(&g->part);
    if (err) {
        guest_free(guest_unlink(m->text));
        return err;
    }
    err = know_leads_of(m);
    if (!err)
        err = switches_come(g, m, why);
    if (err)
        text_goes(&g->part); /* port_module_gone() does the rest */
    return err;
}

/* ---- a module is unloaded ---- */

#define PORTION 64

struct own {
    const struct text_part *text;
    struct kprobe *ps[PORTION];
    size_t count;
};

static void collect_own(struct site *site, void *arg)
{
    struct own *own = arg;

    for (struct kprobe *p = site->probes; p && own->count < PORTION; p = p->next)
        if (text_owns(own->text, p))
            own->ps[own->count++] = p;
}

/* collect_all_own - find probes of the module that are still registered, at most PORTION.
 * Most modules take their probes out themselves, so this function searches only if
 * own_count is not 0. Return: how many were found.
 */
static size_t collect_all_own(struct own *own)
{
    own->count = 0;
    plat_lock(PLAT_PROBES);
    if (own->text->own_count) {
        registry_for_each(collect_own, own);
        collect_own(ext_waiting(), own);
    }
    plat_unlock(PLAT_PROBES);
    return own->count;
}

static void port_module_take(const struct module_facts *m, struct kprobe *p)
{
    struct plat_symbol sym = { .start = p->addr - p->offset,
                               .name = p->symbol_name ? p->symbol_name : "?" };
    struct kretprobe *rp = CONTAINER_OF(p, struct kretprobe, kp);

    plat_symbol_at(p->addr, &sym);
    plat_log("%s: its probe at %s+0x%lx is taken out with it", m->name, sym.name,
             p->addr - sym.start);
    if (p->kind == KPROBE_KIND_RETURN)
        unregister_kretprobes(&rp, 1);
    else
        unregister_kprobes(&p, 1);
}

/* The result stays valid until port_module_gone(), which the same thread calls. */
static struct guest *guest_of(const struct module_facts *m)
{
    struct guest *g;

    plat_lock(PLAT_PROBES);
    for (g = guests; g && g->part.start != m->text;)
        g = g->next;
    plat_unlock(PLAT_PROBES);
    return g;
}

static void port_module_leaves(const struct module_facts *m)
{
    struct guest *g = guest_of(m);
    struct own own = { .text = &g->part };

    while (collect_all_own(&own))
        for (size_t i = 0; i < own.count; i++)
            port_module_take(m, own.ps[i]);
    if (watch_leaves(m->memory, m->memory_end - m->memory))
        plat_log("%s: its watches are taken out with it", m->name);
    marker_leaves(&g->markers);
}

struct returns {
    uintptr_t start, end, found;
};

static void look_at_shadow(struct shadow *s, void *arg)
{
    struct returns *r = arg;

    for (const struct shadow_entry *e = s->entries + 1; e <= s->last; e++)
        if (e->below && shadow_ret(e) >= r->start && shadow_ret(e) < r->end)
            r->found = shadow_ret(e);
}

static uintptr_t returns_to(uintptr_t start, uintptr_t end)
{
    struct returns r = { start, end, 0 };

    plat_shadow_for_each(look_at_shadow, &r);
    return r.found;
}

static void port_module_goes(const struct module_facts *m)
{
    struct guest *g = guest_of(m);

    if (!g)
        return;
    marker_goes(&g->markers);
    static_keys_go(&g->keys);
    text_goes(&g->part);
}

static void port_module_gone(const struct module_facts *m)
{
    struct guest *g = guest_unlink(m->text);

    if (!g)
        return;
    forget_leads_of(m);
    text_gone(&g->part);
    guest_free(g);
}

/* boot_text_comes - make known the text that is freed when boot is over. It is a part of
 * the image, so its targets, marks and symbols are known. It has no markers and no static
 * keys: the link refuses them.
 */
static INIT int boot_text_comes(void)
{
    struct guest *g = kzalloc(sizeof(*g));

    if (!g)
        return -ENOMEM;
    g->part.start = (uintptr_t)_init_text;
    g->part.end = (uintptr_t)_init_text_end;
    g->part.memory = g->markers.memory = (uintptr_t)_init_text;
    g->part.memory_end = g->markers.memory_end = (uintptr_t)_init_end;
    guest_link(g);
    return text_comes(&g->part);
}

INIT int port_module_init(void)
{
    static const struct module_watch watch = {
        .comes = port_module_comes,
        .leaves = port_module_leaves,
        .original = copy_original,
        .returns_to = returns_to,
        .goes = port_module_goes,
        .gone = port_module_gone,
    };

    module_watch = &watch;
    return boot_text_comes();
}
