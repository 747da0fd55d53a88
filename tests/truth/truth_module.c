/* truth_module.c - the console command `truth-module`, for tests/truth/test_module.py.
 * Every instruction of a module is armed by name, and the window stays open while the
 * module is unloaded and loaded again and again, and all CPUs call it.
 *
 * A round:
 *   1. The module is loaded. The optimizer is off: the plugin does not know yet which
 *      jumps lead past an instruction, so the constructors must run into int3s.
 *   2. Jumps are made, if they are wanted, and the plugin is told about links. No CPU is
 *      in the module.
 *   3. The workload of the module runs on all CPUs. While it runs, the module is
 *      unloaded: this is tried until it succeeds.
 *   4. The plugin is told that no jump leads past an instruction any more.
 * The window opens in step 2 of the first round: the plugin is told an instruction by a
 * load from its address, so the module must be loaded then.
 */
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"
#include "probes/core/life.h"
#include "probes/jump/optimize.h"
#include "tests/truth/truth_parts.h"
#include "tests/truth/truth_window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE "[handlers] FILE ROUNDS WORKLOAD"
#define NAME_LEN 64

struct one {
    struct kprobe p;
    char name[NAME_LEN]; /* "module:function" */
    uintptr_t addr;      /* in the first round */
};

/* One run of the command. */
struct trial {
    struct shell *sh;
    const char *file, *workload;
    char module[MODULE_NAME_MAX];
    bool handlers, jumps;
    uint64_t rounds;
    struct one *ones; /* one for each boundary */
    struct kprobe **ps;
    uintptr_t *past;
    size_t count, max, refused;
    uint64_t kept; /* how often the module could not yet be unloaded */
    struct seq output;
};

static struct truth_record
    *records; /* the counts of the last run, which the host reads */
static char why[MODULE_WHY_MAX];

/* What the module guest needs of the kernel that loads it: tests/kernel/loaded.h. */
extern long guest_total;
extern bool guest_holds;
long guest_total;
bool guest_holds;

/* ---- which instructions ---- */

struct taking {
    struct trial *t;
    const char *function;
    uintptr_t start;
};

static void boundary_add(const struct insn *insn, void *arg)
{
    struct taking *taking = arg;
    struct trial *t = taking->t;
    struct one *one = t->ones ? &t->ones[t->count] : NULL;

    t->count++;
    if (!one)
        return;
    snprintf(one->name, NAME_LEN, "%s:%s", t->module, taking->function);
    one->p = (struct kprobe){ .symbol_name = one->name,
                              .offset = (unsigned)(insn->addr - taking->start),
                              .flags = KPROBE_FLAG_PENDING,
                              .pre_handler = t->handlers ? truth_before : NULL,
                              .post_handler = t->handlers ? truth_after : NULL };
    one->addr = insn->addr;
}

static void functions_add(struct trial *t)
{
    struct plat_symbol function;
    struct ksym sym;

    t->count = 0;
    for (size_t i = 0; ksyms_get(i, &sym); i++) {
        struct taking taking = { t, sym.name, sym.start };

        if (!sym.module || strcmp(sym.module, t->module) != 0 || (sym.type | 32) != 't' ||
            !truth_function_get(i, &function))
            continue;
        plat_lock(PLAT_PROBES);
        boundary_for_each(&function, boundary_add, &taking);
        plat_unlock(PLAT_PROBES);
    }
}

/* make_probes - make and register a probe for each instruction of the module. @t->ps gets
 * those that could be armed.
 */
static int make_probes(struct trial *t)
{
    size_t armed = 0;

    functions_add(t);
    kfree(records);
    records = kzalloc(t->count * sizeof(records[0]) + 1);
    t->ones = kzalloc(t->count * sizeof(t->ones[0]) + 1);
    t->ps = kzalloc(t->count * sizeof(t->ps[0]) + 1);
    t->past = kzalloc(t->count * sizeof(t->past[0]) + 1);
    if (!records || !t->ones || !t->ps || !t->past)
        return -ENOMEM;
    functions_add(t);
    for (size_t i = 0; i < t->count; i++)
        if (register_kprobe(&t->ones[i].p) == 0)
            t->ps[armed++] = &t->ones[i].p;
    t->refused = t->count - armed;
    t->count = armed;
    return armed ? 0 : -ENOENT;
}

/* ---- a round ---- */

static int run_workload(void *arg)
{
    struct trial *t = arg;

    return workload_run(t->workload, 0, NULL, &t->output, NULL, NULL);
}

static uint64_t all_hits(const struct trial *t)
{
    uint64_t hits = 0;

    for (size_t i = 0; i < t->count; i++)
        hits += kprobe_hits(t->ps[i]);
    return hits;
}

/* use_and_unload - do step 3. */
static int use_and_unload(struct trial *t)
{
    uint64_t before = all_hits(t);
    int tid = kernel_clone(&(struct clone_args){ .fn = run_workload, .arg = t });
    int code, err;

    if (tid < 0)
        return tid;
    while (all_hits(t) == before)
        thread_sleep_ns(100000);
    while ((err = module_unload(t->module, why)) == -EBUSY) {
        t->kept++;
        thread_sleep_ns(500000);
    }
    thread_join(tid, &code);
    return err ? err : code;
}

static bool is_where_it_was(const struct trial *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->ps[i]->addr != CONTAINER_OF(t->ps[i], struct one, p)->addr ||
            t->ps[i]->flags & KPROBE_FLAG_GONE)
            return false;
    return true;
}

static void make_jumps(struct trial *t)
{
    memset(t->past, 0, t->count * sizeof(t->past[0]));
    if (!t->jumps)
        return;
    optimize_switch(true);
    truth_find_links(t->ps, t->past, t->count);
}

static int round(struct trial *t, bool first)
{
    int err = module_load_path(t->file, false, why); /* step 1 */

    if (!err && first)
        err = make_probes(t);
    if (!err && !is_where_it_was(t))
        err = -EADDRNOTAVAIL;
    if (err)
        return err;
    make_jumps(t); /* step 2 */
    if (first)
        truth_open(t->ps, t->past, records, t->count);
    else
        truth_tell_links(t->ps, t->past, t->count);
    err = use_and_unload(t); /* step 3 */
    optimize_switch(false);
    truth_forget_links(); /* step 4 */
    return err;
}

/* ---- the command ---- */

static int run_all(struct trial *t)
{
    int err = 0;

    t->jumps = optimize_is_on();
    optimize_switch(false);
    for (uint64_t i = 0; i < t->rounds && !err; i++) {
        err = round(t, i == 0);
        if (!err && shell_interrupted(t->sh))
            err = -EINTR;
    }
    if (t->ps)
        truth_close(t->ps, records, t->count);
    for (size_t i = 0; t->ps && i < t->count; i++)
        unregister_kprobe(t->ps[i]);
    optimize_switch(t->jumps);
    return err;
}

static int name_of(struct trial *t)
{
    const char *slash = strrchr(t->file, '/'), *base = slash ? slash + 1 : t->file;
    size_t len = strcspn(base, ".");

    if (len >= sizeof(t->module))
        return -EINVAL;
    memcpy(t->module, base, len);
    return 0;
}

static int run(struct shell *sh, int argc, char **argv)
{
    bool handlers = argc > 1 && !strcmp(argv[1], "handlers");
    struct trial t = { .sh = sh, .handlers = handlers };
    size_t pages = truth_exec_pages();
    int err;

    argv += handlers;
    if (argc - handlers != 4 || parse_u64(argv[2], 10, &t.rounds))
        return shell_error(sh, EINVAL, "usage: truth-module " USAGE);
    t.file = argv[1];
    t.workload = argv[3];
    seq_init(&t.output, NULL, NULL);
    err = name_of(&t);
    if (!err)
        err = run_all(&t);
    shell_printf(sh, "%s", seq_str(&t.output));
    seq_free(&t.output);
    kfree(t.past);
    kfree(t.ps);
    kfree(t.ones);
    if (err)
        return shell_error(sh, err, "truth-module: %s: %s", t.file, why);
    shell_printf(
        sh, "truth: armed %zu refused %zu nmis 0 kept %lu left %zu records 0x%lx %zu\n",
        t.count, t.refused, t.kept, truth_exec_pages() - pages, (uintptr_t)records,
        t.count);
    return 0;
}

static const struct shell_command command = {
    .name = "truth-module",
    .usage = USAGE,
    .help =
        "arm every instruction of a module by name, for tests/truth; then load it, run\n"
        "its workload and unload it meanwhile, ROUNDS times",
    .run = run,
};

void truth_module_init(void)
{
    BUG_ON(shell_add_developer_command(&command));
}
