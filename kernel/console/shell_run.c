/* shell_run.c - runs a command line: its stages in order. Each stage reads what the stage
 * before has printed; the last stage prints to the console or into a file.
 *
 * A stage runs to its end before the next stage begins. A file gets the whole output in
 * one write, if it takes so much at once.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/heap.h"

#include <string.h>

static void (*window)(bool begins); /* [a] */

void shell_set_window(void (*fn)(bool begins))
{
    WRITE_ONCE(window, fn);
}

/* at_edge - tell that a piece of a command begins or ends. */
static ALWAYS_INLINE void at_edge(const struct shell *sh, bool begins)
{
    void (*fn)(bool begins) = shell_is_for_users(sh) ? READ_ONCE(window) : NULL;

    if (sh->around)
        sh->around(sh->around_arg, begins);
    if (fn)
        fn(begins);
}

static int run_words(struct shell *sh, int argc, char **argv)
{
    const struct shell_command *cmd;
    int status;

    if (argc == 0)
        return 0;
    cmd = shell_table_find(argv[0]);
    if (!cmd)
        return shell_unknown_command(sh, "sh", argv[0]);
    if (argc > 1 && !*cmd->usage)
        return shell_usage(sh, argc, argv);
    at_edge(sh, true);
    status = cmd->run(sh, argc, argv);
    seq_pass_on(sh->out);
    at_edge(sh, false);
    if (!status && sh->out->err == -ENOMEM)
        return shell_error(sh, ENOMEM, "sh: output of %s is lost", argv[0]);
    return status ? status : sh->out->err;
}

/* run_stages - run the stages of sh->pipeline; the last stage prints to @out. If a stage
 * fails, the next stages still run with what the stage has printed, and the line has the
 * status of the first failed stage. After a Ctrl-C no further stage runs.
 */
static int run_stages(struct shell *sh, struct seq *out)
{
    const struct shell_pipeline *line = &sh->pipeline;
    struct seq pipes[2], *before = sh->out;
    int err = 0, status = 0;

    seq_init(&pipes[0], NULL, NULL);
    seq_init(&pipes[1], NULL, NULL);
    for (unsigned i = 0; err != -EINTR && i < line->stage_count; i++) {
        struct seq *to = &pipes[i % 2], *from = &pipes[(i + 1) % 2];

        seq_free(to);
        sh->in = i > 0 ? from : NULL;
        sh->out = i + 1 < line->stage_count ? to : out;
        err = run_words(sh, line->stages[i].argc, line->stages[i].argv);
        status = status ? status : err;
    }
    seq_free(&pipes[0]);
    seq_free(&pipes[1]);
    sh->in = NULL;
    sh->out = before;
    return status;
}

/* write_into_target - write @text. A file may take a part of one write only; it gets the rest
 * in further writes.
 */
static int write_into_target(struct shell *sh, struct file *file, const struct seq *text)
{
    uint64_t pos = 0;
    long done = 0;

    for (size_t at = 0; at < text->len; at += (size_t)done) {
        done = vfs_write(file, text->text + at, text->len - at, &pos);
        if (done <= 0)
            return shell_error(sh, done ? (int)done : -EIO, "sh: %s: write error",
                               sh->pipeline.target);
    }
    return 0;
}

/* run_into_file - run the line, and write its output to the target. The file is opened
 * before a command runs, as in other shells, so no command runs if it cannot be opened.
 */
static int run_into_file(struct shell *sh)
{
    const struct shell_pipeline *line = &sh->pipeline;
    struct file file = { .flags = VFS_WRITE | (line->append ? VFS_APPEND : VFS_TRUNC) };
    struct seq text;
    int err, status;

    at_edge(sh, true);
    err = vfs_open(line->target, &file);
    at_edge(sh, false);
    if (err)
        return shell_error_name(sh, err, "sh", line->target, shell_complete_paths, 1);
    seq_init(&text, NULL, NULL);
    status = run_stages(sh, &text);
    at_edge(sh, true);
    if (text.err != -ENOMEM)
        err = write_into_target(sh, &file, &text);
    vfs_close(&file);
    at_edge(sh, false);
    seq_free(&text);
    return status ? status : err;
}

int shell_run_line(struct shell *sh, char *line)
{
    struct shell_parse_error error;
    int err;

    err = shell_parse(line, &sh->pipeline, &error);
    if (err)
        return shell_refuse(sh, err, "sh: column %zu: %s", error.column, error.why);
    if (sh->pipeline.target)
        return run_into_file(sh);
    return run_stages(sh, sh->out);
}

/* shell_for - make a shell that runs one line. @parent: it reads Ctrl-C; or NULL */
static struct shell *shell_for(struct shell *parent, struct seq *out, struct seq *console)
{
    struct shell *sh = kzalloc(sizeof(*sh));

    if (!sh)
        return NULL;
    sh->outermost = parent ? parent->outermost : sh;
    sh->depth = parent ? parent->depth + 1 : 0;
    sh->out = out;
    sh->console = console;
    return sh;
}

static int run_copy_of_line(struct shell *sh, const char *line)
{
    size_t len = strlen(line);

    if (len > SHELL_LINE_MAX)
        return -E2BIG;
    memcpy(sh->line, line, len + 1);
    return shell_run_line(sh, sh->line);
}

static int run_copies_of_words(struct shell *sh, int argc, char **argv)
{
    char **words = sh->pipeline.words;
    size_t used = 0;

    for (int i = 0; i < argc; i++) {
        size_t len = strlen(argv[i]) + 1;

        if (i >= SHELL_WORDS_MAX || used + len > sizeof(sh->line))
            return -E2BIG;
        words[i] = memcpy(sh->line + used, argv[i], len);
        used += len;
    }
    words[argc] = NULL;
    return run_words(sh, argc, words);
}

int shell_execute(const char *line, struct seq *out)
{
    struct shell *sh = shell_for(NULL, out, out);
    int status = sh ? run_copy_of_line(sh, line) : -ENOMEM;

    kfree(sh);
    return status;
}

int shell_run_into(struct shell *sh, int argc, char **argv,
                   void (*around)(void *arg, bool begins), void *arg, struct seq *out,
                   struct seq *console)
{
    struct shell *inside;
    int status;

    if (sh->depth == SHELL_DEPTH_MAX)
        return shell_refuse(sh, E2BIG, "sh: %s: inside of %u commands already", argv[0],
                            SHELL_DEPTH_MAX);
    inside = shell_for(sh, out, console);
    if (!inside)
        return shell_error(sh, ENOMEM, "sh: %s", argv[0]);
    inside->around = around;
    inside->around_arg = arg;
    if (argc == 1)
        status = run_copy_of_line(inside, argv[0]);
    else
        status = run_copies_of_words(inside, argc, argv);
    kfree(inside);
    return status;
}

int shell_run_around(struct shell *sh, int argc, char **argv,
                     void (*around)(void *arg, bool begins), void *arg)
{
    return shell_run_into(sh, argc, argv, around, arg, sh->out, sh->console);
}
