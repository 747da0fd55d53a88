/* bench_run.c - has the list of groups, and runs them. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/frame.h"
#include "kernel/thread/thread.h"
#include "probes/bench/bench.h"
#include "probes/jump/optimize.h"

#include <string.h>

static const struct bench_group *const groups[] = {
    &bench_group_hit,    &bench_group_scale,  &bench_group_cache,  &bench_group_counted,
    &bench_group_starve, &bench_group_marker, &bench_group_events, &bench_group_text,
};

/* ---- the command ---- */

/* find_group - find the group that @word names, as GROUP or GROUP.PART. */
static const struct bench_group *find_group(const char *word)
{
    size_t len = strcspn(word, ".");

    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (str_is(groups[i]->name, word, len))
            return groups[i];
    return NULL;
}

/* run_with_breakpoints - run a group while the probes of other parts of the kernel are
 * breakpoints. A group that measures jumps, or how long it takes to make them, calls
 * bench_jumps(true). This works whatever the user's settings for jumps are; the settings
 * are restored at the end.
 */
static int run_with_breakpoints(struct shell *sh, const struct bench_group *group,
                                const char *only)
{
    enum optimize_method method = optimize_get_method();
    bool on = optimize_is_on();
    int err = bench_jumps(false);

    if (err)
        return shell_error(sh, err, "bench");
    optimize_switch(true);
    err = group->run(sh, only);
    optimize_switch(on);
    optimize_set_method(method);
    return err;
}

/* After a move to another CPU the thread would find cold caches there. So each group
 * stays on the last CPU, where nothing else runs.
 */
static int run_group(struct shell *sh, const struct bench_group *group, const char *only)
{
    uint64_t cpus = thread_current()->cpus;
    int err;

    thread_set_affinity(BIT(cpu_count() - 1));
    err =
        group->keeps_jumps ? group->run(sh, only) : run_with_breakpoints(sh, group, only);
    thread_set_affinity(cpus);
    if (err == -ENOENT)
        return shell_refuse(sh, err, "bench: no part of %s is called %s", group->name,
                            only);
    if (err == -EINTR)
        shell_error(sh, 0, "bench: stopped in %s; none of its probes is left",
                    group->name);
    return err;
}

static int run_all(struct shell *sh)
{
    int err = 0;

    for (size_t i = 0; i < ARRAY_LEN(groups) && !err; i++)
        err = run_group(sh, groups[i], NULL);
    return err;
}

static int run_groups(struct shell *sh, int argc, char **argv)
{
    char suggestion[SHELL_SUGGESTION_MAX];
    int err = 0;

    for (int i = 1; i < argc; i++)
        if (!find_group(argv[i]))
            return shell_refuse(sh, EINVAL, "bench: no group is called %s%s", argv[i],
                                shell_suggest(suggestion, argv[i], bench_complete, 1));
    for (int i = 1; i < argc && !err; i++) {
        const char *dot = strchr(argv[i], '.');

        err = run_group(sh, find_group(argv[i]), dot ? dot + 1 : NULL);
    }
    return err;
}

size_t bench_free_bytes(void)
{
    struct frame_stats stats;

    frame_stats_get(&stats);
    return stats.free * PAGE_SIZE + percpu_counters_bytes();
}

int bench_jumps(bool on)
{
    return optimize_set_method(on ? OPTIMIZE_PUN : OPTIMIZE_OFF);
}

static void print_goals(struct shell *sh)
{
    struct bench_verdict verdict = bench_goals_end();

    if (verdict.goals)
        shell_printf(sh, "# %u goals, %u missed\n", verdict.goals, verdict.missed);
}

static int run_command(struct shell *sh, int argc, char **argv)
{
    int err;

    bench_goals_begin();
    err = argc == 1 ? run_all(sh) : run_groups(sh, argc, argv);
    print_goals(sh);
    return err;
}

__attribute__((constructor)) static void bench_come(void)
{
    bench_module = run_command;
}

__attribute__((destructor)) static void bench_go(void)
{
    bench_module = NULL;
}
