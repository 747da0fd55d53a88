/* files.c - what the engine shows and lets be switched by files: /sys/kernel/debug/kprobes,
 * as Linux has it, and the choice of the step engine.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/fs/vfs.h"
#include "probes/life.h"
#include "probes/port/census.h"
#include "probes/port/port.h"
#include "probes/registry.h"

#include <stdlib.h>
#include <string.h>

/* ---- list: a line for each kprobe, by address ---- */

struct sites {
    const struct site **sites;
    size_t count;
};

static void collect(struct site *site, void *arg)
{
    struct sites *all = arg;

    all->sites[all->count++] = site;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (*(const struct site *const *)a)->addr;
    uintptr_t y = (*(const struct site *const *)b)->addr;

    return (x > y) - (x < y);
}

static void print_kprobe(struct seq *s, const struct kprobe *p)
{
    struct plat_symbol sym = { .start = p->addr, .name = "?" };

    plat_symbol_at(p->addr, &sym);
    seq_printf(s, "%016lx  k  %s+0x%lx    %s%s%s\n", p->addr, sym.name,
               p->addr - sym.start, p->flags & KPROBE_FLAG_GONE ? "[GONE]" : "",
               p->flags & KPROBE_FLAG_DISABLED ? "[DISABLED]" : "",
               p->flags & KPROBE_FLAG_OPTIMIZED ? "[OPTIMIZED]" : "");
}

static int list_show_locked(struct seq *s)
{
    struct sites all = { .sites =
                             plat_alloc((registry_count() + 1) * sizeof(struct site *)) };

    if (!all.sites)
        return -ENOMEM;
    registry_for_each(collect, &all);
    qsort(all.sites, all.count, sizeof(all.sites[0]), by_address);
    for (size_t i = 0; i < all.count; i++)
        for (const struct kprobe *p = all.sites[i]->probes; p; p = p->next)
            print_kprobe(s, p);
    plat_free(all.sites);
    return 0;
}

static int list_show(struct seq *s, void *priv UNUSED)
{
    int err;

    plat_lock(PLAT_PROBES);
    err = list_show_locked(s);
    plat_unlock(PLAT_PROBES);
    return err;
}

/* ---- blacklist ---- */

static void print_range(const struct plat_symbol *function,
                        enum probe_reason reason UNUSED, void *arg)
{
    seq_printf(arg, "0x%lx-0x%lx\t%s\n", function->start,
               function->start + function->size, function->name);
}

static int blacklist_show(struct seq *s, void *priv UNUSED)
{
    census_blacklist(print_range, s);
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

/* ---- kprobes-step ---- */

static const char *const step_names[] = { [STEP_INT3] = "int3", [STEP_TF] = "tf" };

static int step_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%s\n", step_names[step_get_engine()]);
    return 0;
}

static long step_write(void *priv UNUSED, const char *text, size_t len)
{
    size_t word = len && text[len - 1] == '\n' ? len - 1 : len;

    for (size_t i = 0; i < ARRAY_LEN(step_names); i++)
        if (strlen(step_names[i]) == word && memcmp(text, step_names[i], word) == 0) {
            step_set_engine((enum step_engine)i);
            return (long)len;
        }
    return -EINVAL;
}

/* ---- the trees ---- */

static const struct vfs_file kprobes_files[] = {
    { .name = "list", .mode = 0400, .show = list_show },
    { .name = "blacklist", .mode = 0400, .show = blacklist_show },
    { .name = "enabled", .mode = 0600, .show = enabled_show, .write = enabled_write },
};

static const struct vfs_file sysctl_files[] = {
    { .name = "kprobes-step", .mode = 0644, .show = step_show, .write = step_write },
};

int probes_add_files(void)
{
    int err = vfs_add_tree("/sys/kernel/debug/kprobes", kprobes_files,
                           ARRAY_LEN(kprobes_files));

    if (err)
        return err;
    return vfs_add_tree("/proc/sys/debug", sysctl_files, ARRAY_LEN(sysctl_files));
}
