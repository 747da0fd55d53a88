/* commands_list.c - `probe list`, `probe hot` and `probe blacklist`: print the probes,
 * the places with the most hits, and the text that can never carry a probe.
 */
#include "kernel/base/err.h"
#include "kernel/debug/params.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"
#include "probes/console/commands.h"
#include "probes/console/commands_watch.h"
#include "probes/console/console_probe.h"
#include "probes/core/life.h"
#include "probes/explain/explain.h"
#include "probes/many/census.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/live/live.h"

#include <extra.h>
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
    if (p->flags & KPROBE_FLAG_GONE) /* no address: the probe waits for its symbol */
        return p->addr ? " [GONE]" : " [PENDING]";
    if (p->flags & KPROBE_FLAG_TRIPPED)
        return " [TRIPPED]"; /* disabled because its handler has faulted */
    return p->flags & KPROBE_FLAG_DISABLED ? " [DISABLED]" : "";
}

/* print_returned - print a value that the function at @addr has returned, by the type of
 * the function.
 */
static void print_returned(struct shell *sh, uintptr_t addr, uint64_t value)
{
    size_t len;
    const char *type = params_return(addr, &len);
    unsigned unused = 64; /* high bits of the register that the function need not set */

    if (!type || *type != 's' || len > 3) { /* unsigned, a pointer or unknown */
        shell_printf(sh, " value=0x%lx", value);
        return;
    }
    for (size_t i = 1, bits = 0; i < len; i++) {
        bits = bits * 10 + (size_t)(type[i] - '0');
        unused = 64 - (unsigned)bits;
    }
    shell_printf(sh, " value=%ld", (int64_t)(value << unused) >> unused);
}

static void print_returns(struct shell *sh, uintptr_t addr,
                          const struct console_returns *returns)
{
    uint64_t count = READ_ONCE(returns->count);

    shell_printf(sh, " returns=%lu", count);
    if (!count)
        return;
    print_returned(sh, addr, READ_ONCE(returns->last_value));
    shell_printf(sh, " ns=%lu mean_ns=%lu", READ_ONCE(returns->last_ns),
                 READ_ONCE(returns->total_ns) / count);
}

/* print_line - print the line of @p without its line end. @missed: misses that @p does
 * not count itself.
 */
static void print_line(struct shell *sh, const char *name, const struct kprobe *p,
                       const char *place, uint64_t hits, uint64_t missed)
{
    shell_printf(sh, "%-8s %016lx %c %-9s %10lu %8lu  %s%s", name, p->addr,
                 kprobe_kind(p), way_name(p), hits, READ_ONCE(p->nmissed) + missed, place,
                 flags_text(p));
}

static void print_single(struct shell *sh, const struct console_probe *cp)
{
    const struct kprobe *p = cp->one_ptr;
    char at[PLACE_TEXT_MAX];

    print_line(sh, cp->name, p,
               p->flags & KPROBE_FLAG_GONE ? place_own_text(at, &cp->place)
                                           : place_text(at, p->addr),
               console_probe_hits(cp, p),
               READ_ONCE(cp->ret.nmissed) + console_probe_hidden(cp, p));
    if (p->post_handler)
        shell_printf(sh, " post=%lu", READ_ONCE(cp->posts));
    if (cp->takes && p->program->first)
        shell_printf(sh, " taken=%lu", program_sum(p->program, LINE_TAKEN));
    if (cp->kind == CONSOLE_RETURN)
        print_returns(sh, cp->one_ptr->addr, &cp->returns);
    shell_printf(sh, "\n");
}

/* set_flags_text - write " [DISABLED]" if all probes of the set are disabled, or how many
 * of them are.
 */
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

static void print_one(struct shell *sh, const struct console_probe *cp)
{
    switch (cp->kind) {
    case CONSOLE_ONE:
    case CONSOLE_RETURN:
        print_single(sh, cp);
        break;
    case CONSOLE_WATCH:
        watch_print(sh, cp);
        break;
    case CONSOLE_INSTRUCTIONS:
    case CONSOLE_ENTRIES:
        print_set(sh, cp);
    }
}

static void print_member(struct shell *sh, const char *name, const struct kprobe *p,
                         uint64_t hits, uint64_t missed)
{
    char at[PLACE_TEXT_MAX];

    print_line(sh, name, p, place_text(at, p->addr), hits, missed);
    shell_printf(sh, "\n");
}

static void print_titles(struct shell *sh)
{
    shell_printf(sh, "%-8s %-16s K %-9s %10s %8s  %s\n", "NAME", "ADDRESS", "TIER",
                 "HITS", "MISSES", "PLACE");
}

/* list_members - print a line for each probe of the entry @name. */
static int list_members(struct shell *sh, const char *name)
{
    const struct console_probe *cp;
    int err;

    console_probe_lock();
    cp = console_probe_find(name);
    if (cp)
        print_titles(sh);
    if (cp && !cp->room)
        print_one(sh, cp);
    else
        for (size_t i = 0; cp && i < cp->count && !shell_interrupted(sh); i++)
            print_member(sh, cp->name, cp->ps[i], console_probe_hits(cp, cp->ps[i]),
                         console_probe_hidden(cp, cp->ps[i]));
    err = cp ? 0 : console_probe_unknown(sh, name);
    console_probe_unlock();
    return err;
}

static int list_run(struct shell *sh, int argc, char **argv)
{
    struct console_probe *cp = NULL;

    if (argc == 1 && argv[0][0] != '-')
        return list_members(sh, argv[0]);
    if (argc)
        return probe_usage(sh, &probe_command_list, argc, argv);
    if (!kprobes_are_on())
        shell_printf(sh, "kprobes are switched off: none of these is armed\n");
    console_probe_lock();
    print_titles(sh);
    while ((cp = console_probe_next(cp)) != NULL)
        print_one(sh, cp);
    console_probe_unlock();
    return 0;
}

const struct probe_command probe_command_list = {
    "list", "[NAME]", "show the probes and their hits, or each of a set", list_run, NULL,
};

/* ---- hot ---- */

#define HOT_LINES 10 /* lines, if the user gives no number */
#define HOT_MAX 100

/* The probes with the most hits, in descending order. */
struct hot {
    struct {
        const char *name;
        const struct kprobe *p;
        uint64_t hits, missed;
    } row[HOT_MAX];
    size_t count, max;
};

/* @missed: misses that @p does not count itself */
static void hot_offer(struct hot *hot, const char *name, const struct kprobe *p,
                      uint64_t hits, uint64_t missed)
{
    size_t i;

    if (!hits || (hot->count == hot->max && hits <= hot->row[hot->max - 1].hits))
        return;
    if (hot->count < hot->max)
        hot->count++;
    for (i = hot->count - 1; i && hot->row[i - 1].hits < hits; i--)
        hot->row[i] = hot->row[i - 1];
    hot->row[i].name = name;
    hot->row[i].p = p;
    hot->row[i].hits = hits;
    hot->row[i].missed = missed;
}

/* hot_find - offer all probes of the console, those of sets one by one, and the probes of
 * events.
 */
static void hot_find(struct hot *hot)
{
    const struct live_probe *live = NULL;
    struct console_probe *cp = NULL;

    while ((cp = console_probe_next(cp)) != NULL)
        for (size_t i = 0; i < cp->count; i++)
            hot_offer(hot, cp->name, cp->ps[i], console_probe_hits(cp, cp->ps[i]),
                      console_probe_hidden(cp, cp->ps[i]));
    while ((live = live_probe_next(live)) != NULL)
        if (live->is_registered)
            hot_offer(hot, live->def->event, &live->rp.kp, kprobe_hits(&live->rp.kp), 0);
}

static int hot_run(struct shell *sh, int argc, char **argv)
{
    uint64_t max = HOT_LINES;
    struct hot *hot;

    if (argc > 1 || (argc && (parse_u64(argv[0], 10, &max) || !max || max > HOT_MAX)))
        return probe_usage(sh, &probe_command_hot, argc, argv);
    hot = kzalloc(sizeof(*hot));
    if (!hot)
        return shell_error(sh, ENOMEM, "probe: hot");
    hot->max = max;
    console_probe_lock();
    trace_lock();
    hot_find(hot);
    print_titles(sh);
    for (size_t i = 0; i < hot->count; i++)
        print_member(sh, hot->row[i].name, hot->row[i].p, hot->row[i].hits,
                     hot->row[i].missed);
    trace_unlock();
    console_probe_unlock();
    kfree(hot);
    return 0;
}

const struct probe_command probe_command_hot = {
    "hot",   "[N]", "show the places that were hit most, of sets and events too",
    hot_run, NULL,
};

/* ---- blacklist ---- */

struct sum {
    struct shell *sh;
    size_t count, bytes;
};

/* print_range_reason - print a range of the blacklist. A part of a function is printed as
 * function+OFFSET, even with offset 0: a name alone means the whole function.
 */
static void print_range_reason(const struct plat_symbol *function,
                               const struct nokprobe_range *range, void *arg)
{
    struct sum *sum = arg;
    size_t len = range->end - range->start;
    char place[PLACE_TEXT_MAX + MODULE_NAME_MAX];
    size_t n = (size_t)scnprintf(place, sizeof(place), "%s", function->name);

    if (len != function->size)
        n += (size_t)scnprintf(place + n, sizeof(place) - n, "+0x%lx",
                               range->start - function->start);
    if (function->module)
        scnprintf(place + n, sizeof(place) - n, " [%s]", function->module);
    sum->count++;
    sum->bytes += len;
    shell_printf(sum->sh, "0x%lx-0x%lx %5zu %-28s %s\n", range->start, range->end, len,
                 place, range->why);
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
