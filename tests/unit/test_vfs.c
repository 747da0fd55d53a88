/* test_vfs.c - tests of the file layer: paths, trees of subsystems, and files below
 * /tmp.
 */
#include "kernel/fs/vfs.h"
#include "tests/unit/fake_kernel.h"
#include "tests/unit/unit.h"

static int shows, truncates; /* calls of the callbacks */
static char taken[64];       /* the text of the last write */
static int answer;           /* the callbacks return it */

static int demo_show(struct seq *s, void *priv)
{
    CHECK_EQ(fake_mutex_depth(), 0);
    shows++;
    seq_printf(s, "%s %d\n", (const char *)priv, shows);
    return answer;
}

static long demo_write(void *priv UNUSED, const char *text, size_t len)
{
    CHECK_EQ(fake_mutex_depth(), 0);
    snprintf(taken, sizeof(taken), "%.*s", (int)len, text);
    return answer ? answer : (long)len;
}

static int demo_truncate(void *priv UNUSED)
{
    CHECK_EQ(fake_mutex_depth(), 0);
    truncates++;
    return answer;
}

static const struct vfs_file demo_files[] = {
    { .name = "status", .mode = 0444, .show = demo_show, .priv = "status" },
    { .name = "control",
      .mode = 0640,
      .show = demo_show,
      .write = demo_write,
      .truncate = demo_truncate,
      .priv = "control" },
    { .name = "events/one/enable", .mode = 0644, .write = demo_write },
};

static size_t base_blocks; /* blocks of the heap before the tree of the test is added */

static void set_up(void)
{
    static bool ready;

    if (!ready)
        CHECK_EQ(vfs_init(), 0);
    ready = true;
    base_blocks = fake_heap_blocks();
    shows = truncates = answer = 0;
    taken[0] = '\0';
    CHECK_EQ(vfs_add_tree("/sys/demo", demo_files, 3), 0);
}

static bool is_aliased; /* an alias stays, and so does the tree */

static void tear_down(void)
{
    if (is_aliased)
        return;
    CHECK_EQ(vfs_remove_tree("/sys"), 0);
    CHECK_EQ(fake_heap_blocks(), base_blocks);
    CHECK_EQ(fake_mutex_depth(), 0);
}

static int try_open(const char *path, unsigned flags)
{
    struct file f = { .flags = flags };
    int err = vfs_open(path, &f);

    if (!err)
        vfs_close(&f);
    return err;
}

/* put - write @text to the file @path with one vfs_write(), and return its result. */
static long put(const char *path, unsigned flags, const char *text)
{
    struct file f = { .flags = VFS_WRITE | flags };
    uint64_t pos = 0;
    long done;
    int err = vfs_open(path, &f);

    if (err)
        return err;
    done = vfs_write(&f, text, strlen(text), &pos);
    vfs_close(&f);
    return done;
}

/* get - return the content of the file @path; "!" if it cannot be opened. Valid until the
 * next call.
 */
static const char *get(const char *path)
{
    static char text[256];
    struct file f = { .flags = VFS_READ };
    uint64_t pos = 0;
    long len;

    if (vfs_open(path, &f))
        return "!";
    len = vfs_read(&f, text, sizeof(text) - 1, &pos);
    text[len] = '\0';
    CHECK_EQ(vfs_read(&f, text + len, 1, &pos), 0);
    vfs_close(&f);
    return text;
}

UNIT_TEST(paths_may_have_dots_and_spare_slashes)
{
    CHECK_STR(get("//sys///demo/./status"), "status 1\n");
    CHECK_STR(get("sys/demo/../demo/status"), "status 2\n");
    CHECK_STR(get("/../sys/demo/status"), "status 3\n");
}

UNIT_TEST(a_bad_path_says_why)
{
    char lengthy[VFS_NAME_MAX + 3];

    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[0] = '/';
    lengthy[sizeof(lengthy) - 1] = '\0';
    CHECK_EQ(try_open("", VFS_READ), -ENOENT);
    CHECK_EQ(try_open("/", VFS_READ), -EISDIR);
    CHECK_EQ(try_open("/nosuch", VFS_READ), -ENOENT);
    CHECK_EQ(try_open("/nosuch/file", VFS_READ), -ENOENT);
    CHECK_EQ(try_open("/sys/demo", VFS_READ), -EISDIR);
    CHECK_EQ(try_open("/sys/demo/status/x", VFS_READ), -ENOTDIR);
    CHECK_EQ(try_open("/sys/demo/status/", VFS_READ), -ENOTDIR);
    CHECK_EQ(try_open("/sys/demo/status/..", VFS_READ), -ENOTDIR);
    CHECK_EQ(try_open(lengthy, VFS_READ), -ENAMETOOLONG);
    CHECK_EQ(try_open("/sys/demo/status", 0), -EINVAL);
}

UNIT_TEST(access_follows_the_callbacks)
{
    CHECK_EQ(try_open("/sys/demo/status", VFS_WRITE), -EACCES);
    CHECK_EQ(try_open("/sys/demo/events/one/enable", VFS_READ), -EACCES);
    CHECK_EQ(try_open("/sys/demo/new", VFS_WRITE), -EACCES);
    CHECK_EQ(try_open("/new", VFS_WRITE), -EACCES);
}

UNIT_TEST(a_file_must_be_open_for_what_is_done)
{
    struct file f = { .flags = VFS_READ };
    uint64_t pos = 0;
    char c;

    CHECK_EQ(vfs_open("/sys/demo/control", &f), 0);
    CHECK_EQ(vfs_write(&f, "x", 1, &pos), -EBADF);
    vfs_close(&f);
    f.flags = VFS_WRITE;
    CHECK_EQ(vfs_open("/sys/demo/control", &f), 0);
    CHECK_EQ(vfs_read(&f, &c, 1, &pos), -EBADF);
    vfs_close(&f);
}

UNIT_TEST(a_write_arrives_whole)
{
    CHECK_EQ(put("/sys/demo/control", VFS_APPEND, "one\ntwo\n"), 8);
    CHECK_STR(taken, "one\ntwo\n");
    CHECK_EQ(truncates, 0);
    CHECK_EQ(shows, 0);
    answer = -EBUSY;
    CHECK_EQ(put("/sys/demo/control", VFS_APPEND, "x"), -EBUSY);
}

UNIT_TEST(truncating_is_an_event_of_its_own)
{
    CHECK_EQ(try_open("/sys/demo/control", VFS_WRITE | VFS_TRUNC), 0);
    CHECK_EQ(truncates, 1);
    CHECK_STR(taken, "");
    CHECK_EQ(try_open("/sys/demo/events/one/enable", VFS_WRITE | VFS_TRUNC), 0);
    answer = -EBUSY;
    CHECK_EQ(try_open("/sys/demo/control", VFS_WRITE | VFS_TRUNC), -EBUSY);
}

UNIT_TEST(a_failing_show_fails_the_open)
{
    answer = -EIO;
    CHECK_EQ(try_open("/sys/demo/status", VFS_READ), -EIO);
}

UNIT_TEST(directories_list_sorted_with_a_slash)
{
    struct seq s;

    seq_init(&s, NULL, NULL);
    CHECK_EQ(vfs_readdir("/sys/demo", &s), 0);
    CHECK_STR(seq_str(&s), "control\nevents/\nstatus\n");
    seq_free(&s);
    CHECK_EQ(vfs_readdir("/", &s), 0);
    CHECK_STR(seq_str(&s), "sys/\ntmp/\n");
    seq_free(&s);
    CHECK_EQ(vfs_readdir("/sys/demo/status", &s), -ENOTDIR);
    CHECK_EQ(vfs_readdir("/nosuch", &s), -ENOENT);
}

UNIT_TEST(stat_knows_kind_and_mode)
{
    struct vfs_stat st;

    CHECK_EQ(vfs_stat("/sys/demo/control", &st), 0);
    CHECK(!st.is_dir && st.mode == 0640);
    CHECK_EQ(vfs_stat("/sys/demo/", &st), 0);
    CHECK(st.is_dir && st.mode == 0755);
    CHECK_EQ(vfs_stat("/sys/no", &st), -ENOENT);
}

UNIT_TEST(memory_files_live_below_tmp)
{
    CHECK_EQ(put("/tmp/x", VFS_TRUNC, "hello"), 5);
    CHECK_STR(get("/tmp/x"), "hello");
    CHECK_EQ(put("/tmp/x", VFS_APPEND, " you"), 4);
    CHECK_STR(get("/tmp/x"), "hello you");
    CHECK_EQ(put("/tmp/x", 0, "J"), 1);
    CHECK_STR(get("/tmp/x"), "Jello you");
    CHECK_EQ(put("/tmp/x", VFS_TRUNC, ""), 0);
    CHECK_STR(get("/tmp/x"), "");
    CHECK_EQ(vfs_unlink("/tmp/x"), 0);
    CHECK_STR(get("/tmp/x"), "!");
}

UNIT_TEST(a_removed_file_lives_until_its_last_close)
{
    struct file f = { .flags = VFS_READ | VFS_WRITE };
    uint64_t pos = 0;

    CHECK_EQ(put("/tmp/x", VFS_TRUNC, "text"), 4);
    CHECK_EQ(vfs_open("/tmp/x", &f), 0);
    CHECK_EQ(vfs_unlink("/tmp/x"), 0);
    CHECK_STR(get("/tmp/x"), "!");
    CHECK_EQ(vfs_write(&f, "more text", 9, &pos), 9);
    vfs_close(&f);
}

UNIT_TEST(a_write_behind_the_end_fills_with_nuls)
{
    struct file f = { .flags = VFS_READ | VFS_WRITE };
    uint64_t pos = 3;
    char buf[8];

    CHECK_EQ(vfs_open("/tmp/x", &f), 0);
    CHECK_EQ(vfs_write(&f, "abc", 3, &pos), 3);
    CHECK_EQ(pos, 6);
    vfs_close(&f);
    f.flags = VFS_READ;
    CHECK_EQ(vfs_open("/tmp/x", &f), 0);
    pos = 0;
    CHECK_EQ(vfs_read(&f, buf, 8, &pos), 6);
    CHECK_BYTES((const uint8_t *)buf, "00 00 00 61 62 63");
    vfs_close(&f);
    CHECK_EQ(vfs_unlink("/tmp/x"), 0);
}

UNIT_TEST(tmp_is_bounded)
{
    struct file f = { .flags = VFS_WRITE };
    uint64_t pos = VFS_TMP_BYTES - 2;
    char name[32];
    int err = 0;
    unsigned made = 0;

    CHECK_EQ(vfs_open("/tmp/x", &f), 0);
    CHECK_EQ(vfs_write(&f, "abc", 3, &pos), -ENOSPC);
    CHECK_EQ(vfs_write(&f, "ab", 2, &pos), 2);
    CHECK_EQ(put("/tmp/y", 0, "z"), -ENOSPC);
    pos = UINT64_MAX;
    CHECK_EQ(vfs_write(&f, "ab", 2, &pos), -ENOSPC);
    vfs_close(&f);
    CHECK_EQ(vfs_unlink("/tmp/x"), 0);
    CHECK_EQ(put("/tmp/y", 0, "z"), 1);
    CHECK_EQ(vfs_unlink("/tmp/y"), 0);
    for (; !err && made < 2 * VFS_TMP_NODES; made++) {
        snprintf(name, sizeof(name), "/tmp/d%u", made);
        err = vfs_mkdir(name);
    }
    CHECK_EQ(err, -ENOSPC);
    while (made--) {
        snprintf(name, sizeof(name), "/tmp/d%u", made);
        vfs_rmdir(name);
    }
}

UNIT_TEST(directories_are_made_below_tmp_only)
{
    CHECK_EQ(vfs_mkdir("/sys/demo/x"), -EPERM);
    CHECK_EQ(vfs_rmdir("/sys/demo"), -EPERM);
    CHECK_EQ(vfs_rmdir("/sys/no"), -ENOENT);
    CHECK_EQ(vfs_rmdir("/sys/demo/status"), -ENOTDIR);
    CHECK_EQ(vfs_unlink("/sys/demo/status"), -EPERM);
    CHECK_EQ(vfs_mkdir("/tmp"), -EEXIST);
    CHECK_EQ(vfs_mkdir("/"), -EEXIST);
    CHECK_EQ(vfs_rmdir("/tmp"), -EBUSY);
    CHECK_EQ(vfs_mkdir("/tmp/a/b"), -ENOENT);
    CHECK_EQ(vfs_mkdir("/tmp/a/"), 0);
    CHECK_EQ(vfs_mkdir("/tmp/a/b"), 0);
    CHECK_EQ(vfs_mkdir("/tmp/a"), -EEXIST);
    CHECK_EQ(vfs_rmdir("/tmp/a"), -ENOTEMPTY);
    CHECK_EQ(vfs_rmdir("/tmp/a/b/."), -EINVAL);
    CHECK_EQ(vfs_rmdir("/tmp/a/b/./"), -EINVAL);
    CHECK_EQ(vfs_rmdir("/tmp/a/b/.."), -ENOTEMPTY);
    CHECK_EQ(vfs_unlink("/tmp/a/b/."), -EISDIR);
    CHECK_EQ(vfs_unlink("/tmp/a"), -EISDIR);
    CHECK_EQ(try_open("/tmp/c/", VFS_WRITE), -EISDIR);
    CHECK_EQ(vfs_rmdir("/tmp/a/b"), 0);
    CHECK_EQ(vfs_rmdir("/tmp/a"), 0);
}

UNIT_TEST(a_tree_comes_whole_or_not_at_all)
{
    static const struct vfs_file clash[] = {
        { .name = "fresh", .mode = 0444, .show = demo_show },
        { .name = "sub/fresh", .mode = 0444, .show = demo_show },
        { .name = "status", .mode = 0444, .show = demo_show },
    };
    struct vfs_stat st;

    CHECK_EQ(vfs_add_tree("/sys/demo", clash, 3), -EEXIST);
    CHECK_EQ(vfs_stat("/sys/demo/fresh", &st), -ENOENT);
    CHECK_EQ(vfs_stat("/sys/demo/sub", &st), -ENOENT);
    CHECK_EQ(vfs_add_tree("/sys/demo/status", clash, 1), -ENOTDIR);
    CHECK_EQ(vfs_add_tree("/sys/other", clash, 3), 0);
    CHECK_EQ(vfs_remove_tree("/sys/other"), 0);
}

UNIT_TEST(a_tree_in_use_stays)
{
    struct file f = { .flags = VFS_READ };

    CHECK_EQ(vfs_open("/sys/demo/status", &f), 0);
    CHECK_EQ(vfs_remove_tree("/sys/demo"), -EBUSY);
    CHECK_STR(get("/sys/demo/status"), "status 2\n");
    vfs_close(&f);
    CHECK_EQ(vfs_remove_tree("/tmp"), -EINVAL);
    CHECK_EQ(vfs_remove_tree("/"), -EINVAL);
    CHECK_EQ(vfs_remove_tree("/sys/demo/status"), -ENOTDIR);
}

UNIT_TEST(files_go_with_the_code_that_they_call)
{
    uintptr_t code = (uintptr_t)demo_truncate;
    struct vfs_stat st;
    struct file f = { .flags = VFS_READ };

    CHECK_EQ(vfs_open("/sys/demo/control", &f), 0);
    CHECK_EQ(vfs_remove_files(code, code + 1), -EBUSY);
    vfs_close(&f);
    CHECK_EQ(vfs_remove_files(code, code + 1), 0);
    CHECK_EQ(vfs_stat("/sys/demo/control", &st), -ENOENT);
    CHECK_EQ(vfs_stat("/sys/demo/status", &st), 0);
}

UNIT_TEST(no_memory_is_an_error_without_a_leak)
{
    static const char path[] = "/sys/more/deep";

    for (long n = 1; n < 8; n++) {
        fake_heap_fail_after(n);
        if (vfs_add_tree(path, demo_files, 3) == 0)
            CHECK_EQ(vfs_remove_tree("/sys/more"), 0);
        fake_heap_fail_after(1);
        CHECK_EQ(try_open("/sys/demo/status", VFS_READ), -ENOMEM);
        CHECK_EQ(vfs_mkdir("/tmp/x"), -ENOMEM);
        CHECK_EQ(put("/tmp/x", 0, "x"), -ENOMEM);
        fake_heap_fail_after(0);
    }
}

UNIT_TEST(a_directory_has_another_name)
{
    struct seq names;

    CHECK_EQ(vfs_add_tree("/sys/real", demo_files, 2), 0);
    CHECK_EQ(vfs_add_alias("/sys/other", "/sys/real"), 0);
    is_aliased = true;
    CHECK_EQ(vfs_add_alias("/sys/other", "/sys/real"), -EEXIST);
    CHECK_EQ(vfs_add_alias("/sys/more", "/sys/none"), -ENOENT);
    CHECK_EQ(vfs_add_alias("/sys/more", "/sys/real/status"), -ENOTDIR);
    CHECK_EQ(try_open("/sys/other/status", VFS_READ), 0);
    CHECK_EQ(vfs_add_tree("/sys/other/late", demo_files, 1), 0);
    CHECK_EQ(try_open("/sys/real/late/status", VFS_READ), 0);
    CHECK_EQ(vfs_remove_tree("/sys/real/late"), 0);
    CHECK_EQ(try_open("/sys/other/late/status", VFS_READ), -ENOENT);
    CHECK_EQ(vfs_remove_tree("/sys/real"), -EBUSY);
    CHECK_EQ(vfs_remove_tree("/sys/other"), -EBUSY);
    seq_init(&names, NULL, NULL);
    CHECK_EQ(vfs_readdir("/sys", &names), 0);
    CHECK_STR(seq_str(&names), "demo/\nother/\nreal/\n");
    seq_free(&names);
}

UNIT_TESTS_BETWEEN(set_up, tear_down)
