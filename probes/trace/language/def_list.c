/* def_list.c - lists definitions, joins them to events, and finds those to be deleted. */
#include "probes/trace/language/def.h"

#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/def_words.h"

#include <stdio.h>
#include <string.h>

#define ARG_WORD 2     /* index of the word that is the first argument */
#define NUMBER_TEXT 32 /* bytes of an address as text, NUL included */

/* ---- listing ---- */

/* bytes_text - print the part of a watch's place that follows the symbol's name. Without
 * a symbol this is the whole of BYTES:LENGTH.
 */
static const char *bytes_text(const struct def *def, char buf[NUMBER_TEXT])
{
    int offset = (int)def->offset;

    if (def->symbol && offset)
        snprintf(buf, NUMBER_TEXT, "%+d:%u", offset, def->watch_len);
    else if (def->symbol)
        snprintf(buf, NUMBER_TEXT, ":%u", def->watch_len);
    else if (def->addr)
        snprintf(buf, NUMBER_TEXT, "0x%lx:%u", (unsigned long)def->addr, def->watch_len);
    else
        snprintf(buf, NUMBER_TEXT, "-1:%u", def->watch_len);
    return buf;
}

/* number_text - print the part of a place that follows the symbol's name: the offset.
 * Without a symbol this is the address. Return: @buf.
 */
static const char *number_text(const struct def *def, char buf[NUMBER_TEXT])
{
    buf[0] = '\0';
    if (def->is_watch)
        return bytes_text(def, buf);
    if (!def->symbol)
        snprintf(buf, NUMBER_TEXT, "0x%lx", (unsigned long)def->addr);
    else if (def->offset)
        snprintf(buf, NUMBER_TEXT, "+%u", def->offset);
    return buf;
}

/* access_text - return the part of a place that stands in front of the symbol's name. */
static const char *access_text(const struct def *def)
{
    if (!def->is_watch)
        return "";
    return def->of_writes ? "w@" : "rw@";
}

size_t def_print(const struct def *def, char *buf, size_t size)
{
    char number[NUMBER_TEXT];
    size_t len = 0;

/* Text that does not fit is only counted. */
#define REST (len < size ? buf + len : NULL), (len < size ? size - len : 0)
    if (def->is_return && def->maxactive)
        len += (size_t)snprintf(REST, "r%u", def->maxactive);
    else
        len += (size_t)snprintf(REST, "%c",
                                def->is_watch ? 'w' : (def->is_return ? 'r' : 'p'));
    len +=
        (size_t)snprintf(REST, ":%s/%s %s%s%s", def->group, def->event, access_text(def),
                         def->symbol ? def->symbol : "", number_text(def, number));
    for (unsigned i = 0; i < def->arg_count; i++)
        len += (size_t)snprintf(REST, " %s=%s", def->args[i].name, def->args[i].text);
#undef REST
    return len;
}

/* ---- several probes of one event ---- */

/* first_difference - find the first argument that has another name or type in @b than in
 * @a.
 * Return: its number, from 1; 0: there is none.
 */
static unsigned first_difference(const struct def *a, const struct def *b)
{
    if (a->arg_count != b->arg_count)
        return (a->arg_count < b->arg_count ? a->arg_count : b->arg_count) + 1;
    for (unsigned i = 0; i < a->arg_count; i++)
        if (a->args[i].type != b->args[i].type || a->args[i].count != b->args[i].count ||
            strcmp(a->args[i].name, b->args[i].name) != 0)
            return i + 1;
    return 0;
}

static bool is_same_place(const struct def *a, const struct def *b)
{
    if (!a->symbol || !b->symbol)
        return !a->symbol && !b->symbol && a->addr == b->addr;
    return !strcmp(a->symbol, b->symbol) && a->offset == b->offset;
}

static bool is_same_def(const struct def *a, const struct def *b)
{
    if (!is_same_place(a, b))
        return false;
    for (unsigned i = 0; i < a->arg_count; i++)
        if (strcmp(a->args[i].text, b->args[i].text) != 0)
            return false;
    return true;
}

static int exists(struct trace_error *error, enum trace_error_id id, unsigned column)
{
    *error = (struct trace_error){ .err = -EEXIST, .id = id, .column = column };
    return -EEXIST;
}

int def_append(const struct def *def, const struct def *other, const char *line,
               struct trace_error *error)
{
    unsigned different;

    *error = (struct trace_error){ 0 };
    if (def->is_watch && other->is_watch) {
        *error = (struct trace_error){ .err = -EBUSY, .id = TRACE_WPROBE_NO_SIBLING };
        return -EBUSY;
    }
    if (def->is_return != other->is_return || def->is_watch != other->is_watch)
        return exists(error, TRACE_DIFF_PROBE_TYPE, 0);
    different = first_difference(def, other);
    if (different)
        return exists(error, TRACE_DIFF_ARG_TYPE,
                      def_word_column(line, ARG_WORD + different - 1));
    return is_same_def(def, other) ? exists(error, TRACE_SAME_PROBE, 0) : 0;
}

/* ---- deleting ---- */

int def_delete_parse(const char *line, struct def_delete *delete)
{
    char *head = delete->line, *end, *slash;

    if (def_join(line, delete->line, sizeof(delete->line)) >= sizeof(delete->line) ||
        strncmp(head, "-:", 2) != 0)
        return -EINVAL;
    delete->group = NULL;
    delete->event = head + 2;
    delete->place = NULL;
    delete->args = "";
    end = strchr(head, ' ');
    if (end) {
        *end = '\0';
        delete->place = end + 1;
        end = strchr(end + 1, ' ');
        if (end) {
            *end = '\0';
            delete->args = end + 1;
        }
    }
    slash = strchr(head, '/');
    if (!slash)
        return *delete->event ? 0 : -EINVAL;
    *slash = '\0';
    delete->group = head + 2;
    delete->event = slash + 1;
    return 0;
}

/* place_matches - tell whether @place is the place of @def as it is listed. */
static bool place_matches(const struct def *def, const char *place)
{
    const char *symbol = def->symbol ? def->symbol : "";
    const char *access = access_text(def);
    size_t len = strlen(symbol);
    char number[NUMBER_TEXT];

    if (strncmp(place, access, strlen(access)) != 0)
        return false;
    place += strlen(access);
    return !strncmp(place, symbol, len) && !strcmp(place + len, number_text(def, number));
}

/* arg_is - tell whether @word is "NAME=EXPRESSION" of @arg. */
static bool arg_is(const struct fetch_arg *arg, struct def_word word)
{
    size_t name = strlen(arg->name), text = strlen(arg->text);

    return word.len == name + 1 + text && !memcmp(word.p, arg->name, name) &&
           word.p[name] == '=' && !memcmp(word.p + name + 1, arg->text, text);
}

/* args_match - tell whether @args are the first arguments of @def. There may be fewer. */
static bool args_match(const struct def *def, const char *args)
{
    struct def_word word;

    for (unsigned i = 0; word = def_word_next(&args), word.len; i++) {
        if (i >= def->arg_count)
            return false;
        if (!arg_is(&def->args[i], word))
            return false;
    }
    return true;
}

bool def_delete_matches(const struct def_delete *delete, const struct def *def)
{
    if (delete->group && strcmp(delete->group, def->group) != 0)
        return false;
    if (*delete->event && strcmp(delete->event, def->event) != 0)
        return false;
    if (!delete->place)
        return true;
    return place_matches(def, delete->place) && args_match(def, delete->args);
}
