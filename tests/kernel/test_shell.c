/* test_shell.c - commands that need the running kernel, called without a console. Tests
 * on the host check the shell itself.
 */
#include "kernel/console/shell.h"

#include "kernel/base/err.h"
#include "kernel/debug/log.h"
#include "kernel/mm/heap.h"
#include "tests/kernel/ktest.h"

#include <string.h>

static int status; /* of the last line */

static bool prints(const char *line, const char *wanted)
{
    struct seq s;
    bool found;

    seq_init(&s, NULL, NULL);
    status = shell_execute(line, &s);
    found = strstr(seq_str(&s), wanted) != NULL;
    if (!found)
        ktest_note("%s: %.300s", line, seq_str(&s));
    seq_free(&s);
    return found;
}

KTEST(shell, commands_show_the_system)
{
    ktest_report(prints("ps", "idle/0") && !status, "ps lists idle threads");
    ktest_report(prints("cpus", "\n  0 ") && !status, "cpus lists CPU 0");
    ktest_report(prints("mem", "KiB free") && !status, "mem knows free memory");
    log_info("a line for dmesg");
    ktest_report(prints("dmesg | tail -n 9", "a line for dmesg") && !status,
                 "dmesg prints the log");
    ktest_report(prints("run list | grep '^vfs '",
                        "vfs        threads on all CPUs read files\n") &&
                     !status,
                 "run list");
    ktest_report(prints("run fork 5", "fork: checksum 0x") && !status, "run fork");
    ktest_report(prints("help probe", "probe") && !status,
                 "help knows what others added");
}

KTEST(shell, sym_goes_both_ways)
{
    ktest_report(prints("sym vfs_read", " T vfs_read+0x0/0x") && !status, "by name");
    ktest_report(prints("sym vfs_read+0x2", " T vfs_read+0x2/0x") && !status,
                 "with an offset");
    ktest_report(prints("sym 0xffffffff80200000", "+0x0/0x") && !status, "by address");
    ktest_report(prints("sym kfree sort_compare", " t sort_compare+0x0") && !status,
                 "local ones too");
    ktest_report(prints("sym namesake | wc -l", "2\n") && !status,
                 "all that have the name: two files have a namesake");
    ktest_report(prints("sym vfs_raed", "sym: vfs_raed: no symbol has this name "
                                        "(did you mean `vfs_read`?)\n") &&
                     status == -ENOENT,
                 "an unknown name is ENOENT, with the nearest one");
    ktest_report(prints("sym 0x10", "sym: 0x10: no symbol contains this address\n") &&
                     status == -ENOENT,
                 "so is an address outside");
}

KTEST(shell, a_message_names_what_is_wrong)
{
    static const struct {
        const char *line, *message;
        int status;
    } rows[] = {
        { "probe del nothing", "probe: no probe is called nothing\n", -ENOENT },
        { "probe list nothing", "probe: no probe is called nothing\n", -ENOENT },
        { "module del nothing", "module: no module is called nothing\n", -ENOENT },
        { "module info nothing", "module: no module is called nothing\n", -ENOENT },
        { "module load", "list | info NAME | symbols\n", -EINVAL },
        { "run vfs seven", "run: seven is no seed, which is a number\n", -EINVAL },
    };

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        ktest_report(prints(rows[i].line, rows[i].message) && status == rows[i].status,
                     "%s", rows[i].line);
}

KTEST(shell, lines_have_a_status)
{
    prints("nosuch", "sh: nosuch: unknown command");
    ktest_report(status == -ENOENT, "unknown command");
    prints("cat /proc/nosuch", "cat: /proc/nosuch: No such file");
    ktest_report(status == -ENOENT, "unknown file");
    prints("run nosuch", "run: nosuch: No such file");
    ktest_report(status == -ENOENT, "unknown workload");
    prints("echo x > /proc/version", "sh: /proc/version: Permission denied");
    ktest_report(status == -EACCES, "a file that cannot be written");
    ktest_report(prints("echo hi > /tmp/t", "") && !status, "a file is written");
    ktest_report(prints("cat /tmp/t", "hi\n") && !status, "and read");
    ktest_report(prints("rm /tmp/t", "") && !status, "and removed");
}

/* A line that cannot get memory fails; a line that needs none succeeds. No line leaks. */
KTEST(shell, a_full_heap_is_an_error_and_no_leak)
{
    static const char *const lines[] = {
        "ps",
        "cat /proc/kallsyms | grep vfs | sort -r | head -n 3",
        "echo some text > /tmp/t",
        "ls /proc",
        "run fork",
        "rm /tmp/t",
    };
    size_t blocks = heap_block_count();
    unsigned refused = 0, other = 0;
    struct seq s;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        for (long n = 1; n <= 20; n++) {
            seq_init(&s, NULL, NULL);
            heap_fail_after(n);
            status = shell_execute(lines[i], &s);
            heap_fail_after(-1);
            refused += status == -ENOMEM;
            other += status && status != -ENOMEM && status != -ENOENT;
            seq_free(&s);
        }
    }
    ktest_report(refused >= 20, "ENOMEM is said %u times", refused);
    ktest_report(other == 0, "and nothing else");
    prints("rm /tmp/t", "");
    ktest_report(heap_block_count() == blocks, "no block is left over");
}
