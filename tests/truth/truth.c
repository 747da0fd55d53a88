/* truth.c - the console command `truth`, for tests/truth/trial.py. It arms probes, runs
 * commands and unregisters the probes. It leaves their counts in memory, where the host
 * reads them. docs/testing.md says what is compared.
 */
#include "kernel/base/err.h"
#include "kernel/console/shell.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/ksyms.h"
#include "kernel/debug/panic.h"
#include "kernel/mm/exec.h"
#include "kernel/mm/heap.h"
#include "probes/core/life.h"
#include "probes/jump/link.h"
#include "probes/jump/optimize.h"
#include "probes/many/mass.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"
#include "tests/truth/truth_nmi.h"
#include "tests/truth/truth_parts.h"
#include "tests/truth/truth_window.h"

#include <stdlib.h>
#include <string.h>

#define USAGE                                                                            \
    "[OPTION...] all|FUNCTION,...|EVENT COMMAND [WORD...] [-- COMMAND [WORD...]]..."

/* One run of the command. */
struct truth {
    struct shell *sh;
    const char *what; /* "all", names of functions separated by commas, or an event */
    bool each;        /* try one function after the other */
    bool bare;        /* only count executions, without probes */
    bool asked;       /* bare, but at the probes of a question's event */
    kprobe_pre_handler_t before;
    kprobe_post_handler_t after;
    enum step_engine engine;
    struct truth_storm storm;
    char **words; /* the commands: word_count words, with `--` between two commands */
    int word_count;

    struct kprobe *probes; /* one for each boundary */
    struct kprobe **pointers;
    uintptr_t *past; /* for each: the jump that leads past it, or 0 */
    size_t count, max;
    size_t armed, refused;
    size_t left; /* pages of executable memory that were not given back */
};

/* The counts of the last run, which the host reads; [max] of the run. */
static struct truth_record *records;

/* ---- which instructions ---- */

bool truth_function_get(size_t i, struct plat_symbol *function)
{
    struct ksym sym;

    return ksyms_get(i, &sym) && sym.size && !plat_symbol_at(sym.start, function) &&
           function->start == sym.start;
}

/* is_named - is @name one of the names in @list? */
static bool is_named(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at += len)
        if ((at == list || at[-1] == ',') && (at[len] == ',' || !at[len]))
            return true;
    return false;
}

/* function_next - find the next function that the command names, from symbol *@i on.
 * Return: false: there is no further one.
 */
static bool function_next(const struct truth *t, size_t *i, struct plat_symbol *function)
{
    bool any = strcmp(t->what, "all") == 0;

    for (; *i < ksyms_count(); ++*i)
        if (truth_function_get(*i, function) &&
            (any || is_named(t->what, function->name)))
            return true;
    return false;
}

int truth_before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

void truth_after(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                 unsigned long flags UNUSED)
{
}

/* This handler calls a function that can have probes itself. */
static int handler_nested(struct kprobe *p, struct pt_regs *regs)
{
    return p->addr + 1 != regs->ip || strrchr("", 'a' + (int)(p->addr & 1));
}

static void boundary_add(const struct insn *insn, void *arg)
{
    struct truth *t = arg;
    struct kprobe *p = &t->probes[t->count];

    if (t->probes && t->count < t->max) {
        p->addr = insn->addr;
        p->pre_handler = t->before;
        p->post_handler = t->after;
        t->pointers[t->count] = p;
    }
    t->count++;
}

static void function_add(struct truth *t, const struct plat_symbol *function)
{
    plat_lock(PLAT_PROBES);
    boundary_for_each(function, boundary_add, t);
    plat_unlock(PLAT_PROBES);
}

static void functions_add(struct truth *t)
{
    struct plat_symbol function;

    t->count = 0;
    for (size_t i = 0; function_next(t, &i, &function); i++)
        function_add(t, &function);
}

/* asked_add - take the probes of the event, of a `trace` that runs this command. */
static void asked_add(struct truth *t)
{
    const struct live_event *e;
    struct live_probe *p;

    t->count = 0;
    trace_lock();
    e = live_event_find("trace", t->what);
    if (e)
        list_for_each(p, &e->probes, sibling) {
            if (t->pointers && t->count < t->max)
                t->pointers[t->count] = &p->rp.kp;
            t->count++;
        }
    if (e && e->attached && e->attached->trigger[0]->hist) {
        truth_pause = hist_pause_byte(e->attached->trigger[0]->hist);
        WRITE_ONCE(*truth_pause, true);
        live_hist_clear(
            e->attached->trigger[0]->hist); /* of what was before the window */
    }
    trace_unlock();
}

static void places_add(struct truth *t)
{
    if (t->asked)
        asked_add(t);
    else
        functions_add(t);
}

/* ---- a trial ---- */

/* command_len - return how many words the command has that begins with @words[0].
 * @left: how many words there are
 */
static int command_len(char **words, int left)
{
    int len = 0;

    while (len < left && strcmp(words[len], "--") != 0)
        len++;
    return len;
}

static int run_commands(struct truth *t)
{
    int err = 0;

    for (int at = 0; at < t->word_count && !err;) {
        int len = command_len(t->words + at, t->word_count - at);

        err = shell_run_inside(t->sh, len, t->words + at);
        at += len + 1;
    }
    if (!err && shell_interrupted(t->sh))
        err = -EINTR;
    return err;
}

/* are_commands - is there a command in front of, between and behind all `--`? */
static bool are_commands(char **words, int count)
{
    int at = 0, len = 0;

    for (; at <= count; at += len + 1) {
        len = command_len(words + at, count - at);
        if (!len)
            return false;
    }
    return true;
}

static int storm_run(struct truth *t)
{
    int err = truth_storm_start(&t->storm);

    if (err)
        return err;
    do {
        err = run_commands(t);
    } while (!err && truth_storm_running(&t->storm));
    truth_storm_end(&t->storm);
    return err;
}

static void refused(struct kprobe *p UNUSED, const struct probe_reject *why UNUSED,
                    void *arg)
{
    struct truth *t = arg;

    t->refused++;
}

/* After optimize_run() no jump and no link waits to be made, so the links stay as they
 * are for the rest of the window. The engine does not wait until all CPUs see a new link.
 * But a CPU that does not yet see it goes through the text, where its execution is
 * counted, too. So all CPUs are synchronised here.
 */
void truth_find_links(struct kprobe *const *ps, uintptr_t *past, size_t count)
{
    optimize_run();
    plat_lock(PLAT_PROBES);
    plat_lock(PLAT_TEXT);
    plat_sync_cores();
    plat_unlock(PLAT_TEXT);
    for (size_t i = 0; i < count && link_count(); i++) /* not if none: it would trap */
        past[i] = link_into(ps[i]->addr);
    plat_unlock(PLAT_PROBES);
}

/* trial - arm @count instructions, from number @first on, run the commands, and
 * unregister the probes.
 */
static int trial(struct truth *t, size_t first, size_t count)
{
    const struct mass_caller caller = { shell_stop, shell_show_progress, t->sh };
    struct kprobe **ps = t->pointers + first;
    long in = (long)count;
    size_t left;
    int err;

    if (!t->bare)
        in = mass_register(&caller, ps, count, refused, t);
    if (in <= 0)
        return (int)in;
    t->armed += (size_t)in;
    truth_find_links(ps, t->past + first, (size_t)in);
    truth_open(ps, t->past + first, records + first, (size_t)in);
    err = t->storm.count ? storm_run(t) : run_commands(t);
    truth_close(ps, records + first, (size_t)in);
    left = (size_t)in;
    if (!t->bare && mass_unregister(&caller, ps, &left))
        unregister_kprobes(ps, left); /* after Ctrl-C the rest is unregistered, too */
    return err;
}

static int trial_of_each(struct truth *t)
{
    struct plat_symbol function;
    int err = 0;

    t->count = 0;
    for (size_t i = 0; !err && function_next(t, &i, &function); i++) {
        size_t first = t->count;

        if (shell_interrupted(t->sh))
            return -EINTR;
        function_add(t, &function);
        err = trial(t, first, t->count - first);
    }
    return err;
}

/* ---- the command ---- */

static int make_room(struct truth *t)
{
    places_add(t);
    t->max = t->count;
    kfree(records);
    records = kzalloc(t->max * sizeof(records[0]) + 1);
    t->probes = kzalloc(t->max * sizeof(t->probes[0]) + 1);
    t->pointers = kzalloc(t->max * sizeof(t->pointers[0]) + 1);
    t->past = kzalloc(t->max * sizeof(t->past[0]) + 1);
    return records && t->probes && t->pointers && t->past ? 0 : -ENOMEM;
}

size_t truth_exec_pages(void)
{
    struct exec_stats stats;

    exec_stats_get(&stats);
    return stats.arena_pages - stats.arena_free_pages + stats.pad_pages;
}

static int run_all(struct truth *t)
{
    enum step_engine before = step_get_engine();
    size_t pages = truth_exec_pages();
    int err;

    if (!t->max)
        return -ENOENT;
    step_set_engine(t->engine);
    if (t->each) {
        err = trial_of_each(t);
    } else {
        places_add(t);
        err = trial(t, 0, t->count);
    }
    step_set_engine(before);
    t->left = truth_exec_pages() - pages;
    return err;
}

/* option - take the option @word. Return: false: it is no option. */
static bool option(struct truth *t, const char *word)
{
    bool with_handlers = strcmp(word, "handlers") == 0;

    if (strncmp(word, "nmis=", 5) == 0)
        return !parse_u64(word + 5, 10, &t->storm.count);
    if (with_handlers || strcmp(word, "nested") == 0) {
        t->before = with_handlers ? truth_before : handler_nested;
        t->after = truth_after;
    } else if (strcmp(word, "each") == 0) {
        t->each = true;
    } else if (strcmp(word, "bare") == 0) {
        t->bare = true;
    } else if (strcmp(word, "asked") == 0) {
        t->bare = t->asked = true;
    } else if (strcmp(word, "tf") == 0) {
        t->engine = STEP_TF;
    } else {
        return false;
    }
    return true;
}

static int run(struct shell *sh, int argc, char **argv)
{
    struct truth t = { .sh = sh, .engine = STEP_INT3 };
    int at = 1;
    int err;

    while (at < argc && option(&t, argv[at]))
        at++;
    t.what = at < argc ? argv[at++] : "";
    t.words = argv + at;
    t.word_count = argc - at;
    if (!are_commands(t.words, t.word_count))
        return shell_error(sh, EINVAL, "usage: truth " USAGE);
    err = make_room(&t);
    if (!err)
        err = run_all(&t);
    kfree(t.past);
    kfree(t.pointers);
    kfree(t.probes);
    truth_pause = NULL;
    if (err == -EINTR)
        shell_error(sh, 0, "truth: stopped; none of its probes is left");
    else if (err)
        shell_error(sh, err, "truth: %s", t.what);
    if (err)
        return err;
    shell_printf(sh,
                 "truth: armed %zu refused %zu nmis %llu left %zu records 0x%lx %zu\n",
                 t.armed, t.refused, (unsigned long long)t.storm.sent, t.left,
                 (uintptr_t)records, t.count);
    return 0;
}

static const struct shell_command command = {
    .name = "truth",
    .usage = USAGE,
    .help = "run commands with every instruction armed, for tests/truth\n"
            "truth all run vfs                  arm all, run a workload, disarm\n"
            "truth vfs_read run vfs -- run map  two commands, a function\n"
            "truth all 'run all | tail -n 1'    a single word is a whole command line\n"
            "Options: asked, bare, each, handlers, nested, tf, nmis=N: docs/testing.md.\n"
            "Ctrl-C stops it and leaves none of its probes.",
    .run = run,
};

__attribute__((constructor)) static void truth_init(void)
{
    truth_storm_init();
    BUG_ON(shell_add_developer_command(&command));
    truth_module_init();
}
