/* commands_list.c - `probe list`, `probe blacklist`: what there is, and what there can never
 * be.
 */
#include "kernel/base/err.h"
#include "probes/console/commands.h"
#include "probes/console/console_probe.h"
#include "probes/core/life.h"
#include "probes/explain/explain.h"
#include "probes/many/census.h"

#include <stdio.h>

/* ---- list ---- */

static const char *way_name(const struct kprobe *p)
{
    if (!p->site || p->flags & KPROBE_FLAG_GONE)
        return "-";
    return p->site->state == SITE_OPTIMIZED
               ? "jump"
               : explain_way_name((enum site_way)p->site->way);
}

static const char *flags_text(const struct kprobe *p)
{
    if (p->flags & KPROBE_FLAG_GONE) /* without an address it never had any */
        return p->addr ? " [GONE]" : " [PENDING]";
    if (p->flags & KPROBE_FLAG_TRIPPED)
        return " [TRIPPED]"; /* switched off because its handler has faulted */
    return p->flags & KPROBE_FLAG_DISABLED ? " [DISABLED]" : "";
}

static void print_returns(struct shell *sh, const struct console_returns *returns)
{
    uint64_t count = READ_ONCE(returns->count);

    shell_printf(sh, " returns=%lu", count);
    if (count)
        shell_printf(sh, " value=0x%lx ns=%lu mean_ns=%lu",
                     READ_ONCE(returns->last_value), READ_ONCE(returns->last_ns),
                     READ_ONCE(returns->total_ns) / count);
}

static void print_one(struct shell *sh, const struct console_probe *cp)
{
    const struct kprobe *p = cp->one_ptr;
    bool is_gone = p->flags & KPROBE_FLAG_GONE;
    uint64_t missed = READ_ONCE(p->nmissed) + READ_ONCE(cp->ret.nmissed);
    char at[PLACE_TEXT_MAX];

    shell_printf(sh, "%-8s %016lx %c %-9s %10lu %8lu  %s%s", cp->name, p->addr,
                 kprobe_kind(p), way_name(p), kprobe_hits(p), missed,
                 is_gone ? place_own_text(at, &cp->place) : place_text(at, p->addr),
                 flags_text(p));
    if (p->post_handler)
        shell_printf(sh, " post=%lu", READ_ONCE(cp->posts));
    if (cp->kind == CONSOLE_RETURN)
        print_returns(sh, &cp->returns);
    shell_printf(sh, "\n");
}

/* set_flags_text - [DISABLED], or how many of the set are. */
static const char *set_flags_text(char *buf, size_t size, const struct console_probe *cp)
{
    size_t off = console_probe_disabled(cp);

    if (off && off < cp->count)
        snprintf(buf, size, " [%zu DISABLED]", off);
    else
        snprintf(buf, size, "%s", off ? " [DISABLED]" : "");
    return buf;
}

static void print_set(struct shell *sh, const struct console_probe *cp)
{
    char count[32], flags[32];
    uint64_t hits, missed;

    console_probe_sums(cp, &hits, &missed);
    snprintf(count, sizeof(count), "%zu probes", cp->count);
    shell_printf(sh, "%-8s %-16s k %-9s %10lu %8lu  %s of %s%s\n", cp->name, count, "set",
                 hits, missed, cp->kind == CONSOLE_ENTRIES ? "entries" : "instructions",
                 cp->pattern, set_flags_text(flags, sizeof(flags), cp));
}

static int list_run(struct shell *sh, int argc, char **argv)
{
    struct console_probe *cp = NULL;

    if (argc)
        return probe_usage(sh, &probe_command_list, argc, argv);
    if (!kprobes_are_on())
        shell_printf(sh, "kprobes are switched off: none of these is armed\n");
    console_probe_lock();
    shell_printf(sh, "%-8s %-16s K %-9s %10s %8s  %s\n", "NAME", "ADDRESS", "TIER",
                 "HITS", "MISSES", "PLACE");
    while ((cp = console_probe_next(cp)) != NULL) {
        if (cp->kind == CONSOLE_ONE || cp->kind == CONSOLE_RETURN)
            print_one(sh, cp);
        else
            print_set(sh, cp);
    }
    console_probe_unlock();
    return 0;
}

const struct probe_command probe_command_list = {
    "list", "", "show the probes and their hits", list_run, NULL,
};

/* ---- blacklist ---- */

struct sum {
    struct shell *sh;
    size_t count, bytes;
};

static void print_range_reason(const struct plat_symbol *function,
                               enum probe_reason reason, void *arg)
{
    struct sum *sum = arg;

    sum->count++;
    sum->bytes += function->size;
    shell_printf(sum->sh, "0x%lx-0x%lx %5zu %-28s %s\n", function->start,
                 function->start + function->size, function->size, function->name,
                 probe_reason_text(reason));
}

static int blacklist_run(struct shell *sh, int argc, char **argv)
{
    struct sum sum = { .sh = sh };
    size_t text, part;

    if (argc)
        return probe_usage(sh, &probe_command_blacklist, argc, argv);
    census_blacklist(print_range_reason, &sum);
    text = census_text_bytes();
    part = sum.bytes * 10000 / text;
    shell_printf(sh, "%zu ranges, %zu of %zu bytes of kernel text: %zu.%02zu %%\n",
                 sum.count, sum.bytes, text, part / 100, part % 100);
    return 0;
}

const struct probe_command probe_command_blacklist = {
    "blacklist", "", "show what can never carry a probe", blacklist_run, NULL,
};
