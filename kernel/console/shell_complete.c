/* shell_complete.c - finds what may stand for a word that is being typed.
 *
 * The command of the word offers the candidates. Behind '>' the candidates are files, and
 * at the beginning of a stage they are commands.
 */
#include "kernel/base/err.h"
#include "kernel/console/shell_state.h"
#include "kernel/console/shell_text.h"
#include "kernel/debug/ksyms.h"
#include "kernel/fs/vfs.h"

#include <stdio.h>
#include <string.h>

#define LISTED_MAX 200 /* candidates; if there are more, only their number is printed */
#define PATH_SHOWN_MAX 512

void shell_offer(struct shell_completion *c, const char *text)
{
    if (c->nearest) {
        shell_nearest_offer(c->nearest, c->word, text);
        return;
    }
    if (strncmp(text, c->word, strlen(c->word)) != 0)
        return;
    seq_printf(&c->names, "%s\n", text);
    c->count += !c->names.err; /* without memory there are fewer candidates */
}

const char *shell_word(const struct shell_completion *c)
{
    return c->word;
}

const char *shell_first(const struct shell_completion *c)
{
    return c->first;
}

void shell_complete_commands(struct shell_completion *c, int index)
{
    const struct shell_command *cmd;

    if (index > 1)
        return;
    for (unsigned i = 0; (cmd = shell_table_get(i)) != NULL; i++)
        shell_offer(c, cmd->name);
}

void shell_complete_symbols(struct shell_completion *c, int index UNUSED)
{
    struct ksym sym;

    for (size_t i = 0; ksyms_get(i, &sym); i++)
        shell_offer(c, sym.name);
}

/* offer_paths - offer paths with the names of a directory.
 * @dir_len: of the directory in the word, its slash included; 0: there is none
 * @rest:    what stands behind the name: "", or "/..." with which the path must exist
 */
static void offer_paths(struct shell_completion *c, size_t dir_len, const char *rest)
{
    char path[PATH_SHOWN_MAX];
    struct text all, name;
    struct vfs_stat st;
    struct seq names;

    if (dir_len + VFS_NAME_MAX + 2 + strlen(rest) >= sizeof(path))
        return;
    snprintf(path, sizeof(path), "%.*s", (int)dir_len, c->word);
    seq_init(&names, NULL, NULL);
    if (vfs_readdir(dir_len ? path : "/", &names) == 0) {
        all = (struct text){ seq_str(&names), names.len };
        while (text_next_line(&all, &name)) {
            if (c->nearest && name.start[name.len - 1] == '/')
                name.len--;
            snprintf(path + dir_len, sizeof(path) - dir_len, "%s%.*s%s",
                     dir_len ? "" : "/", (int)name.len, name.start, rest);
            if (!*rest || vfs_stat(path, &st) == 0)
                shell_offer(c, path);
        }
    }
    seq_free(&names);
}

/* shell_complete_paths - complete the last component of a path: the candidates are the
 * names in the directory that the path has up to its last slash. For a suggestion each
 * component may be the wrong one.
 */
void shell_complete_paths(struct shell_completion *c, int index UNUSED)
{
    const char *slash = strrchr(c->word, '/'), *next;

    if (!c->nearest || !slash) {
        offer_paths(c, slash ? (size_t)(slash - c->word) + 1 : 0, "");
        return;
    }
    for (const char *at = strchr(c->word, '/'); at; at = next) {
        next = strchr(at + 1, '/');
        offer_paths(c, (size_t)(at - c->word) + 1, next ? next : "");
    }
}

/* -- which word is it? --------------------------------------------------------------- */

struct word_place {
    char *command; /* the first word of the stage; NULL: @word is the first word */
    char *word;    /* the beginning of the word */
    char *first;   /* the second word of the stage; NULL: there is none yet */
    int index;     /* of the word in its stage; 0: the first word */
    bool is_target;
};

/* find_place - find out which word ends at the end of @line. Quotes are ignored: a quoted
 * word with blanks is completed from its last blank on. That is better than nothing.
 */
static void find_place(char *line, struct word_place *out)
{
    char *at = line;

    *out = (struct word_place){ .word = line };
    while (*at) {
        size_t len = strcspn(at, " \t|>");

        out->word = at;
        at += len;
        if (!*at)
            return;
        if (len > 0 && !out->is_target && out->index++ == 0)
            out->command = out->word;
        else if (len > 0 && !out->is_target && out->index == 2)
            out->first = out->word;
        if (len > 0)
            out->is_target = false;
        if (*at == '|') {
            out->index = 0;
            out->command = out->first = NULL;
        }
        if (*at == '>')
            out->is_target = true;
        *at++ = '\0';
        out->word = at;
    }
}

void shell_complete(char *line, struct shell_completion *out)
{
    const struct shell_command *cmd;
    struct word_place place;

    find_place(line, &place);
    out->word = place.word;
    out->first = place.first ? place.first : "";
    out->count = 0;
    out->nearest = NULL;
    seq_init(&out->names, NULL, NULL);
    if (place.is_target) {
        shell_complete_paths(out, 1);
        return;
    }
    if (!place.command) {
        shell_complete_commands(out, 0);
        return;
    }
    cmd = shell_table_find(place.command);
    if (cmd && place.word[0] == '-')
        shell_complete_options(out, cmd->usage);
    if (cmd && cmd->complete)
        cmd->complete(out, place.index);
}

void shell_complete_free(struct shell_completion *c)
{
    seq_free(&c->names);
}

/* -- the common beginning, and the list ---------------------------------------------- */

size_t shell_complete_common(const struct shell_completion *c)
{
    struct text rest = { seq_str(&c->names), c->names.len }, first, other;
    size_t common;

    if (!text_next_line(&rest, &first))
        return 0;
    common = first.len;
    while (text_next_line(&rest, &other)) {
        size_t len = 0;

        while (len < common && len < other.len && first.start[len] == other.start[len])
            len++;
        common = len;
    }
    return common;
}

/* shown_part - return the last component of a path, with the slash behind a directory. */
static struct text shown_part(struct text name)
{
    for (size_t i = name.len > 0 ? name.len - 1 : 0; i > 0; i--) {
        if (name.start[i - 1] == '/')
            return (struct text){ name.start + i, name.len - i };
    }
    return name;
}

static size_t column_width(struct text rest)
{
    struct text name;
    size_t width = 0;

    while (text_next_line(&rest, &name)) {
        size_t len = shown_part(name).len;

        width = len > width ? len : width;
    }
    return width + 2;
}

static void list_in_columns(struct text rest, struct seq *out)
{
    size_t width = column_width(rest);
    size_t columns = width < LINE_COLUMNS ? LINE_COLUMNS / width : 1;
    struct text name;

    for (size_t i = 0; text_next_line(&rest, &name); i++) {
        bool last = i % columns == columns - 1 || rest.len == 0;

        name = shown_part(name);
        seq_printf(out, "%-*.*s%s", last ? 0 : (int)width, (int)name.len, name.start,
                   last ? "\n" : "");
    }
}

void shell_complete_list(const struct shell_completion *c, struct seq *out)
{
    struct text names = { seq_str(&c->names), c->names.len };
    struct seq sorted;

    if (c->count > LISTED_MAX) {
        seq_printf(out, "%zu possibilities\n", c->count);
        return;
    }
    seq_init(&sorted, NULL, NULL);
    if (text_sort(&sorted, names, TEXT_SORT_UNIQUE) == 0)
        list_in_columns((struct text){ seq_str(&sorted), sorted.len }, out);
    seq_free(&sorted);
}
