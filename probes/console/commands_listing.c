/* commands_listing.c - `probe listing`: a function, instruction by instruction, or the first
 * instruction of each function of a file, as JSON for programs of the host.
 *
 * The first line is about the function or the file, and says how a program that reads the
 * guest's memory finds the counts of a probe, so that it can read them again without asking
 * the guest. Each further line is about one instruction: `address`, `original` and `now`
 * (bytes), `owners` (a letter for each byte: `-` original, `i` int3, `j` written by a jump,
 * `r` displacement of the jump in front, `x` an int3 that is not the engine's), `refused`
 * (why it can carry no probe), `tier`, `jump` or `no_jump`, `pad`, `detour`, `cell`,
 * `probes`, and for a file `function`.
 */
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/lines.h"
#include "kernel/mm/heap.h"
#include "kernel/thread/thread.h"
#include "probes/console/commands.h"
#include "probes/console/console_probe.h"
#include "probes/core/registry.h"
#include "probes/explain/explain.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/many/walk.h"
#include "probes/region/region.h"
#include "probes/text/text_engine.h"

#include <stdlib.h>
#include <string.h>

#define LISTED_PROBES 4 /* of one instruction; further ones are left out */

/* A probe, as it was while the engine was locked: later it may be gone. */
struct listed_probe {
    uintptr_t kprobe; /* 0: there is none */
    char kind;
    bool on;
    uint64_t hits, missed[MISS_CAUSES];
};

/* One instruction. The lines are printed when the engine is not locked any more. */
struct listing_row {
    uintptr_t addr;
    const char *function; /* of a file; else NULL */
    size_t len;
    uint8_t original[INSN_MAX_LEN];
    struct explain_byte bytes[INSN_MAX_LEN];
    const char *refused; /* why it can carry no probe; NULL: it can */
    const char *tier;    /* NULL: no site is here */
    struct explain_jump jump;
    uintptr_t detour, cell;
    struct listed_probe probes[LISTED_PROBES];
};

struct function_listing {
    const char *function;
    struct listing_row *rows; /* NULL while the instructions are only counted */
    size_t count, room;
    struct explanation e;
};

/* ---- collect: PLAT_PROBES is held ---- */

static void listing_note_probe(struct listed_probe *out, const struct kprobe *p)
{
    out->kprobe = (uintptr_t)p;
    out->kind = kprobe_kind(p);
    out->on = !(p->flags & KPROBE_FLAG_DISABLED);
    out->hits = kprobe_hits(p);
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        out->missed[cause] = READ_ONCE(p->missed[cause]);
}

static void listing_note_site(struct listing_row *row, const struct site *site)
{
    size_t n = 0;

    explain_look_at_jump(&row->jump, site);
    row->tier = row->jump.state == JUMP_IS_THERE
                    ? explain_way_name(WAY_JUMP)
                    : explain_way_name((enum site_way)site->way);
    row->detour = (uintptr_t)site_detour(site);
    row->cell = (uintptr_t)region_boosted(site);
    for (const struct kprobe *p = site->probes; p && n < LISTED_PROBES; p = p->next)
        listing_note_probe(&row->probes[n++], p);
}

static void listing_note_insn(const struct insn *insn, void *arg)
{
    struct function_listing *l = arg;
    struct listing_row *row = l->rows + l->count++;
    const struct site *site;
    struct probe_reject why;
    struct insn unused;

    if (!l->rows || l->count > l->room)
        return;
    row->addr = insn->addr;
    row->function = l->function;
    row->len = insn->len;
    memcpy(row->original, insn->bytes, insn->len);
    l->e = (struct explanation){ .addr = insn->addr, .map_count = 1, .map = { *insn } };
    explain_look_at_text(&l->e);
    memcpy(row->bytes, l->e.bytes, insn->len * sizeof(row->bytes[0]));
    if (kprobe_check(insn->addr, &unused, &why))
        row->refused = why.why;
    site = registry_find(insn->addr);
    if (site)
        listing_note_site(row, site);
}

static bool listing_note_entry(const struct plat_symbol *function, void *arg)
{
    struct function_listing *l = arg;
    struct probe_reject why;
    struct insn insn;

    l->function = function->name;
    plat_lock(PLAT_PROBES);
    if (!boundary_find(function->start, function, &insn, &why))
        listing_note_insn(&insn, l);
    boundary_forget(); /* one instruction of a function does not pay for its memory */
    plat_unlock(PLAT_PROBES);
    return true;
}

/* listing_walk - note each instruction of @function; NULL: the entries of @file. */
static int listing_walk(struct function_listing *l, const struct plat_symbol *function,
                        int file)
{
    uintptr_t done = 0;

    l->count = 0;
    if (function)
        return walk_boundaries(function, &done, listing_note_insn, l);
    walk_file(file, listing_note_entry, l);
    return 0;
}

/* listing_collect - fill l->rows. Return: 0; an errno of listing_walk(). */
static int listing_collect(struct function_listing *l, const struct plat_symbol *function,
                           int file)
{
    int err = listing_walk(l, function, file);

    if (err)
        return err;
    l->room = l->count;
    l->rows = kzalloc((l->room + 1) * sizeof(*l->rows));
    return l->rows ? listing_walk(l, function, file) : -ENOMEM;
}

/* ---- print ---- */

static void listing_print_hex(struct shell *sh, const char *name, uintptr_t value)
{
    if (value)
        shell_printf(sh, ",\"%s\":\"%lx\"", name, value);
}

/* listing_print_text - print a sentence of the engine. None has a quote or a backslash. */
static void listing_print_text(struct shell *sh, const char *name, const char *text)
{
    if (text)
        shell_printf(sh, ",\"%s\":\"%s\"", name, text);
}

/* listing_print_threads - print how a program finds the threads, beginning at `sched_all`. */
static void listing_print_threads(struct shell *sh)
{
    shell_printf(sh,
                 ",\"thread\":{\"size\":%zu,\"link\":%zu,\"tid\":%zu,\"name\":%zu,"
                 "\"state\":%zu,\"cpu\":%zu,\"run_ns\":%zu,\"states\":[",
                 sizeof(struct thread), offsetof(struct thread, all_link),
                 offsetof(struct thread, tid), offsetof(struct thread, name),
                 offsetof(struct thread, state), offsetof(struct thread, cpu),
                 offsetof(struct thread, run_ns));
    for (unsigned state = THREAD_READY; state <= THREAD_DEAD; state++)
        shell_printf(sh, "%s\"%s\"", state ? "," : "",
                     thread_state_name((enum thread_state)state));
    shell_printf(sh, "]}");
}

static void listing_print_head(struct shell *sh, const struct plat_symbol *function,
                               int file)
{
    if (function)
        shell_printf(sh, "{\"function\":\"%s\",\"address\":\"%lx\",\"size\":%zu",
                     function->name, function->start, function->size);
    else
        shell_printf(sh, "{\"file\":\"%s\"", lines_path(file));
    shell_printf(sh, ",\"changes\":%u,\"optimize\":%s,\"engine\":\"%s\",\"engines\":[",
                 READ_ONCE(console_changes), optimize_is_on() ? "true" : "false",
                 text_engine_get()->name);
    for (size_t i = 0; i < text_engine_count; i++)
        shell_printf(sh, "%s\"%s\"", i ? "," : "", text_engines[i]->name);
    shell_printf(sh,
                 "],\"kprobe\":{\"size\":%zu,\"addr\":%zu,\"counter\":%zu,\"hits\":%zu,"
                 "\"missed\":%zu,\"site\":%zu},\"causes\":[",
                 sizeof(struct kprobe), offsetof(struct kprobe, addr),
                 offsetof(struct kprobe, counter), offsetof(struct kprobe, hits),
                 offsetof(struct kprobe, missed), offsetof(struct kprobe, site));
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        shell_printf(sh, "\"%s\",", probe_miss_name((enum probe_miss)cause));
    shell_printf(sh, "\"hidden\"],\"counters\":[");
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        shell_printf(sh, "%s\"%lx\"", cpu ? "," : "", (uintptr_t)percpu_counter(cpu, 0));
    shell_printf(sh, "]");
    listing_print_threads(sh);
    shell_printf(sh, "}\n");
}

/* listing_owner_letter - return how the byte @b is marked: i an int3, j written by a jump, r
 * read as displacement by the jump in front of it, x an int3 that is not the engine's, -
 * original.
 */
static char listing_owner_letter(const struct explain_byte *b)
{
    switch (b->owner) {
    case OWNER_ENGINE:
        return 'i';
    case OWNER_JUMP:
        return 'j';
    case OWNER_OTHER:
        return 'x';
    default:
        return b->reader ? 'r' : '-';
    }
}

static void listing_print_bytes(struct shell *sh, const struct listing_row *row)
{
    shell_printf(sh, "{\"address\":\"%lx\",\"original\":\"", row->addr);
    for (size_t i = 0; i < row->len; i++)
        shell_printf(sh, "%02x", row->original[i]);
    shell_printf(sh, "\",\"now\":\"");
    for (size_t i = 0; i < row->len; i++)
        shell_printf(sh, "%02x", row->bytes[i].now);
    shell_printf(sh, "\",\"owners\":\"");
    for (size_t i = 0; i < row->len; i++)
        shell_printf(sh, "%c", listing_owner_letter(&row->bytes[i]));
    shell_printf(sh, "\"");
}

/* listing_owner_of - find the entry of the console's list that has the probe at @kprobe.
 * Return: NULL: none: other code has registered it.
 */
static const struct console_probe *listing_owner_of(uintptr_t kprobe)
{
    struct console_probe *cp = NULL;

    while ((cp = console_probe_next(cp)) != NULL)
        if (cp->room ? kprobe - (uintptr_t)cp->probes < cp->room * sizeof(cp->probes[0])
                     : kprobe == (uintptr_t)cp->one_ptr)
            return cp;
    return NULL;
}

static void listing_print_probe(struct shell *sh, const struct listed_probe *p,
                                bool is_first)
{
    const struct console_probe *cp = listing_owner_of(p->kprobe);
    const struct kprobe *kp = (const struct kprobe *)p->kprobe;
    uint64_t hidden = cp ? console_probe_hidden(cp, kp) : 0;

    shell_printf(sh, "%s{\"name\":\"%s\",\"kind\":\"%c\",\"set\":%s,\"on\":%s",
                 is_first ? "" : ",", cp ? cp->name : "", p->kind,
                 cp && cp->room ? "true" : "false", p->on ? "true" : "false");
    shell_printf(sh, ",\"kprobe\":\"%lx\",\"others\":%u,\"hits\":%lu,\"missed\":[",
                 p->kprobe, cp && cp->hides ? kp->program->first + LINE_OTHERS : 0,
                 cp ? console_probe_hits(cp, kp) : p->hits);
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        shell_printf(sh, "%lu,", p->missed[cause]);
    shell_printf(sh, "%lu]}", hidden);
}

static void listing_print_row(struct shell *sh, const struct listing_row *row)
{
    listing_print_bytes(sh, row);
    listing_print_text(sh, "function", row->function);
    listing_print_text(sh, "refused", row->refused);
    if (row->tier) {
        listing_print_text(sh, "tier", row->tier);
        if (row->jump.state == JUMP_IS_THERE)
            listing_print_text(sh, "jump",
                               row->jump.by_region ? "region"
                                                   : pun_rung_name(row->jump.rung));
        if (row->jump.state == JUMP_NONE)
            listing_print_text(sh, "no_jump", probe_reason_text(row->jump.why));
        listing_print_hex(sh, "pad", row->jump.pad);
        listing_print_hex(sh, "detour", row->detour);
        listing_print_hex(sh, "cell", row->cell);
    }
    shell_printf(sh, ",\"probes\":[");
    for (size_t i = 0; i < LISTED_PROBES && row->probes[i].kprobe; i++)
        listing_print_probe(sh, &row->probes[i], !i);
    shell_printf(sh, "]}\n");
}

/* ---- the command ---- */

/* listing_print - print the lines of @function; NULL: those of @file. @name: of either */
static int listing_print(struct shell *sh, const struct plat_symbol *function, int file,
                         const char *name)
{
    struct function_listing *l = kzalloc(sizeof(*l));
    int err = -ENOMEM;

    console_probe_lock(); /* so that the console's probes stay until they are printed */
    if (l)
        err = listing_collect(l, function, file);
    if (!err) {
        listing_print_head(sh, function, file);
        for (size_t i = 0; i < l->room && !shell_interrupted(sh); i++)
            listing_print_row(sh, &l->rows[i]);
    }
    console_probe_unlock();
    if (l)
        kfree(l->rows);
    kfree(l);
    return err ? shell_error(sh, err, "probe: listing %s", name) : 0;
}

static int listing_run(struct shell *sh, int argc, char **argv)
{
    struct plat_symbol function;
    struct probe_reject why;
    struct place place;
    size_t iter = 0;
    uintptr_t addr;
    int file;

    if (argc != 1)
        return shell_refuse(sh, EINVAL, "usage: probe listing %s",
                            probe_command_listing.usage);
    file = lines_file(argv[0], strlen(argv[0]), &iter);
    if (file >= 0)
        return listing_print(sh, NULL, file, argv[0]);
    if (place_parse(&place, argv[0]))
        return place_no_place(sh, argv[0]);
    if (place_find(&place, &addr, &why))
        return place_refused(sh, &place, &why);
    if (plat_symbol_at(addr, &function))
        return shell_refuse(sh, ENOENT, "probe: listing %s: no function", argv[0]);
    return listing_print(sh, &function, -1, function.name);
}

const struct probe_command probe_command_listing = {
    .name = "listing",
    .usage = "SYM[#N]|ADDRESS|FILE",
    .help = "print a function, or a file's functions, as lines of JSON",
    .run = listing_run,
    .complete = shell_complete_symbols,
};
