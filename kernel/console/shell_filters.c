/* shell_filters.c - grep, head, tail, sort, wc: read a pipe or files, and print text. */
#include "kernel/base/bits.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/console/shell_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LINES 10

/* take_filter_options - read options, each of which is one of @letters.
 * @flags:  receives bit i for letter i
 *
 * Return:  index of the first word that is no option; -EINVAL a letter is unknown.
 */
static int take_filter_options(int argc, char **argv, const char *letters,
                               unsigned *flags)
{
    int i = 1;

    *flags = 0;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        for (const char *c = argv[i] + 1; *c; c++) {
            const char *known = strchr(letters, *c);

            if (!known)
                return -EINVAL;
            *flags |= 1u << (known - letters);
        }
    }
    return i;
}

/* take_input - get the text to work on: the text of the named files, or of the pipe if no
 * file is named. The caller frees @own, which holds the text of files.
 */
static int take_input(struct shell *sh, const char *head, int argc, char **argv,
                      struct seq *own, struct text *out)
{
    const struct seq *from = own;
    int err;

    seq_init(own, NULL, NULL);
    for (int i = 0; i < argc; i++) {
        err = shell_read_file(sh, argv[i], own);
        if (!err)
            err = own->err;
        if (err) {
            seq_free(own);
            return err == -EINTR ? err
                                 : shell_error_name(sh, err, head, argv[i],
                                                    shell_complete_paths, 1);
        }
    }
    if (argc == 0 && !sh->in)
        return shell_error(sh, EINVAL, "%s: neither a file nor a pipe to read", head);
    if (argc == 0)
        from = sh->in;
    *out = (struct text){ seq_str(from), from->len };
    return 0;
}

static int grep_run(struct shell *sh, int argc, char **argv)
{
    enum { INVERT = 1, FOLD = 2, COUNT = 4 };
    struct pattern pattern;
    struct text in;
    struct seq own;
    unsigned flags;
    size_t count;
    int at, err;

    at = take_filter_options(argc, argv, "vic", &flags);
    if (at < 0 || at == argc)
        return shell_usage(sh, argc, argv);
    err = pattern_parse(argv[at], flags & FOLD, &pattern);
    if (err)
        return shell_refuse(sh, err, "grep: the pattern has more than %d characters",
                            PATTERN_MAX);
    err = take_input(sh, argv[0], argc - at - 1, argv + at + 1, &own, &in);
    if (err)
        return err;
    count = text_grep(flags & COUNT ? NULL : sh->out, in, &pattern, flags & INVERT);
    if (flags & COUNT)
        shell_printf(sh, "%zu\n", count);
    seq_free(&own);
    return 0;
}

/* take_line_count - read "-n N", "-nN" or "-N".  Return: index of the next word; -EINVAL.
 */
static int take_line_count(int argc, char **argv, size_t *count)
{
    const char *digits;
    char *end;
    int at = 1;

    *count = DEFAULT_LINES;
    if (argc < 2 || argv[1][0] != '-')
        return 1;
    digits = argv[1] + 1;
    digits += *digits == 'n';
    if (!*digits) {
        if (argc < 3)
            return -EINVAL;
        digits = argv[++at];
    }
    *count = strtoull(digits, &end, 10);
    return isdigit((unsigned char)*digits) && !*end ? at + 1 : -EINVAL;
}

static int cut_run(struct shell *sh, int argc, char **argv,
                   void (*cut)(struct seq *, struct text, size_t))
{
    struct text in;
    struct seq own;
    size_t count;
    int at, err;

    at = take_line_count(argc, argv, &count);
    if (at < 0)
        return shell_usage(sh, argc, argv);
    err = take_input(sh, argv[0], argc - at, argv + at, &own, &in);
    if (err)
        return err;
    cut(sh->out, in, count);
    seq_free(&own);
    return 0;
}

static int head_run(struct shell *sh, int argc, char **argv)
{
    return cut_run(sh, argc, argv, text_head);
}

static int tail_run(struct shell *sh, int argc, char **argv)
{
    return cut_run(sh, argc, argv, text_tail);
}

static int sort_run(struct shell *sh, int argc, char **argv)
{
    struct text in;
    struct seq own;
    unsigned flags; /* letter i of "nru" is bit i of the TEXT_SORT_ flags */
    int at, err;

    at = take_filter_options(argc, argv, "nru", &flags);
    if (at < 0)
        return shell_usage(sh, argc, argv);
    err = take_input(sh, argv[0], argc - at, argv + at, &own, &in);
    if (err)
        return err;
    err = text_sort(sh->out, in, flags);
    seq_free(&own);
    return err ? shell_error(sh, err, "sort") : 0;
}

static int wc_run(struct shell *sh, int argc, char **argv)
{
    struct text_counts counts;
    const size_t *const column[] = { &counts.lines, &counts.words, &counts.bytes };
    const char *before = "";
    struct text in = { 0 };
    struct seq own;
    unsigned flags;
    int at, err;

    at = take_filter_options(argc, argv, "lwc", &flags);
    if (at < 0)
        return shell_usage(sh, argc, argv);
    err = take_input(sh, argv[0], argc - at, argv + at, &own, &in);
    if (err)
        return err;
    text_count(in, &counts);
    seq_free(&own);
    for (unsigned i = 0; i < ARRAY_LEN(column); i++) {
        if (flags && !(flags & BIT(i)))
            continue;
        shell_printf(sh, "%s%zu", before, *column[i]);
        before = " ";
    }
    shell_printf(sh, "\n");
    return 0;
}

const struct shell_command shell_filter_commands[] = {
    { "grep", "[-vic] PATTERN [FILE...]",
      "print the lines that match\n"
      "-v  those that do not    -i  upper or lower case alike    -c  only how many\n"
      "PATTERN: . any character, X* any number of X, ^ and $ the ends, \\C the "
      "character C.",
      grep_run, shell_complete_paths },
    { "head", "[-n N] [FILE...]", "print the first lines, 10 unless told", head_run,
      shell_complete_paths },
    { "tail", "[-n N] [FILE...]", "print the last lines, 10 unless told", tail_run,
      shell_complete_paths },
    { "sort", "[-nru] [FILE...]",
      "print lines in order\n"
      "-n  by the number they begin with    -r  backwards    -u  equal lines once",
      sort_run, shell_complete_paths },
    { "wc", "[-lwc] [FILE...]", "count lines, words and bytes", wc_run,
      shell_complete_paths },
    {},
};
