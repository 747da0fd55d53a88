/* shell_suggest.c - finds what a mistyped word may have meant, and which options a
 * command has.
 *
 * The candidates come from the functions that complete the word on Tab. The nearest
 * candidate becomes the word with the fewest edits. An edit inserts, removes or replaces
 * a letter, or exchanges two neighbours. Words of three to seven letters may differ by
 * one edit, longer words by two, and shorter words get no suggestion.
 */
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 47 /* letters of a word that gets a suggestion */

struct nearest {
    unsigned edits; /* of the best candidate so far; a better one needs fewer */
    char name[WORD_MAX + 1];
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* edits - return the number of edits from @a to @b, neither of them longer than WORD_MAX.
 * This is the usual table of edits between the beginnings of both words, of which only
 * three rows are kept.
 */
static unsigned edits(const char *a, const char *b)
{
    uint8_t rows[3][WORD_MAX + 1], *row = rows[0], *above = rows[1], *second = rows[2];
    size_t b_len = strlen(b);

    for (size_t j = 0; j <= b_len; j++)
        row[j] = (uint8_t)j;
    for (size_t i = 1; a[i - 1]; i++) {
        uint8_t *free_row = second;

        second = above;
        above = row;
        row = free_row;
        row[0] = (uint8_t)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned best = above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u);

            best = least(best, least(above[j], row[j - 1]) + 1u);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, second[j - 2] + 1u);
            row[j] = (uint8_t)best;
        }
    }
    return row[b_len];
}

void shell_nearest_offer(struct nearest *nearest, const char *word, const char *text)
{
    size_t word_len = strlen(word), len = strlen(text);
    size_t apart = len > word_len ? len - word_len : word_len - len;
    unsigned needed;

    if (len > WORD_MAX || apart >= nearest->edits)
        return;
    needed = edits(word, text);
    if (needed >= nearest->edits)
        return;
    nearest->edits = needed;
    memcpy(nearest->name, text, len + 1);
}

static const char *print_nearest(char *buf, const struct nearest *nearest)
{
    buf[0] = '\0';
    if (nearest->name[0] && nearest->edits) /* no edit: the name is right */
        snprintf(buf, SHELL_SUGGESTION_MAX, " (did you mean `%s`?)", nearest->name);
    return buf;
}

static struct nearest nearest_begin(const char *word)
{
    size_t len = strlen(word);
    unsigned most = len < 3 || len > WORD_MAX ? 0 : len < 8 ? 1 : 2;

    return (struct nearest){ .edits = most + 1 };
}

const char *shell_suggest(char *buf, const char *word,
                          void (*complete)(struct shell_completion *c, int index),
                          int index)
{
    struct nearest nearest = nearest_begin(word);
    struct shell_completion c = { .word = word, .first = "", .nearest = &nearest };

    complete(&c, index);
    return print_nearest(buf, &nearest);
}

int shell_error_name(struct shell *sh, int err, const char *head, const char *word,
                     void (*complete)(struct shell_completion *c, int index), int index)
{
    char suggestion[SHELL_SUGGESTION_MAX] = "";

    err = err < 0 ? -err : err;
    if (err == ENOENT || err == EACCES) /* no file can be made in /proc */
        shell_suggest(suggestion, word, complete, index);
    return shell_refuse(sh, err, "%s: %s: %s%s", head, word, err_text(err), suggestion);
}

/* -- options, as the usage names them: "[--post] [-vic] [-n N]" ---------------------- */

/* next_option - find the next option of a usage.
 * @at: where to begin; moved behind the option
 * @rest: the further letters of an option such as "-vic", each of which is an option as
 *        well; else empty
 * Return: false: there is no further option.
 */
static bool next_option(const char **at, char name[WORD_MAX + 1], char rest[WORD_MAX + 1])
{
    const char *from = *at;
    size_t len;

    while (*from && !(*from == '-' && (from == *at || strchr("[ |", from[-1]))))
        from++;
    if (!*from)
        return false;
    len = strspn(from, "-abcdefghijklmnopqrstuvwxyz");
    *at = from + len;
    len = len > WORD_MAX ? WORD_MAX : len;
    memcpy(name, from, len);
    name[len] = rest[0] = '\0';
    if (name[1] != '-' && len > 2) {
        memcpy(rest, name + 2, len - 1);
        name[2] = '\0';
    }
    return true;
}

void shell_complete_options(struct shell_completion *c, const char *usage)
{
    char name[WORD_MAX + 1], rest[WORD_MAX + 1];

    while (next_option(&usage, name, rest)) {
        shell_offer(c, name);
        for (const char *letter = rest; *letter; letter++)
            shell_offer(c, (char[]){ '-', *letter, '\0' });
    }
}

/* is_option - does @usage have the option @word, which begins with '-'? A number, "-" and
 * "--" are never wrong, so the result is true for them. Short options may be written as
 * one word.
 */
static bool is_option(const char *usage, const char *word)
{
    char name[WORD_MAX + 1], rest[WORD_MAX + 1], letters[2 * WORD_MAX];
    size_t count = 0;

    if (!word[1] || isdigit((unsigned char)word[1]) || strcmp(word, "--") == 0)
        return true;
    while (next_option(&usage, name, rest)) {
        if (strcmp(word, name) == 0)
            return true;
        if (name[1] == '-' || count + 1 + strlen(rest) >= sizeof(letters))
            continue;
        letters[count++] = name[1];
        memcpy(letters + count, rest, strlen(rest));
        count += strlen(rest);
    }
    letters[count] = '\0';
    return word[1] != '-' && strspn(word + 1, letters) == strlen(word + 1);
}

void shell_blame_option(struct shell *sh, const char *head, const char *usage, int argc,
                        char **argv)
{
    char suggestion[SHELL_SUGGESTION_MAX];

    for (int i = 0; i < argc; i++) {
        struct nearest nearest = nearest_begin(argv[i]);
        struct shell_completion c = { .word = argv[i], .nearest = &nearest };

        if (argv[i][0] != '-' || is_option(usage, argv[i]))
            continue;
        if (argv[i][1] == '-') /* all short options would be equally near */
            shell_complete_options(&c, usage);
        shell_error(sh, 0, "%s: no option %s%s", head, argv[i],
                    print_nearest(suggestion, &nearest));
        return;
    }
}
