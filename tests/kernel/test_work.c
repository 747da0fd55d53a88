/* test_work.c - workloads have the same checksum in each run, print the right number of
 * calls, and leak no memory.
 */
#include "kernel/work/work.h"

#include "kernel/fs/vfs.h"
#include "probes/kprobe.h"
#include "tests/kernel/hits.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/say.h"

#include <stdio.h>
#include <stdlib.h>

struct result {
    uint64_t checksum, calls;
    char function[64];
};

/* run - run a workload, and parse the line that it prints. Return: 0; its errno; -EIO if
 * the line has another form.
 */
static int run(const char *name, const char *seed, struct result *out)
{
    char word[24];
    char *argv[] = { word, NULL };
    char *end;
    const char *at;
    struct seq s;
    int err;

    snprintf(word, sizeof(word), "%s", seed);
    seq_init(&s, NULL, NULL);
    err = workload_run(name, 1, argv, &s, NULL, NULL);
    at = strstr(seq_str(&s), ": checksum 0x");
    if (!err && (!at || strncmp(s.text, name, strlen(name)) != 0))
        err = -EIO;
    if (!err) {
        out->checksum = strtoull(at + 13, &end, 16);
        at = strstr(end, " calls ");
        out->calls = at ? strtoull(at + 7, &end, 10) : 0;
        snprintf(out->function, sizeof(out->function), "%.*s",
                 (int)strcspn(at ? end + 4 : "", "\n"), at ? end + 4 : "");
    }
    seq_free(&s);
    return err;
}

KTEST(work, checksums_depend_on_the_seed_only)
{
    const struct workload *load;
    struct result a = { 0 }, b = { 0 }, c = { 0 };

    for (unsigned i = 0; (load = workload_get(i)) != NULL; i++) {
        int err = run(load->name, "7", &a);

        err = err ? err : run(load->name, "7", &b);
        err = err ? err : run(load->name, "8", &c);
        ktest_report(!err, "%s runs (%s)", load->name, err_name(err));
        ktest_report(a.checksum == b.checksum && a.calls == b.calls,
                     "%s: the same twice, 0x%016lx", load->name, a.checksum);
        if (strcmp(load->name, "timer") != 0)
            ktest_report(a.checksum != c.checksum, "%s: another with another seed",
                         load->name);
        ktest_report(a.calls > 0, "%s: calls %lu of %s", load->name, a.calls, a.function);
    }
}

/* These are the workloads whose function is called by no other thread meanwhile. */
KTEST(work, a_probe_sees_the_calls_that_are_printed)
{
    static const char *const exact[] = {
        "fork",   "vfs",       "write",   "tree", "sort",
        "matrix", "recursion", "special", "hash", "map"
    };
    struct result r = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(exact); i++) {
        struct hits *h = NULL;
        uint64_t hits;
        int err = run(exact[i], "3", &r);

        if (!err)
            h = hits_begin(r.function);
        err = err ? err : run(exact[i], "3", &r);
        hits = hits_end(h);
        ktest_report(!err && hits == r.calls, "%s: %lu hits of %lu calls of %s", exact[i],
                     hits, r.calls, r.function);
    }
}

static int guest_run(struct work *w)
{
    w->function = "guest_run";
    return 0;
}

KTEST(work, a_table_goes_with_the_code_that_it_calls)
{
    static const struct workload guest = { "work_guest", "", guest_run };
    uintptr_t code = (uintptr_t)guest_run;
    struct result r = { 0 };

    ktest_report(workload_add(&guest, 1) == 0 && workload_remove(0, code) == 0 &&
                     run("work_guest", "1", &r) == 0,
                 "it stays when other code goes");
    ktest_report(workload_remove(code, code + 1) == 0 &&
                     run("work_guest", "1", &r) == -ENOENT,
                 "it goes with this function, though the table lies elsewhere");
}

KTEST(work, a_table_with_one_name_twice_is_refused)
{
    static const struct workload twins[] = { { "work_twin", "", guest_run },
                                             { "work_guest", "", guest_run },
                                             { "work_twin", "", guest_run } };
    uintptr_t code = (uintptr_t)guest_run;
    size_t bytes = heap_in_use();
    struct result r = { 0 };

    ktest_report(workload_add(twins, 3) == -EEXIST && heap_in_use() == bytes &&
                     run("work_guest", "1", &r) == -ENOENT,
                 "the whole table");
    ktest_report(workload_add(twins, 2) == 0 && workload_add(twins + 2, 1) == -EEXIST,
                 "and so is a table with a name of another one");
    workload_remove(code, code + 1);
}

KTEST(work, fork_creates_one_thread)
{
    struct result r = { 0 };

    ktest_report(run("fork", "1", &r) == 0 && r.calls == 1, "one call is printed");
    ktest_report(strcmp(r.function, "kernel_clone") == 0, "of kernel_clone");
}

/* refuse_sixth - let the calls of kernel_clone() fail from the sixth one on. */
static unsigned clones;

static int refuse_sixth(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    if (++clones < 6)
        return 0;
    regs->ax = (uint64_t)-ENOMEM;
    regs->ip = *(const uintptr_t *)regs->sp;
    regs->sp += sizeof(uintptr_t);
    return 1;
}

/* In `wait` each task waits for the one before it. */
KTEST(work, a_task_that_cannot_be_started_ends_the_run)
{
    static const char *const names[] = { "sleep", "wait" };
    static const char *const tasks[] = { "sleep_task", "wait_task" };
    struct result r = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct kprobe p = { .symbol_name = "kernel_clone", .pre_handler = refuse_sixth };
        struct hits *h;

        clones = 0;
        ktest_report(register_kprobe(&p) == 0, "there is memory for five threads");
        h = hits_begin(tasks[i]);
        ktest_report(run(names[i], "1", &r) == -ENOMEM, "%s says so", names[i]);
        ktest_report(hits_end(h) == 0, "and no task has begun");
        unregister_kprobe(&p);
        ktest_report(run(names[i], "1", &r) == 0, "with memory it runs");
    }
}

static bool has_file(const char *path)
{
    struct vfs_stat s;

    return !vfs_stat(path, &s);
}

KTEST(work, files_of_the_user_stay)
{
    struct file file = { .flags = VFS_WRITE | VFS_NEW };
    struct result r = { 0 };

    ktest_report(!vfs_open("/tmp/work.0", &file) && !vfs_mkdir("/tmp/work.dir.3"),
                 "the user has files with such names");
    vfs_close(&file);
    ktest_report(run("vfs", "1", &r) == -EEXIST && run("write", "1", &r) == -EEXIST,
                 "the workload is refused");
    ktest_report(run("tree", "1", &r) == -EEXIST, "one with directories, too");
    ktest_report(has_file("/tmp/work.0") && has_file("/tmp/work.dir.3"),
                 "they are there after that");
    ktest_report(!has_file("/tmp/work.1") && !has_file("/tmp/work.dir.0"),
                 "what the workload made is not");
    ktest_report(!vfs_unlink("/tmp/work.0") && !vfs_rmdir("/tmp/work.dir.3") &&
                     !run("vfs", "1", &r) && !run("tree", "1", &r),
                 "without them, it runs");
}

KTEST(work, all_runs_all_and_leaves_nothing)
{
    size_t blocks = heap_block_count();
    unsigned lines = 0, count = 0;
    struct seq s;

    seq_init(&s, NULL, NULL);
    ktest_report(workload_run("all", 0, NULL, &s, NULL, NULL) == 0, "all run");
    for (const char *p = seq_str(&s); *p; p++)
        lines += *p == '\n';
    while (workload_get(count))
        count++;
    ktest_report(count >= 12 && lines == count + 1, "%u workloads and a last line",
                 count);
    ktest_report(strstr(seq_str(&s), "\nall: checksum 0x") != NULL,
                 "which is that of all");
    seq_free(&s);
    ktest_report(heap_block_count() == blocks, "no block is left over");
}

/* asked - return true from call number @countdown + 1 on. */
static bool asked(void *countdown)
{
    long *left = countdown;

    return __atomic_sub_fetch(left, 1, __ATOMIC_RELAXED) < 0;
}

/* hold - keep the run that asks, until the test lets it go on. */
static struct turn {
    bool taken, over;
} turn;

static bool hold(void *arg UNUSED)
{
    WRITE_ONCE(turn.taken, true);
    while (!READ_ONCE(turn.over))
        thread_yield();
    return false;
}

static int run_and_hold(void *arg)
{
    return workload_run("format", 0, NULL, arg, hold, NULL);
}

KTEST(work, a_run_that_waits_for_its_turn_can_be_stopped)
{
    struct seq theirs, ours;
    struct clone_args args = { .fn = run_and_hold, .arg = &theirs, .name = "holder" };
    int tid, code = -1;
    long left = 1;

    seq_init(&theirs, NULL, NULL);
    seq_init(&ours, NULL, NULL);
    turn = (struct turn){ 0 };
    tid = kernel_clone(&args);
    while (tid > 0 && !READ_ONCE(turn.taken))
        thread_yield();
    ktest_report(workload_run("format", 0, NULL, &ours, asked, &left) == -EINTR,
                 "while another run has the turn");
    WRITE_ONCE(turn.over, true);
    ktest_report(!thread_join(tid, &code) && !code, "the other run goes on");
    seq_free(&theirs);
    seq_free(&ours);
}

/* Long workloads ask again and again whether they should stop. They must end as soon as
 * the answer is yes, and leave no memory and no file.
 */
KTEST(work, a_run_can_be_stopped)
{
    static const char *const names[] = { "heap", "vfs", "write", "all" };
    size_t blocks = heap_block_count();

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (long times = 0; times < 20; times += 3) {
            long left = times;
            struct seq s;
            int err;

            seq_init(&s, NULL, NULL);
            err = workload_run(names[i], 0, NULL, &s, asked, &left);
            ktest_report(err == -EINTR && left < 0, "%s is stopped at the %ld. time",
                         names[i], times + 1);
            ktest_report(!strstr(seq_str(&s), "all: checksum"), "and has no result");
            seq_free(&s);
        }
    ktest_report(heap_block_count() == blocks, "no block is left over");
    say("ls /tmp");
    ktest_report(output.len == 0, "and no file");
}
