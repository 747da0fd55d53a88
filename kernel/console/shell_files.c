/* shell_files.c - commands that work on files, by calls of the file layer. */
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/fs/vfs.h"

#include <string.h>

#define READ_LEN 4096

static int read_to_end(struct shell *sh, struct file *file, struct seq *out)
{
    char buf[READ_LEN];
    uint64_t pos = 0;

    for (;;) {
        long len = vfs_read(file, buf, sizeof(buf), &pos);

        if (len <= 0)
            return (int)len;
        seq_write(out, buf, (size_t)len);
        if (shell_interrupted(sh))
            return -EINTR;
    }
}

int shell_read_file(struct shell *sh, const char *path, struct seq *out)
{
    struct file file = { .flags = VFS_READ };
    int err;

    err = vfs_open(path, &file);
    if (err)
        return err;
    err = read_to_end(sh, &file, out);
    vfs_close(&file);
    return err;
}

static int cat_run(struct shell *sh, int argc, char **argv)
{
    int err = 0, failed;

    if (argc < 2 && sh->in) {
        seq_write(sh->out, seq_str(sh->in), sh->in->len);
        return 0;
    }
    if (argc < 2)
        return shell_usage(sh, argc, argv);
    for (int i = 1; i < argc; i++) {
        failed = shell_read_file(sh, argv[i], sh->out);
        if (failed == -EINTR)
            return failed;
        if (failed)
            err = shell_error_name(sh, failed, "cat", argv[i], shell_complete_paths, 1);
    }
    return err;
}

static int ls_run(struct shell *sh, int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "/";
    struct vfs_stat st;
    struct seq names;
    int err;

    if (argc > 2)
        return shell_usage(sh, argc, argv);
    err = vfs_stat(path, &st);
    if (!err && !st.is_dir) {
        shell_printf(sh, "%s\n", path);
        return 0;
    }
    seq_init(&names, NULL, NULL);
    if (!err)
        err = vfs_readdir(path, &names);
    if (!err)
        seq_write(sh->out, seq_str(&names), names.len);
    seq_free(&names);
    return err ? shell_error_name(sh, err, "ls", path, shell_complete_paths, 1) : 0;
}

static int file_stat_run(struct shell *sh, int argc, char **argv)
{
    struct vfs_stat st;
    int err;

    if (argc != 2)
        return shell_usage(sh, argc, argv);
    err = vfs_stat(argv[1], &st);
    if (err)
        return shell_error_name(sh, err, "stat", argv[1], shell_complete_paths, 1);
    shell_printf(sh, "%c %04o\n", st.is_dir ? 'd' : 'f', st.mode);
    return 0;
}

/* take_echo_options - read a word of options, which may stand together as in -ne. A word
 * with any other letter is text.
 */
static bool take_echo_options(const char *word, bool *line_feed, bool *escapes)
{
    if (word[0] != '-' || !word[1] || word[1 + strspn(word + 1, "ne")])
        return false;
    if (strchr(word, 'n'))
        *line_feed = false;
    if (strchr(word, 'e'))
        *escapes = true;
    return true;
}

static int echo_run(struct shell *sh, int argc, char **argv)
{
    bool line_feed = true, escapes = false;
    int i = 1;

    while (i < argc && take_echo_options(argv[i], &line_feed, &escapes))
        i++;
    for (; i < argc; i++) {
        size_t len = escapes ? machine_unescape(argv[i], argv[i]) : strlen(argv[i]);

        seq_write(sh->out, argv[i], len);
        if (i + 1 < argc)
            seq_puts(sh->out, " ");
    }
    if (line_feed)
        seq_puts(sh->out, "\n");
    return 0;
}

static int change_path(struct shell *sh, int argc, char **argv,
                       int (*fn)(const char *path))
{
    int err;

    if (argc != 2)
        return shell_usage(sh, argc, argv);
    err = fn(argv[1]);
    return err ? shell_error_name(sh, err, argv[0], argv[1], shell_complete_paths, 1) : 0;
}

static int mkdir_run(struct shell *sh, int argc, char **argv)
{
    return change_path(sh, argc, argv, vfs_mkdir);
}

static int rmdir_run(struct shell *sh, int argc, char **argv)
{
    return change_path(sh, argc, argv, vfs_rmdir);
}

static int rm_run(struct shell *sh, int argc, char **argv)
{
    return change_path(sh, argc, argv, vfs_unlink);
}

const struct shell_command shell_file_commands[] = {
    { "cat", "FILE...", "print files", cat_run, shell_complete_paths },
    { "ls", "[DIR]",
      "list a directory\n"
      "One name per line; a directory has '/' behind its name.",
      ls_run, shell_complete_paths },
    { "stat", "PATH", "print kind (d or f) and mode of a file or directory",
      file_stat_run, shell_complete_paths },
    { "echo", "[-ne] [TEXT...]",
      "print text\n"
      "-n  without a line feed at the end\n"
      "-e  \\xHH in TEXT stands for the byte HH; nothing else is special\n"
      "With > or >> all of it goes into the file in one write.",
      echo_run, shell_complete_paths },
    { "mkdir", "DIR", "make a directory below /tmp", mkdir_run, shell_complete_paths },
    { "rmdir", "DIR", "remove an empty directory below /tmp", rmdir_run,
      shell_complete_paths },
    { "rm", "FILE", "remove a file below /tmp", rm_run, shell_complete_paths },
    {},
};
