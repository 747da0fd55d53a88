/* commands_watch.c - `probe watch`: finds the code that writes some bytes of memory, or
 * reads them. Also prints what the other commands of `probe` tell about watches.
 */
#include "probes/console/commands_watch.h"

#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/extable.h"
#include "probes/console/commands.h"
#include "probes/console/console_probe.h"

#include <extra.h>
#include <stdio.h>
#include <string.h>

/* ---- where ---- */

/* watch_symbol - find the symbol that @text names. With #N the N-th symbol of that name
 * is meant.
 * Return: how many symbols match; if this is 1, @out is the symbol.
 */
static unsigned watch_symbol(const char *text, struct ksym *out)
{
    char name[PLACE_MAX];
    const char *colon = strchr(text, ':');
    size_t module_len = colon ? (size_t)(colon - text) : 0, iter = 0;
    uint64_t n = 0;
    unsigned found = 0;
    struct ksym sym;
    char *hash;

    strlcpy(name, colon ? colon + 1 : text, sizeof(name));
    hash = strchr(name, '#');
    if (hash) {
        *hash = '\0';
        if (parse_u64(hash + 1, 10, &n) || !n)
            return 0;
    }
    while (ksyms_next(name, &iter, &sym)) {
        if (!n && found && sym.module && !out->module)
            break; /* it was found in the image: modules are not searched */
        if ((!module_len || ksyms_is_of(&sym, text, module_len)) &&
            (++found == n || (found == 1 && !n)))
            *out = sym;
    }
    if (!n)
        return found;
    return found >= n;
}

bool watch_place_is_data(const struct place *place)
{
    struct ksym sym;

    return place->symbol[0] && watch_symbol(place->symbol, &sym) == 1 &&
           sym.type != 'T' && sym.type != 't';
}

int watch_place_find(struct shell *sh, const struct place *place, uintptr_t *addr,
                     size_t *size)
{
    char more[SHELL_SUGGESTION_MAX] = "";
    struct ksym sym;
    unsigned found;

    *size = 0;
    *addr = place->addr;
    if (!place->symbol[0])
        return 0;
    found = watch_symbol(place->symbol, &sym);
    if (found == 1) {
        *addr = sym.start + place->offset;
        *size = place->offset ? 0 : sym.size;
        return 0;
    }
    if (!found)
        shell_suggest(more, place->symbol, shell_complete_symbols, 1);
    shell_error(sh, 0, "probe: cannot watch %s: %s%s", place->symbol,
                found ? "several symbols have this name: SYM#1, SYM#2, ..."
                      : "no symbol has this name",
                more);
    return found ? -EADDRNOTAVAIL : -ENOENT;
}

/* watch_number - append "#N" to the name @text if @sym is the N-th symbol that it means.
 * @text: in PLACE_MAX bytes
 */
static void watch_number(char *text, const struct ksym *sym)
{
    size_t len = strlen(text);
    struct ksym one;
    unsigned n = 0;

    if (watch_symbol(text, &one) < 2)
        return;
    do
        snprintf(text + len, PLACE_MAX - len, "#%u", ++n);
    while (watch_symbol(text, &one) && one.start != sym->start);
}

const char *watch_place_text(char *buf, uintptr_t addr)
{
    char name[PLACE_MAX];
    struct ksym sym;

    if (!addr)
        snprintf(buf, PLACE_TEXT_MAX, "nothing");
    else if (ksyms_at(addr, &sym))
        snprintf(buf, PLACE_TEXT_MAX, "0x%lx", addr);
    else {
        snprintf(name, sizeof(name), "%s%s%s", sym.module ? sym.module : "",
                 sym.module ? ":" : "", sym.name);
        watch_number(name, &sym);
        snprintf(buf, PLACE_TEXT_MAX, "%s+0x%zx", name, sym.offset);
    }
    return buf;
}

/* ---- the handler ---- */

/* note_access - note the data of this hit for `probe list`. The handler does not read the
 * bytes of a watch for reads, because its read would be an access as well.
 */
static void note_access(struct watch *w, struct pt_regs *regs)
{
    struct console_probe *cp = CONTAINER_OF(w, struct console_probe, watch);
    uint64_t value = 0;

    WRITE_ONCE(cp->accesses.last_ip, regs->ip);
    if (w->kind == WATCH_WRITE && !copy_nofault(&value, (const void *)w->addr, w->len))
        WRITE_ONCE(cp->accesses.last_value, value);
}

/* ---- add ---- */

/* watch_length - choose a length if the user gives none: the size of the object, if a
 * debug register can watch it; else as many bytes as the alignment of the address allows.
 */
static uint8_t watch_length(uintptr_t addr, size_t size)
{
    uint8_t len = 8;

    if ((size == 1 || size == 2 || size == 4 || size == 8) && addr % size == 0)
        return (uint8_t)size;
    while (addr % len)
        len /= 2;
    return len;
}

static uint8_t watch_kind_of(const char *word)
{
    uint8_t kind = 0;

    while (kind < WATCH_KINDS && strcmp(word, watch_kind_name(kind)) != 0)
        kind++;
    return kind;
}

#define USAGE "SYM[#N][+OFF]|ADDRESS w|rw|x [1|2|4|8] [NAME]"

/* Does the same as probe_usage(), which is in a file that depends on this file. */
static int watch_usage(struct shell *sh, int argc, char **argv)
{
    shell_blame_option(sh, "probe watch", USAGE, argc, argv);
    return shell_refuse(sh, EINVAL, "usage: probe watch " USAGE);
}

static void list_owners(struct shell *sh)
{
    for (unsigned i = 0; watch_owner(i); i++)
        shell_error(sh, 0, "  dr%u has %s", i, watch_owner(i));
}

static int watch_refused(struct shell *sh, const struct watch *w, enum watch_reason why)
{
    char at[PLACE_TEXT_MAX];

    shell_error(sh, 0, "probe: cannot watch %s: %s", watch_place_text(at, w->addr),
                watch_reason_text(why));
    if (why == WATCH_ALL_TAKEN)
        list_owners(sh);
    return watch_reason_errno(why);
}

static int watch_new(struct shell *sh, const struct watch *wanted, const char *name)
{
    struct console_probe *cp;
    enum watch_reason why;
    char at[PLACE_TEXT_MAX];
    int err = console_probe_new(&cp, name, 0);

    if (err)
        return shell_error(sh, err, "probe: name %s", name ? name : "");
    cp->kind = CONSOLE_WATCH;
    cp->watch = *wanted;
    cp->watch.handler = note_access;
    if (!name)
        console_probe_name_watch(cp);
    strlcpy(cp->watch.name, cp->name, sizeof(cp->watch.name));
    if (register_watch_why(&cp->watch, &why)) {
        console_probe_free(cp);
        return watch_refused(sh, wanted, why);
    }
    console_probe_add(cp);
    shell_printf(sh, "%s at %s, %s %u, in dr%d\n", cp->name,
                 watch_place_text(at, wanted->addr), watch_kind_name(wanted->kind),
                 wanted->len, cp->watch.reg);
    return 0;
}

/* watch_parse - parse the words PLACE KIND [LENGTH] [NAME]. */
static int watch_parse(struct shell *sh, int argc, char **argv, struct watch *w,
                       const char **name)
{
    struct place place;
    uint64_t len = 0;
    size_t size;
    int err;

    *w = (struct watch){ 0 };
    if (place_parse(&place, argv[0]))
        return place_no_place(sh, argv[0]);
    w->kind = watch_kind_of(argv[1]);
    if (w->kind == WATCH_KINDS && strcmp(argv[1], "r") != 0)
        return watch_usage(sh, argc, argv);
    err = watch_place_find(sh, &place, &w->addr, &size);
    if (err)
        return err;
    if (argc > 2 && !parse_u64(argv[2], 0, &len)) {
        w->len = len > UINT8_MAX ? 0 : (uint8_t)len;
        *name = argc > 3 ? argv[3] : NULL;
        return 0;
    }
    if (argc > 3)
        return watch_usage(sh, argc, argv);
    w->len = w->kind == WATCH_EXECUTE ? 1 : watch_length(w->addr, size);
    *name = argc > 2 ? argv[2] : NULL;
    return 0;
}

static int watch_run(struct shell *sh, int argc, char **argv)
{
    const char *name = NULL;
    struct watch w;
    int err;

    if (argc < 2 || argc > 4 || argv[0][0] == '-')
        return watch_usage(sh, argc, argv);
    err = watch_parse(sh, argc, argv, &w, &name);
    if (err)
        return err;
    console_probe_lock();
    err = watch_new(sh, &w, name);
    console_probe_unlock();
    return err;
}

static void watch_complete(struct shell_completion *c, int index)
{
    static const char *const lens[] = { "1", "2", "4", "8" };

    if (index == 1)
        shell_complete_symbols(c, index);
    for (unsigned kind = 0; index == 2 && kind < WATCH_KINDS; kind++)
        shell_offer(c, watch_kind_name(kind));
    for (size_t i = 0; index == 3 && i < ARRAY_LEN(lens); i++)
        shell_offer(c, lens[i]);
}

const struct probe_command probe_command_watch = {
    .name = "watch",
    .usage = USAGE,
    .help = "count accesses to memory, by a debug register",
    .run = watch_run,
    .complete = watch_complete,
};

/* ---- list ---- */

static const char *watch_flags_text(const struct watch *w)
{
    uint32_t flags = READ_ONCE(w->kp.flags);

    if (flags & KPROBE_FLAG_TRIPPED)
        return " [TRIPPED]";
    return flags & KPROBE_FLAG_DISABLED ? " [DISABLED]" : "";
}

void watch_print(struct shell *sh, const struct console_probe *cp)
{
    const struct watch *w = &cp->watch;
    char at[PLACE_TEXT_MAX], tier[8];

    snprintf(tier, sizeof(tier), "dr%d", w->reg);
    shell_printf(sh, "%-8s %016lx w %-9s %10lu %8lu  %s %s %u%s", cp->name, w->addr, tier,
                 watch_hits(w), watch_misses(w), watch_place_text(at, w->addr),
                 watch_kind_name(w->kind), w->len, watch_flags_text(w));
    if (READ_ONCE(cp->accesses.last_ip) && w->kind != WATCH_EXECUTE)
        shell_printf(sh, " last=%s", place_text(at, READ_ONCE(cp->accesses.last_ip)));
    if (READ_ONCE(cp->accesses.last_ip) && w->kind == WATCH_WRITE)
        shell_printf(sh, " value=0x%lx", READ_ONCE(cp->accesses.last_value));
    shell_printf(sh, "\n");
}

/* ---- explain ---- */

void watch_explain(struct shell *sh, uintptr_t addr)
{
    struct console_probe *cp = NULL;

    console_probe_lock();
    while ((cp = console_probe_next(cp)) != NULL) {
        const struct watch *w = &cp->watch;

        if (cp->kind == CONSOLE_WATCH && addr >= w->addr && addr < w->addr + w->len)
            shell_printf(sh, "watched    by %s in dr%d: %s %u, %lu hits\n", cp->name,
                         w->reg, watch_kind_name(w->kind), w->len, watch_hits(w));
    }
    console_probe_unlock();
}

int watch_explain_data(struct shell *sh, const struct place *place)
{
    struct watch w = { .kind = WATCH_WRITE };
    char at[PLACE_TEXT_MAX];
    enum watch_reason why;
    size_t size;

    if (watch_place_find(sh, place, &w.addr, &size))
        return -ENOENT;
    w.len = watch_length(w.addr, size);
    why = watch_check(&w);
    shell_printf(sh, "address    0x%lx, %s\n", w.addr, watch_place_text(at, w.addr));
    shell_printf(sh, "function   none: data\n");
    watch_explain(sh, w.addr);
    if (why)
        shell_printf(sh, "verdict    cannot be watched: %s\n", watch_reason_text(why));
    else
        shell_printf(sh, "verdict    can be watched, up to %u byte%s at a time\n", w.len,
                     w.len == 1 ? "" : "s");
    return 0;
}
