/* commands.c - the console's `probe`: set probes that count, look at them, take them away. */
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/shell.h"
#include "kernel/mm/heap.h"
#include "kernel/sync/mutex.h"
#include "probes/life.h"
#include "probes/port/port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX 32

/* A probe that was set from the console: it has no handler, its hits are counted. */
struct console_probe {
    struct list link; /* [lock] in probes, in order of creation */
    struct kprobe kp;
    char name[NAME_MAX]; /* [I] */
    char symbol[128];    /* [I] */
};

static struct list probes = LIST_INIT(probes);
static struct mutex lock = MUTEX_INIT(lock);
static unsigned next_number = 1;

/* ---- naming places ---- */

static void print_place(struct shell *sh, uintptr_t addr)
{
    struct ksym sym;

    if (ksyms_at(addr, &sym))
        shell_printf(sh, "0x%lx", addr);
    else
        shell_printf(sh, "%s+0x%lx", sym.name, addr - sym.start);
}

/* parse_place - SYM, SYM+OFF or 0xADDR into @cp. */
static int parse_place(struct console_probe *cp, const char *text)
{
    const char *plus = strchr(text, '+');
    size_t len = plus ? (size_t)(plus - text) : strlen(text);
    uint64_t value;

    if (plus && (parse_u64(plus + 1, 0, &value) || value > UINT32_MAX))
        return -EINVAL;
    cp->kp.offset = plus ? (unsigned)value : 0;
    if (strncmp(text, "0x", 2) == 0) {
        if (plus || parse_u64(text, 0, &value))
            return -EINVAL;
        cp->kp.addr = value;
        return 0;
    }
    if (len == 0 || len >= sizeof(cp->symbol))
        return -EINVAL;
    memcpy(cp->symbol, text, len);
    cp->kp.symbol_name = cp->symbol;
    return 0;
}

static struct console_probe *find(const char *name)
{
    struct console_probe *cp;

    list_for_each(cp, &probes, link)
        if (strcmp(cp->name, name) == 0)
            return cp;
    return NULL;
}

/* ---- add ---- */

static void print_candidates(struct shell *sh, const char *name)
{
    struct ksym sym;

    for (size_t i = 0; i < ksyms_count(); i++)
        if (ksyms_get(i, &sym) && strcmp(sym.name, name) == 0)
            shell_printf(sh, "  0x%lx %c %s\n", sym.start, sym.type, sym.name);
}

static int refused(struct shell *sh, const char *place, const struct console_probe *cp,
                   const struct probe_reject *why)
{
    struct ksym sym;

    if (why->reason == PROBE_NOT_UNIQUE)
        print_candidates(sh, cp->symbol);
    if (why->at && !ksyms_at(why->at, &sym))
        return shell_error(sh, why->err, "probe: cannot probe %s: %s (%s+0x%lx)", place,
                           why->why, sym.name, why->at - sym.start);
    return shell_error(sh, why->err, "probe: cannot probe %s: %s", place, why->why);
}

static int name_probe(struct shell *sh, struct console_probe *cp, const char *name)
{
    if (!name) {
        snprintf(cp->name, sizeof(cp->name), "p%u", next_number++);
        return 0;
    }
    if (strlen(name) >= sizeof(cp->name))
        return shell_error(sh, ENAMETOOLONG, "probe: name %s", name);
    if (find(name))
        return shell_error(sh, EEXIST, "probe: name %s", name);
    strlcpy(cp->name, name, sizeof(cp->name));
    return 0;
}

static int add_locked(struct shell *sh, struct console_probe *cp, const char *place,
                      const char *name)
{
    struct probe_reject why;
    int err = name_probe(sh, cp, name);

    if (err)
        return err;
    if (parse_place(cp, place))
        return shell_error(sh, EINVAL, "probe: %s is no place: SYM, SYM+OFF or 0xADDR",
                           place);
    if (register_kprobe_why(&cp->kp, &why))
        return refused(sh, place, cp, &why);
    list_append(&probes, &cp->link);
    shell_printf(sh, "%s at ", cp->name);
    print_place(sh, cp->kp.addr);
    shell_printf(sh, "\n");
    return 0;
}

static int cmd_add(struct shell *sh, int argc, char **argv)
{
    struct console_probe *cp;
    int err;

    if (argc < 1 || argc > 2)
        return shell_error(sh, EINVAL, "usage: probe add SYM[+OFF] [NAME]");
    cp = kzalloc(sizeof(*cp));
    if (!cp)
        return shell_error(sh, ENOMEM, "probe: %s", argv[0]);
    mutex_lock(&lock);
    err = add_locked(sh, cp, argv[0], argc > 1 ? argv[1] : NULL);
    mutex_unlock(&lock);
    if (err)
        kfree(cp);
    return err;
}

/* ---- list ---- */

static const char *tier_name(const struct site *site)
{
    static const char *const names[WAYS] = {
        [WAY_BOOST] = "boost",
        [WAY_STEP] = "step",
        [WAY_EMULATE] = "emulate",
    };

    return names[site->way];
}

static void print_probe(struct shell *sh, const struct console_probe *cp)
{
    const struct kprobe *p = &cp->kp;

    shell_printf(sh, "%-8s %016lx %-8s %10llu %8llu  ", cp->name, p->addr,
                 tier_name(p->site), (unsigned long long)p->hits,
                 (unsigned long long)p->nmissed);
    print_place(sh, p->addr);
    shell_printf(sh, "%s%s\n", p->flags & KPROBE_FLAG_DISABLED ? " [DISABLED]" : "",
                 p->flags & KPROBE_FLAG_TRIPPED ? "[TRIPPED]" : "");
}

static int cmd_list(struct shell *sh, int argc, char **argv)
{
    const struct console_probe *cp;

    (void)argv;
    if (argc)
        return shell_error(sh, EINVAL, "usage: probe list");
    mutex_lock(&lock);
    shell_printf(sh, "%-8s %-16s %-8s %10s %8s  %s\n", "NAME", "ADDRESS", "TIER", "HITS",
                 "MISSES", "PLACE");
    list_for_each(cp, &probes, link)
        print_probe(sh, cp);
    mutex_unlock(&lock);
    return 0;
}

/* ---- del, on, off: one by name, or all ---- */

static int del_one(struct console_probe *cp)
{
    int err = unregister_kprobe(&cp->kp);

    if (err)
        return err;
    list_remove(&cp->link);
    kfree(cp);
    return 0;
}

static int on_one(struct console_probe *cp)
{
    return enable_kprobe(&cp->kp);
}

static int off_one(struct console_probe *cp)
{
    return disable_kprobe(&cp->kp);
}

static int for_named(struct shell *sh, const char *name,
                     int (*fn)(struct console_probe *))
{
    struct console_probe *cp, *tmp;
    bool all = strcmp(name, "all") == 0;
    int err = all ? 0 : -ENOENT;

    mutex_lock(&lock);
    list_for_each_safe(cp, tmp, &probes, link)
        if (all || strcmp(cp->name, name) == 0)
            err = fn(cp);
    mutex_unlock(&lock);
    return err ? shell_error(sh, err, "probe: %s", name) : 0;
}

static int cmd_del(struct shell *sh, int argc, char **argv)
{
    if (argc != 1)
        return shell_error(sh, EINVAL, "usage: probe del NAME|all");
    return for_named(sh, argv[0], del_one);
}

static int cmd_on(struct shell *sh, int argc, char **argv)
{
    if (argc != 1)
        return shell_error(sh, EINVAL, "usage: probe on NAME|all");
    return for_named(sh, argv[0], on_one);
}

static int cmd_off(struct shell *sh, int argc, char **argv)
{
    if (argc != 1)
        return shell_error(sh, EINVAL, "usage: probe off NAME|all");
    return for_named(sh, argv[0], off_one);
}

/* ---- the command ---- */

static const struct {
    const char *name;
    int (*run)(struct shell *sh, int argc, char **argv);
} subcommands[] = {
    { "add", cmd_add }, { "list", cmd_list }, { "del", cmd_del },
    { "on", cmd_on },   { "off", cmd_off },
};

static int run_probe(struct shell *sh, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(subcommands); i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(sh, argc - 2, argv + 2);
    return shell_error(sh, EINVAL, "usage: probe add|list|del|on|off ...");
}

static void offer_names(struct shell_completion *c)
{
    const struct console_probe *cp;

    mutex_lock(&lock);
    list_for_each(cp, &probes, link)
        shell_offer(c, cp->name);
    mutex_unlock(&lock);
    shell_offer(c, "all");
}

static void complete_probe(struct shell_completion *c, int index)
{
    if (index == 1) {
        for (size_t i = 0; i < ARRAY_LEN(subcommands); i++)
            shell_offer(c, subcommands[i].name);
        return;
    }
    shell_complete_symbols(c, index);
    offer_names(c);
}

static const struct shell_command command = {
    .name = "probe",
    .usage = "add|list|del|on|off ...",
    .help = "probes on instructions of this kernel\n"
            "probe add SYM[+OFF] [NAME]   set one that counts its hits\n"
            "probe list                   address, tier, hits and misses of all\n"
            "probe del NAME|all           take away\n"
            "probe on|off NAME|all        switch",
    .run = run_probe,
    .complete = complete_probe,
};

int probes_add_commands(void)
{
    return shell_add_command(&command);
}
