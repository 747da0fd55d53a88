/* test_vfs.c - the file layer in the running kernel: the files of /proc, and files that all
 * CPUs change. Tests on the host check paths and errors.
 */
#include "kernel/fs/vfs.h"

#include "kernel/debug/ksyms.h"
#include "kernel/fs/proc.h"
#include "tests/kernel/each_cpu.h"
#include "tests/kernel/ktest.h"

#include <stdio.h>
#include <stdlib.h>

/* get - read the whole file @path into @out. Return: 0 or its errno. */
static int get(const char *path, struct seq *out)
{
    struct file file = { .flags = VFS_READ };
    char buf[512];
    uint64_t pos = 0;
    long len;
    int err;

    seq_init(out, NULL, NULL);
    err = vfs_open(path, &file);
    if (err)
        return err;
    while ((len = vfs_read(&file, buf, sizeof(buf), &pos)) > 0)
        seq_write(out, buf, (size_t)len);
    vfs_close(&file);
    return len < 0 ? (int)len : out->err;
}

static long put(const char *path, unsigned flags, const char *text)
{
    struct file file = { .flags = VFS_WRITE | flags };
    uint64_t pos = 0;
    long done;
    int err;

    err = vfs_open(path, &file);
    if (err)
        return err;
    done = vfs_write(&file, text, strlen(text), &pos);
    vfs_close(&file);
    return done;
}

static bool is_kallsyms_line(const char *line, uintptr_t *addr, char *name)
{
    char *end;
    size_t len = strcspn(line, "\n");

    *addr = strtoull(line, &end, 16);
    if (end != line + 16 || line[16] != ' ' || !strchr("TtDdBbRr", line[17]))
        return false;
    if (line[18] != ' ' || len <= 19 || len - 19 >= 128)
        return false;
    snprintf(name, 128, "%.*s", (int)(len - 19), line + 19);
    return !strpbrk(name, " \t");
}

KTEST(vfs, kallsyms_lists_all_symbols_by_address)
{
    struct seq s;
    char name[128];
    uintptr_t addr, last = 0, found = 0;
    size_t count = 0, bad = 0, back = 0;

    ktest_report(get("/proc/kallsyms", &s) == 0, "/proc/kallsyms can be read");
    for (const char *line = seq_str(&s); *line; line += strcspn(line, "\n") + 1) {
        bad += !is_kallsyms_line(line, &addr, name);
        back += addr < last;
        last = addr;
        count++;
        if (strcmp(name, "vfs_read") == 0)
            found = addr;
    }
    ktest_report(bad == 0, "every line is address, type and name");
    ktest_report(back == 0, "addresses never go back");
    ktest_report(count == ksyms_count() && count > 256, "all %zu symbols are there",
                 count);
    ktest_report(found == (uintptr_t)vfs_read, "vfs_read has its address");
    seq_free(&s);
}

/* -- contention ---------------------------------------------------------------------- */

static bool holds_only(const char *path, const char *part)
{
    struct seq s;
    size_t len = strlen(part);
    bool good = get(path, &s) == 0 && s.len % len == 0;

    for (size_t i = 0; good && i < s.len; i += len)
        good = memcmp(s.text + i, part, len) == 0;
    seq_free(&s);
    return good;
}

/* Each CPU appends to one file, and makes and removes a directory and a file of its own. */
static int work_in_tmp(void *arg UNUSED)
{
    char dir[24], file[32];
    unsigned failed = 0;

    snprintf(dir, sizeof(dir), "/tmp/cpu%u", cpu_id());
    snprintf(file, sizeof(file), "%s/file", dir);
    for (uint64_t i = 0; i < ktest_count(20, 50); i++) {
        failed += put("/tmp/shared", VFS_APPEND, "whole\n") != 6;
        failed += vfs_mkdir(dir) != 0;
        failed += put(file, VFS_TRUNC, "mine") != 4;
        failed += !holds_only(file, "mine");
        failed += !holds_only("/tmp/shared", "whole\n");
        failed += vfs_rmdir(dir) != -ENOTEMPTY;
        failed += vfs_unlink(file) != 0;
        failed += vfs_rmdir(dir) != 0;
    }
    return (int)failed;
}

KTEST(vfs, files_keep_their_content_under_contention)
{
    size_t blocks = heap_block_count();
    struct seq s;

    ktest_report(each_cpu_run(work_in_tmp, NULL) == 0,
                 "all CPUs found their files as they left them");
    ktest_report(get("/tmp/shared", &s) == 0 &&
                     s.len == 6 * ktest_count(20, 50) * cpu_count(),
                 "every append is in the shared file");
    seq_free(&s);
    ktest_report(vfs_unlink("/tmp/shared") == 0, "which can be removed");
    ktest_report(heap_block_count() == blocks, "no block is left over");
}
