/* test_shell.c - commands that need the running kernel, called without a console. Tests
 * on the host check the shell itself.
 */
#include "kernel/console/shell.h"

#include "probes/kprobe.h"

#include "tests/kernel/ktest.h"

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
    ktest_report(prints("sym vfs_stat+0x8000", "/0x") && !status &&
                     !prints("sym vfs_stat+0x8000", "vfs_stat+") &&
                     prints("sym vfs_stat+0x40000000", "sym: vfs_stat: Bad address\n") &&
                     status == -EFAULT,
                 "behind its end is another function, or nothing");
    ktest_report(prints("sym 0x10", "sym: 0x10: no symbol contains this address\n") &&
                     status == -ENOENT,
                 "so is an address outside");
}

static unsigned looks, missing;

/* look - a shell looks for the last command while another one is being added. */
static int look(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    looks++;
    missing += !shell_table_find("wc");
    return 0;
}

static int nothing_run(struct shell *sh UNUSED, int argc UNUSED, char **argv UNUSED)
{
    return 0;
}

KTEST(shell, no_command_is_missing_while_one_is_added)
{
    static const struct shell_command first = { "!", "", "a test's", nothing_run, NULL };
    struct kprobe p = { .symbol_name = "strcmp", .pre_handler = look };

    ktest_report(shell_table_find("wc") && !register_kprobe(&p), "a probe looks");
    ktest_report(!shell_add_command(&first), "a command comes in front of all others");
    unregister_kprobe(&p);
    ktest_report(looks > 20 && !missing, "%u looks, %u miss the last one", looks,
                 missing);
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
        { "trace -w 'vfs_open {count}' -- cat /no | wc", "cat: /no: No such file or dir",
          -ENOENT },
        { "sym vfs_read+x", "sym: vfs_read+x: Invalid argument\n", -EINVAL },
        { "run vfs seven", "run: seven is no seed, which is a number\n", -EINVAL },
    };

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        ktest_report(prints(rows[i].line, rows[i].message) && status == rows[i].status,
                     "%s", rows[i].line);
}
