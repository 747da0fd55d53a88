/* files.c - the files of the engine: /sys/kernel/debug/kprobes, as in Linux, and the
 * files in /proc/sys/debug that choose between its engines.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/fs/vfs.h"
#include "probes/console/console_probe.h"
#include "probes/console/place.h"
#include "probes/core/extend.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/jump/optimize.h"
#include "probes/kprobe.h"
#include "probes/many/census.h"
#include "probes/many/walk.h"
#include "probes/port/port.h"
#include "probes/text/text_engine.h"
#include "probes/text/text_phases.h"

#include <string.h>

/* ---- list: a line for each kprobe, by address ---- */

static const struct {
    uint32_t flag;
    const char *text;
} flags[] = {
    { KPROBE_FLAG_GONE, "[GONE]" },
    { KPROBE_FLAG_DISABLED, "[DISABLED]" },
    { KPROBE_FLAG_OPTIMIZED, "[OPTIMIZED]" },
};

static void print_kprobe(struct seq *s, const struct kprobe *p)
{
    struct plat_symbol sym = { .start = p->addr, .name = "?" };

    plat_symbol_at(p->addr, &sym);
    if (p->flags & KPROBE_FLAG_GONE)
        sym = (struct plat_symbol){ .start = p->addr - p->offset,
                                    .name = p->symbol_name ? p->symbol_name : "?" };
    seq_printf(s, "%016lx  %c  %s+0x%lx  %s ", p->addr, kprobe_kind(p), sym.name,
               p->addr - sym.start, sym.module ? sym.module : " ");
    for (size_t i = 0; p->flags && i < ARRAY_LEN(flags); i++)
        if (p->flags & flags[i].flag)
            seq_puts(s, flags[i].text);
    seq_puts(s, "\n");
}

struct listing {
    struct seq *s;
    uintptr_t done; /* all probes below this address are printed; functions can overlap */
};

/* print_function - print the probes of one function, in order of address: the registry is
 * asked for each byte of the function. To collect all probes and to sort them would execute
 * more code that can carry probes. If every instruction carries one, each instruction of
 * such code traps. registry_find() can carry no probe.
 */
static bool print_function(const struct plat_symbol *function, void *arg)
{
    uintptr_t end = function->start + function->size;
    struct listing *l = arg;

    if (l->done < function->start)
        l->done = function->start;
    for (; l->done < end; l->done++) {
        const struct site *site = registry_find(l->done);

        for (const struct kprobe *p = site ? site->probes : NULL; p; p = p->next)
            print_kprobe(l->s, p);
    }
    return !l->s->err;
}

static int list_show(struct seq *s, void *priv UNUSED)
{
    struct listing l = { .s = s };

    plat_lock(PLAT_PROBES);
    walk_functions(NULL, print_function, &l);
    for (const struct kprobe *p = ext_waiting()->probes; p; p = p->next)
        print_kprobe(s, p);
    plat_unlock(PLAT_PROBES);
    return 0;
}

/* ---- blacklist ---- */

static void show_range(const struct plat_symbol *function,
                       const struct nokprobe_range *range, void *arg)
{
    seq_printf(arg, function->module ? "0x%lx-0x%lx\t%s [%s]\n" : "0x%lx-0x%lx\t%s\n",
               range->start, range->end, function->name, function->module);
}

static int blacklist_show(struct seq *s, void *priv UNUSED)
{
    census_blacklist(show_range, s);
    return 0;
}

/* ---- changes: a line for each phase ---- */

static void show_phase(struct seq *s, uint64_t number, const struct text_phase *p)
{
    char at[PLACE_TEXT_MAX];

    seq_printf(s, "%lu %lu.%06lu %s %u %zu %s", number, p->ns / 1000000000,
               p->ns / 1000 % 1000000, text_phase_name(p->step), p->level, p->count,
               place_text(at, p->first));
    for (unsigned cpu = 0; cpu < p->cpus; cpu++) {
        if (p->answered[cpu] == TEXT_PHASE_HALTED)
            seq_printf(s, " halted");
        else
            seq_printf(s, " %u", p->answered[cpu]);
    }
    seq_puts(s, "\n");
}

static int changes_show(struct seq *s, void *priv UNUSED)
{
    uint64_t end = text_phases_count();
    struct text_phase p;
    bool known;

    seq_puts(s, "# number seconds step level places lowest ns-to-answer-of-each-CPU\n");
    for (uint64_t n = end > TEXT_PHASES_LEN ? end - TEXT_PHASES_LEN : 0; n < end; n++) {
        plat_lock(PLAT_TEXT);
        known = text_phases_get(n, &p);
        plat_unlock(PLAT_TEXT);
        if (known)
            show_phase(s, n, &p);
    }
    return 0;
}

/* ---- enabled ---- */

static int enabled_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%d\n", kprobes_are_on());
    return 0;
}

static long enabled_write(void *priv UNUSED, const char *text, size_t len)
{
    bool on;
    int err = parse_bool(text, len, &on);

    if (!err)
        err = kprobes_switch(on);
    return err ? err : (long)len;
}

/* ---- one of several words ---- */

struct choice {
    const char *const *words;
    size_t count;
    int (*set)(unsigned word);
    unsigned (*get)(void);
};

static int choice_show(struct seq *s, void *priv)
{
    const struct choice *c = priv;

    seq_printf(s, "%s\n", c->words[c->get()]);
    return 0;
}

/* word_len - how many of the @len bytes of @text are left without a line feed at the end? */
static size_t word_len(const char *text, size_t len)
{
    return len && text[len - 1] == '\n' ? len - 1 : len;
}

static long choice_write(void *priv, const char *text, size_t len)
{
    const struct choice *c = priv;

    for (unsigned i = 0; i < c->count; i++) {
        int err;

        if (strlen(c->words[i]) != word_len(text, len) ||
            memcmp(text, c->words[i], word_len(text, len)) != 0)
            continue;
        err = c->set(i);
        console_note_change();
        return err ? err : (long)len;
    }
    return -EINVAL;
}

/* ---- kprobes-step, text-poke ---- */

static const char *const step_words[] = { [STEP_INT3] = "int3", [STEP_TF] = "tf" };

static int step_set(unsigned word)
{
    step_set_engine((enum step_engine)word);
    return 0;
}

static unsigned step_get(void)
{
    return step_get_engine();
}

static struct choice step_choice = { step_words, ARRAY_LEN(step_words), step_set,
                                     step_get };

static int poke_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%s\n", text_engine_get()->name);
    return 0;
}

static long poke_write(void *priv UNUSED, const char *text, size_t len)
{
    const struct text_engine *engine = text_engine_find(text, word_len(text, len));

    if (!engine)
        return -EINVAL;
    text_engine_set(engine);
    console_note_change();
    return (long)len;
}

INIT int port_choose_text_engine(const char *word)
{
    return poke_write(NULL, word, strlen(word)) < 0 ? -EINVAL : 0;
}

/* ---- kprobes-jump, kprobes-optimization: a write returns when it is done ---- */

static const char *const jump_words[] = {
    [OPTIMIZE_PUN] = "pun", [OPTIMIZE_REGION] = "region", [OPTIMIZE_OFF] = "off"
};

static int jump_set(unsigned word)
{
    return optimize_set_method((enum optimize_method)word);
}

static unsigned jump_get(void)
{
    return optimize_get_method();
}

static struct choice jump_choice = { jump_words, ARRAY_LEN(jump_words), jump_set,
                                     jump_get };

INIT int port_choose_jump(const char *word)
{
    return choice_write(&jump_choice, word, strlen(word)) < 0 ? -EINVAL : 0;
}

/* As in Linux, the file takes only the numbers 0 and 1. */
static const char *const optimization_words[] = { "0", "1" };

static int optimization_set(unsigned word)
{
    return optimize_switch(word);
}

static unsigned optimization_get(void)
{
    return optimize_is_on();
}

static struct choice optimization_choice = { optimization_words,
                                             ARRAY_LEN(optimization_words),
                                             optimization_set, optimization_get };

/* ---- the trees ---- */

static const struct vfs_file kprobes_files[] = {
    { .name = "list", .mode = 0400, .show = list_show },
    { .name = "blacklist", .mode = 0400, .show = blacklist_show },
    { .name = "changes", .mode = 0400, .show = changes_show },
    { .name = "enabled", .mode = 0600, .show = enabled_show, .write = enabled_write },
};

static const struct vfs_file sysctl_files[] = {
    { .name = "kprobes-step",
      .mode = 0644,
      .show = choice_show,
      .write = choice_write,
      .priv = &step_choice },
    { .name = "text-poke", .mode = 0644, .show = poke_show, .write = poke_write },
    { .name = "kprobes-jump",
      .mode = 0644,
      .show = choice_show,
      .write = choice_write,
      .priv = &jump_choice },
    { .name = "kprobes-optimization",
      .mode = 0644,
      .show = choice_show,
      .write = choice_write,
      .priv = &optimization_choice },
};

INIT int probes_add_files(void)
{
    int err = vfs_add_tree("/sys/kernel/debug/kprobes", kprobes_files,
                           ARRAY_LEN(kprobes_files));

    if (err)
        return err;
    return vfs_add_tree("/proc/sys/debug", sysctl_files, ARRAY_LEN(sysctl_files));
}
