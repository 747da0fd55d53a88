/* commands_stat.c - `probe stat`: prints one NAME VALUE a line, for tools. The names are
 * listed in docs/probe-command.md and keep their meaning.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "probes/console/commands.h"
#include "probes/console/console_probe.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/explain/explain.h"
#include "probes/explain/totals.h"
#include "probes/jump/detour_specialized.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/many/census.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/live/live.h"

static void print_figure(struct shell *sh, const char *name, uint64_t value)
{
    shell_printf(sh, "%s %lu\n", name, value);
}

static void print_stat_part(struct shell *sh, const char *name, const char *part,
                            uint64_t value)
{
    shell_printf(sh, "%s.%s %lu\n", name, part, value);
}

static void print_percent(struct shell *sh, const char *name, uint64_t part,
                          uint64_t whole)
{
    uint64_t share = whole ? part * 10000 / whole : 0;

    shell_printf(sh, "%s %lu.%02lu\n", name, share / 100, share % 100);
}

/* ---- probes ---- */

struct count {
    uint64_t probes, disabled, armed, jumps, specialized, denied;
    uint64_t no_jump[PROBE_REASON_COUNT];
};

static void count_site(struct site *site, void *arg)
{
    struct count *c = arg;

    c->armed += site_is_armed(site);
    c->jumps += site->state == SITE_OPTIMIZED && site->probes;
    c->specialized += site_detour(site) && jump_site(site)->specialized;
    c->denied += detour_specialized_is_denied(site);
    c->no_jump[jump_site(site)->jump_why] += site->state == SITE_ARMED;
    for (const struct kprobe *p = site->probes; p; p = p->next) {
        c->probes++;
        c->disabled += (p->flags & KPROBE_FLAG_DISABLED) != 0;
    }
}

/* print_jumps - print how many instructions have a jump, of all that may carry a probe.
 * The share of text that is on the blacklist is printed apart. no_jump[PROBE_OK] counts
 * the sites that wait for the optimizer.
 */
static void print_jumps(struct shell *sh, const struct count *c,
                        const struct census *text)
{
    uint64_t listed = text->refused[PROBE_BLACKLISTED] + text->refused[PROBE_ENTRY_CODE];
    uint64_t rest = text->boundaries - listed;
    uint64_t share = c->jumps * 10000 / rest;

    shell_printf(sh, "jumps %lu of %lu (%lu.%02lu %%)\n", c->jumps, rest, share / 100,
                 share % 100);
    print_percent(sh, "blacklist.percent", listed, text->boundaries);
    print_figure(sh, "jumps.waiting", c->no_jump[PROBE_OK]);
    for (unsigned reason = PROBE_OK + 1; reason < PROBE_REASON_COUNT; reason++)
        if (c->no_jump[reason])
            print_stat_part(sh, "jumps.refused",
                            probe_reason_name((enum probe_reason)reason),
                            c->no_jump[reason]);
}

static void print_optimizer(struct shell *sh, const struct count *c)
{
    struct optimize_stats o;

    optimize_stats_get(&o);
    print_figure(sh, "jumps.evicted", o.evicted);
    print_figure(sh, "jumps.linked", link_count());
    print_figure(sh, "jumps.made", o.optimized);
    print_figure(sh, "jumps.specialized", c->specialized);
    print_figure(sh, "jumps.specialized_denied", c->denied);
    print_figure(sh, "jumps.passes", o.passes);
    print_figure(sh, "pads", pad_count());
    print_figure(sh, "pads.pages", pad_pages());
    print_figure(sh, "pads.frames", pad_frames());
}

/* print_memory - print the memory of the engine by its purpose. */
static void print_memory(struct shell *sh, size_t sites)
{
    size_t registry, slots, specialized, pads, all;

    plat_lock(PLAT_PROBES);
    registry = registry_bytes();
    slots = insn_slot_pages() * 4096;
    specialized = insn_slot_detour_bytes();
    pads = pad_bytes();
    plat_unlock(PLAT_PROBES);
    all = registry + slots + pads + sites * ext_site_size();
    print_figure(sh, "memory", all);
    print_figure(sh, "memory.registry", registry);
    print_figure(sh, "memory.slots", slots - specialized);
    print_figure(sh, "memory.specialized", specialized);
    print_figure(sh, "memory.pads", pads);
    print_figure(sh, "memory.sites", sites * ext_site_size());
    print_figure(sh, "memory.per_site", sites ? all / sites : 0);
    print_figure(sh, "memory.counters", percpu_counters_bytes());
}

static void print_probes(struct shell *sh, const struct census *text)
{
    struct count c = { 0 };
    size_t sites;

    plat_lock(PLAT_PROBES);
    registry_for_each(count_site, &c);
    sites = registry_count();
    plat_unlock(PLAT_PROBES);
    print_figure(sh, "enabled", kprobes_are_on());
    print_figure(sh, "probes", c.probes);
    print_figure(sh, "probes.disabled", c.disabled);
    print_figure(sh, "sites", sites);
    print_figure(sh, "armed", c.armed);
    print_jumps(sh, &c, text);
    print_optimizer(sh, &c);
    print_memory(sh, sites);
}

/* ---- hits ---- */

/* Print how many events the tracer has, and how much their hits have lost, by cause. */
static void print_events(struct shell *sh)
{
    uint64_t lost[LIVE_LOSSES] = { 0 }, events = 0;
    const struct live_event *e = NULL;

    trace_lock();
    while ((e = live_event_next(e)) != NULL) {
        events++;
        for (unsigned cause = 0; cause < LIVE_LOSSES; cause++)
            lost[cause] += live_lost(e, cause);
    }
    trace_unlock();
    print_figure(sh, "trace.events", events);
    for (unsigned cause = 0; cause < LIVE_LOSSES; cause++)
        print_stat_part(sh, "trace", live_loss_name(cause), lost[cause]);
}

/* print_watches - print the hits of the watches that the console has set. */
static void print_watches(struct shell *sh)
{
    struct console_probe *cp = NULL;
    uint64_t hits = 0, misses = 0;
    unsigned taken = 0;

    for (unsigned i = 0; i < WATCH_SLOTS; i++)
        taken += watch_owner(i) != NULL;
    console_probe_lock();
    while ((cp = console_probe_next(cp)) != NULL) {
        if (cp->kind != CONSOLE_WATCH)
            continue;
        hits += watch_hits(&cp->watch);
        misses += watch_misses(&cp->watch);
    }
    console_probe_unlock();
    print_figure(sh, "watch.registers", taken);
    print_figure(sh, "watch.hits", hits);
    print_figure(sh, "watch.misses", misses);
}

static void print_hits(struct shell *sh)
{
    struct probe_totals t;
    uint64_t hits = 0, misses = 0;

    account_totals(&t);
    for (unsigned way = 0; way < WAYS; way++)
        hits += t.ran[way];
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        misses += t.missed[cause];
    print_figure(sh, "traps", t.traps);
    print_figure(sh, "hits", hits);
    print_figure(sh, "hits.boost", t.ran[WAY_BOOST]);
    print_figure(sh, "hits.step", t.ran[WAY_STEP]);
    print_figure(sh, "hits.emulate", t.ran[WAY_EMULATE]);
    print_figure(sh, "hits.jump", t.ran[WAY_JUMP]);
    print_figure(sh, "misses", misses);
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        print_stat_part(sh, "misses", probe_miss_name((enum probe_miss)cause),
                        t.missed[cause]);
    print_figure(sh, "retries", t.retries);
    print_figure(sh, "handler_faults", t.handler_faults);
    print_watches(sh);
    print_events(sh);
    print_figure(sh, "cache.misses", t.cache_misses);
    print_percent(sh, "cache.hit_percent",
                  t.traps > t.cache_misses ? t.traps - t.cache_misses : 0, t.traps);
}

/* ---- text ---- */

static void add_up(const struct plat_symbol *function UNUSED,
                   const struct nokprobe_range *range, void *arg)
{
    size_t *bytes = arg;

    *bytes += range->end - range->start;
}

static void print_text_stat(struct shell *sh, const struct census *c)
{
    size_t blacklisted = 0;

    census_blacklist(add_up, &blacklisted);
    print_figure(sh, "functions", c->functions);
    print_figure(sh, "boundaries", c->boundaries);
    print_figure(sh, "boundaries.accepting", c->refused[PROBE_OK]);
    print_figure(sh, "boundaries.refused", c->boundaries - c->refused[PROBE_OK]);
    for (unsigned reason = PROBE_OK + 1; reason < PROBE_REASON_COUNT; reason++)
        if (c->refused[reason])
            print_stat_part(sh, "refused", probe_reason_name((enum probe_reason)reason),
                            c->refused[reason]);
    print_figure(sh, "blacklist.bytes", blacklisted);
    print_percent(sh, "blacklist.bytes_percent", blacklisted, census_text_bytes());
}

static int probe_stat_run(struct shell *sh, int argc, char **argv)
{
    const struct census *c;
    int err;

    if (argc)
        return probe_usage(sh, &probe_command_stat, argc, argv);
    err = census_get(shell_stop, sh, &c);
    if (err)
        return shell_error(sh, err, "probe: stat");
    print_probes(sh, c);
    print_hits(sh);
    print_text_stat(sh, c);
    shell_printf(sh, "step %s\n", explain_way_name(WAY_STEP));
    return 0;
}

const struct probe_command probe_command_stat = {
    "stat", "", "print numbers, one NAME VALUE a line", probe_stat_run, NULL,
};
