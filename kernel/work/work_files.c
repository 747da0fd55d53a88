/* work_files.c - workloads about the file layer. */
#include "kernel/base/err.h"
#include "kernel/fs/vfs.h"
#include "kernel/work/work.h"

#include <stdio.h>
#include <string.h>

#define FILE_LEN 600
#define PATH_LEN 32

static void fill_text(char *text, size_t len, uint64_t *state)
{
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + work_next(state) % 26);
}

/* file_fill - write @text to @path in pieces of @step bytes.
 * @how: VFS_NEW: a file of the user's is refused; or VFS_TRUNC
 */
static int file_fill(struct work_task *t, const char *path, unsigned how,
                     const char *text, size_t step)
{
    struct file file = { .flags = VFS_WRITE | how };
    uint64_t pos = 0;
    long done = 0;
    int err;

    err = vfs_open(path, &file);
    if (err)
        return err;
    while (done >= 0 && pos < FILE_LEN) {
        size_t len = FILE_LEN - pos < step ? FILE_LEN - pos : step;

        done = vfs_write(&file, text + pos, len, &pos);
        t->calls++;
    }
    vfs_close(&file);
    return done < 0 ? (int)done : 0;
}

/* file_get - read all of @path in pieces of @step bytes, 64 at most, and mix it into
 * t->result.
 */
static int file_get(struct work_task *t, const char *path, size_t step)
{
    struct file file = { .flags = VFS_READ };
    char buf[64];
    uint64_t pos = 0;
    long len;
    int err;

    err = vfs_open(path, &file);
    if (err)
        return err;
    do {
        len = vfs_read(&file, buf, step, &pos);
        t->calls++;
        if (len > 0)
            t->result = work_hash(t->result ^ work_hash_text(buf, (uint64_t)len));
    } while (len > 0);
    vfs_close(&file);
    return (int)len;
}

/* own_path - the path of the task's own file. No other task uses the file, so its content
 * depends only on the seed of the task.
 */
static void own_path(const struct work_task *t, char path[PATH_LEN])
{
    snprintf(path, PATH_LEN, "/tmp/work.%u", t->idx);
}

/* -- vfs: reading -------------------------------------------------------------------- */

/* make_file - write the file. This workload counts only calls of vfs_read(), so the count
 * of the writes is dropped.
 */
static int make_file(struct work_task *t, const char *path)
{
    char text[FILE_LEN];
    uint64_t calls = t->calls;
    int err;

    fill_text(text, sizeof(text), &t->seed);
    err = file_fill(t, path, VFS_NEW, text, FILE_LEN);
    t->calls = calls;
    return err;
}

static int read_task(struct work_task *t)
{
    char path[PATH_LEN];
    int err;

    own_path(t, path);
    err = make_file(t, path);
    for (unsigned i = 0; !err && i < 4; i++) {
        err = file_get(t, path, 16 + work_next(&t->seed) % 49);
        if (!err)
            err = file_get(t, "/proc/version", 64);
        if (!err)
            err = work_stop();
    }
    if (err != -EEXIST)
        vfs_unlink(path);
    return err;
}

static int vfs_run(struct work *w)
{
    w->function = "vfs_read";
    return work_spread(w, read_task, NULL);
}
WORKLOAD(vfs, vfs_run, "threads on all CPUs read files");

/* -- write: writing, and reading back ------------------------------------------------ */

static int write_task(struct work_task *t)
{
    char path[PATH_LEN], text[FILE_LEN];
    uint64_t calls = 0;
    int err = 0;

    own_path(t, path);
    for (unsigned i = 0; !err && i < 4; i++) {
        fill_text(text, sizeof(text), &t->seed);
        err = file_fill(t, path, i ? VFS_TRUNC : VFS_NEW, text,
                        50 + work_next(&t->seed) % 100);
        calls = t->calls;
        if (!err)
            err = file_get(t, path, 64);
        t->calls = calls; /* count only calls of vfs_write() */
        if (!err)
            err = work_stop();
    }
    if (err != -EEXIST)
        vfs_unlink(path);
    return err;
}

static int write_run(struct work *w)
{
    w->function = "vfs_write";
    return work_spread(w, write_task, NULL);
}
WORKLOAD(write, write_run, "threads on all CPUs write files and read them back");

/* -- tree: directories --------------------------------------------------------------- */

#define TREE_DIRS 10

static int tree_run(struct work *w)
{
    char path[PATH_LEN];
    struct seq names;
    unsigned made = 0;
    int err = 0;

    w->function = "vfs_rmdir";
    seq_init(&names, NULL, NULL);
    while (!err && made < TREE_DIRS) {
        snprintf(path, sizeof(path), "/tmp/work.dir.%u", made);
        err = vfs_mkdir(path);
        made += !err;
    }
    if (!err)
        err = vfs_readdir("/tmp", &names);
    if (!err && !strstr(seq_str(&names), "work.dir.0/\nwork.dir.1/\n"))
        err = -EIO;
    seq_free(&names);
    for (unsigned i = 0; i < made; i++) {
        snprintf(path, sizeof(path), "/tmp/work.dir.%u", i);
        work_mix(w, (uint64_t)vfs_rmdir(path) ^ work_random(w));
        w->calls++;
    }
    return err;
}
WORKLOAD(tree, tree_run, "make, list and remove directories");
