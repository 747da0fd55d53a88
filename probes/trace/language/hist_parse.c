/* hist_parse.c - makes a histogram from its line. */
#include "probes/trace/language/hist_parts.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/fetch_parse.h"

#include <string.h>

const char *const hist_modifiers[HIST_SHOWS] = {
    [HIST_HEX] = "hex",
    [HIST_SYM] = "sym",
    [HIST_SYM_OFFSET] = "sym-offset",
    [HIST_EXECNAME] = "execname",
    [HIST_LOG2] = "log2",
    [HIST_MIN] = "min",
    [HIST_MAX] = "max",
    [HIST_SYSCALL] = "syscall",
    [HIST_USECS] = "usecs",
    [HIST_PERCENT] = "percent",
    [HIST_GRAPH] = "graph",
};

const char *hist_error_text(enum hist_error_id id)
{
#define HIST_TEXT_ROW(name, text) [HIST_##name##_ERROR] = (text),
    static const char *const texts[] = { HIST_ERRORS(HIST_TEXT_ROW) };

    return (size_t)id < ARRAY_LEN(texts) ? texts[id] : "";
}

static const char prefix[] = "hist:";

/* line_at - return character @i of "hist:SPEC"; NUL at its end. */
static char line_at(const struct hist_parser *parse, size_t i)
{
    const size_t len = sizeof(prefix) - 1;

    return i < len ? prefix[i] : parse->spec[i - len];
}

/* first_place - find the first place in "hist:SPEC" that has the text of @word. This may
 * be in front of @word itself: Linux finds the column in the same way.
 */
static unsigned first_place(const struct hist_parser *parse, struct hist_word word)
{
    size_t len = sizeof(prefix) - 1 + strlen(parse->spec);

    for (size_t at = 0; at + word.len <= len; at++) {
        size_t i = 0;

        while (i < word.len && line_at(parse, at + i) == word.p[i])
            i++;
        if (i == word.len)
            return (unsigned)at;
    }
    return 0;
}

int hist_refuse(struct hist_parser *parse, enum hist_error_id id, struct hist_word word)
{
    *parse->error = (struct hist_error){
        .err = -EINVAL,
        .id = id,
        .column = id ? first_place(parse, word) : 0,
    };
    return -EINVAL;
}

static int hist_refuse_silently(struct hist_parser *parse)
{
    return hist_refuse(parse, HIST_NONE_ERROR, (struct hist_word){ NULL, 0 });
}

static int hist_refuse_at(struct hist_parser *parse, enum hist_error_id id,
                          const char *text)
{
    return hist_refuse(parse, id, (struct hist_word){ text, strlen(text) });
}

bool hist_word_is(struct hist_word word, const char *text)
{
    return str_is(text, word.p, word.len);
}

struct hist_word hist_next_word(struct hist_word *rest, char delim)
{
    struct hist_word word = *rest;
    const char *end = word.p ? memchr(word.p, delim, word.len) : NULL;

    if (!end) {
        *rest = (struct hist_word){ NULL, 0 };
        return word;
    }
    word.len = (size_t)(end - word.p);
    rest->len -= word.len + 1;
    rest->p = end + 1;
    return word;
}

/* ---- keys and values ---- */

bool hist_word_begins(struct hist_word word, const char *text)
{
    return str_begins(text, word.p, word.len);
}

/* parse_buckets - read "bucket=N" or "buckets=N". N has no sign, because Linux takes a
 * sign for an operator.
 */
static int parse_buckets(struct hist_parser *parse, struct hist_word word,
                         struct hist_part *part)
{
    word = hist_word_behind(word, sizeof("bucket") - 1);
    if (hist_word_begins(word, "s"))
        word = hist_word_behind(word, 1);
    if (!hist_word_begins(word, "="))
        return hist_refuse(parse, HIST_BAD_FIELD_MODIFIER_ERROR, word);
    word = hist_word_behind(word, 1);
    if (word.len && strchr("+-*/", *word.p))
        word.len = 0;
    if (fetch_number(word.p, word.len, &part->bucket) || !part->bucket)
        return hist_refuse(parse, HIST_BAD_FIELD_MODIFIER_ERROR, word);
    part->show = HIST_BUCKETS;
    return 0;
}

static bool is_possible(enum hist_show show, bool is_key, const struct hist_part *part)
{
    if (show == HIST_EXECNAME)
        return part->name && !strcmp(part->name, "common_pid");
    if (show == HIST_MIN || show == HIST_MAX || hist_part_is_share(part))
        return !is_key;
    return true;
}

static bool is_of_values(enum hist_show show)
{
    return show == HIST_HEX || show == HIST_MIN || show == HIST_MAX ||
           show == HIST_USECS || show == HIST_EXECNAME || show == HIST_PERCENT ||
           show == HIST_GRAPH;
}

static int parse_modifier(struct hist_parser *parse, struct hist_word modifier,
                          bool is_key, struct hist_part *part)
{
    if (hist_word_begins(modifier, "bucket"))
        return parse_buckets(parse, modifier, part);
    for (enum hist_show show = 0; show < HIST_SHOWS; show++) {
        if (!hist_modifiers[show] || !hist_word_is(modifier, hist_modifiers[show]))
            continue;
        part->show = show;
        if (!is_possible(show, is_key, part))
            break;
        return 0;
    }
    return hist_refuse(parse, HIST_BAD_FIELD_MODIFIER_ERROR, modifier);
}

static int parse_field_name(struct hist_parser *parse, struct hist_word name,
                            struct hist_part *part)
{
    static const struct filter_field time = { "common_timestamp", 0, 8, false,
                                              FILTER_TIME };
    const struct filter_field *field =
        hist_word_is(name, time.name)
            ? &time
            : filter_field_find(parse->fields, parse->field_count, name.p, name.len);

    if (!field)
        return hist_refuse(parse, HIST_FIELD_NOT_FOUND_ERROR, name);
    part->field = *field;
    if (field->kind == FILTER_CPU)
        part->field.name = "common_cpu"; /* of its names the one that is printed */
    part->name = part->field.name;
    return 0;
}

/* is_stack - tell whether @name is the stack. Linux 6.1 calls it stacktrace, Linux 6.12
 * common_stacktrace.
 */
static bool is_stack(struct hist_word name, struct hist_part *part)
{
    if (hist_word_is(name, "stacktrace"))
        part->field.name = "stacktrace";
    else if (hist_word_is(name, "common_stacktrace"))
        part->field.name = "common_stacktrace";
    else
        return false;
    part->show = HIST_STACK;
    return true;
}

/* note_time - note that the histogram has a time. As on Linux, all its times get the same
 * unit.
 */
static void note_time(struct hist_parser *parse, const struct hist_part *part)
{
    static const char usual[] = "global";

    if (!parse->clock.p)
        parse->clock = (struct hist_word){ usual, sizeof(usual) - 1 };
    parse->hist->clock = parse->clock.p; /* until the text is copied */
    parse->hist->in_us |= part->show == HIST_USECS;
}

/* is_array - is the field of @part several numbers, which are no key and no value? */
static bool is_array(const struct hist_part *part)
{
    unsigned size = part->field.size;

    return part->field.kind == FILTER_NUMBER && (size > 8 || size & (size - 1));
}

/* If there are three words, Linux takes them for
 * GROUP.EVENT.VARIABLE. It finds no such variable and looks for a field that is named by
 * the third word, so the caret points to that word.
 */
int hist_parse_part(struct hist_parser *parse, struct hist_word word, bool is_key,
                    struct hist_part *part)
{
    static const struct filter_field hits = { "hitcount", 0, 8, false, FILTER_ONE };
    struct hist_word whole = word, name = hist_next_word(&word, '.'), rest = word;
    int err;

    *part = (struct hist_part){ 0 };
    if (hist_word_begins(name, "$") && !is_key)
        return hist_parse_value(parse, whole, part);
    if (hist_word_begins(name, "$") && hist_plain_variable(parse, &name))
        return -EINVAL;
    if (is_key && !word.p && is_stack(name, part))
        return 0;
    if (rest.p && (hist_next_word(&rest, '.'), rest.p))
        return hist_refuse(parse, HIST_FIELD_NOT_FOUND_ERROR, hist_next_word(&rest, '.'));
    if (!is_key && hist_word_is(name, hits.name) && word.p) {
        if (parse_modifier(parse, word, is_key, part))
            return -EINVAL;
        part->field = hits;
        part->name = hits.name;
        if (hist_part_is_share(part))
            return 0;
    }
    err = parse_field_name(parse, name, part);
    if (err)
        return err;
    if (part->field.kind == FILTER_COMM && !is_key)
        return hist_refuse(parse, HIST_FIELD_NOT_FOUND_ERROR, name);
    if (is_array(part))
        return hist_refuse_silently(parse);
    if (hist_part_is_text(part) && is_key)
        part->show = HIST_STRING;
    err = word.p ? parse_modifier(parse, word, is_key, part) : 0;
    if (!err && !is_key && part->show && !is_of_values(part->show))
        err = hist_refuse(parse, HIST_BAD_FIELD_MODIFIER_ERROR, whole);
    if (!err && !is_key && hist_part_is_text(part))
        return hist_refuse_silently(parse); /* Linux would sum up addresses of texts */
    if (!err && part->field.kind == FILTER_TIME)
        note_time(parse, part);
    return err;
}

static uint16_t part_size(const struct hist_part *part)
{
    if (part->show == HIST_STACK)
        return HIST_STACK_MAX * sizeof(uint64_t);
    if (part->show == HIST_LOG2 || part->show == HIST_BUCKETS)
        return sizeof(uint64_t);
    return hist_part_is_text(part) ? HIST_STRING_MAX : sizeof(uint64_t);
}

static int parse_keys(struct hist_parser *parse)
{
    struct hist *hist = parse->hist;
    struct hist_word rest = parse->keys, word;
    struct hist_part *part;
    int err;

    while (word = hist_next_word(&rest, ','), word.p) {
        if (hist->key_count == HIST_KEYS_MAX)
            return hist_refuse_silently(parse);
        part = &hist->key[hist->key_count];
        err = hist_parse_part(parse, word, true, part);
        if (err)
            return err;
        part->at = (uint16_t)hist->key_size;
        part->size = part_size(part);
        hist->key_size += part->size;
        hist->has_comm |= part->show == HIST_EXECNAME;
        hist->key_count++;
    }
    return 0;
}

static int parse_vals(struct hist_parser *parse)
{
    struct hist *hist = parse->hist;
    struct hist_word rest = parse->vals, word;
    unsigned plain = 0;

    while (word = hist_next_word(&rest, ','), word.p) {
        struct hist_part *part = &hist->val[hist->val_count];
        int err;

        if (hist_word_is(word, "hitcount"))
            continue;
        if (hist->val_count == HIST_VALS_MAX)
            return hist_refuse_silently(parse);
        err = hist_parse_part(parse, word, false, part);
        if (err)
            return err;
        plain += part->show != HIST_MIN && part->show != HIST_MAX;
        if (plain > HIST_PLAIN_MAX)
            return hist_refuse_silently(parse);
        hist->val_count++;
    }
    if (!hist->no_hitcount || hist->val_count)
        return 0;
    hist_refuse_at(parse, HIST_NEED_NOHC_VAL_ERROR, "");
    return parse->error->err = -ENOENT;
}

/* ---- the order ---- */

static int find_sort(struct hist_parser *parse, struct hist_word name,
                     struct hist_sort *sort)
{
    const struct hist *hist = parse->hist;

    if (hist_word_is(name, "hitcount"))
        return 0;
    for (unsigned i = 0; i < hist->val_count; i++)
        if (hist_word_is(name, hist->val[i].field.name)) {
            sort->index = i + 1;
            return 0;
        }
    for (unsigned i = 0; i < hist->key_count; i++)
        if (hist_word_is(name, hist->key[i].field.name)) {
            sort->by_key = true;
            sort->index = i;
            return 0;
        }
    return hist_refuse(parse, HIST_INVALID_SORT_FIELD_ERROR, name);
}

static int parse_sort(struct hist_parser *parse, struct hist_word word,
                      struct hist_sort *sort)
{
    struct hist_word name = hist_next_word(&word, '.');
    int err;

    if (!name.len)
        return hist_refuse_at(parse, HIST_EMPTY_SORT_FIELD_ERROR, "sort=");
    *sort = (struct hist_sort){ 0 };
    err = find_sort(parse, name, sort);
    if (err || !word.p)
        return err;
    sort->descending = hist_word_is(word, "descending");
    if (!sort->descending && !hist_word_is(word, "ascending"))
        return hist_refuse(parse, HIST_INVALID_SORT_MODIFIER_ERROR, word);
    return 0;
}

static int parse_sorts(struct hist_parser *parse)
{
    struct hist *hist = parse->hist;
    struct hist_word rest = parse->sorts, word;
    int err;

    while (word = hist_next_word(&rest, ','), word.p) {
        if (hist->sort_count == HIST_SORTS_MAX - 1 && word.len && rest.p)
            return hist_refuse_at(parse, HIST_TOO_MANY_SORT_FIELDS_ERROR, "sort=");
        err = parse_sort(parse, word, &hist->sort[hist->sort_count]);
        if (err)
            return err;
        hist->sort_count++;
    }
    if (!hist->sort_count)
        hist->sort_count = 1; /* sort[0] is zeroed: by the hitcount */
    return 0;
}

/* ---- the parts of the line ---- */

static int parse_assignment(struct hist_parser *parse, struct hist_word word,
                            const char *equal)
{
    struct hist_word name = { word.p, (size_t)(equal - word.p) };
    struct hist_word value = { equal + 1, word.len - name.len - 1 };

    if (!value.len)
        return hist_refuse(parse, HIST_EMPTY_ASSIGNMENT_ERROR, word);
    if (hist_word_is(name, "keys") || hist_word_is(name, "key")) {
        parse->keys = value;
    } else if (hist_word_is(name, "vals") || hist_word_is(name, "val") ||
               hist_word_is(name, "values")) {
        parse->vals = value;
    } else if (hist_word_is(name, "sort")) {
        parse->sorts = value;
    } else if (hist_word_is(name, "name")) {
        parse->name = value;
    } else if (hist_word_is(name, "clock")) {
        parse->clock = value;
    } else if (hist_word_is(name, "size")) {
        if (fetch_number(value.p, value.len, &parse->size) ||
            parse->size <= HIST_SIZE_MIN / 2)
            return hist_refuse_silently(parse);
    } else {
        if (parse->variable_count == HIST_WORDS_MAX)
            return hist_refuse(parse, HIST_TOO_MANY_VARS_ERROR, word);
        parse->variable[parse->variable_count++] = word;
    }
    return 0;
}

static int parse_word(struct hist_parser *parse, struct hist_word word)
{
    const char *equal = memchr(word.p, '=', word.len);
    struct hist *hist = parse->hist;

    if (hist_word_begins(word, "onmatch(") || hist_word_begins(word, "onmax(") ||
        hist_word_begins(word, "onchange(")) {
        if (parse->action_count == HIST_ACTIONS_MAX)
            return hist_refuse(parse, HIST_TOO_MANY_PARAMS_ERROR, word);
        parse->action[parse->action_count++] = word;
        return 0;
    }
    if (equal)
        return parse_assignment(parse, word, equal);
    if (hist_word_is(word, "pause")) {
        hist->request = HIST_PAUSE;
    } else if (hist_word_is(word, "continue") || hist_word_is(word, "cont")) {
        hist->needs_another = true;
        if (hist->request != HIST_PAUSE)
            hist->request = HIST_CONTINUE;
    } else if (hist_word_is(word, "clear")) {
        hist->needs_another = true;
        if (hist->request == HIST_MAKE)
            hist->request = HIST_CLEAR;
    } else if (hist_word_is(word, "nohitcount") || hist_word_is(word, "NOHC")) {
        hist->no_hitcount = true;
    } else { /* as on Linux, an unknown word gets no entry in the log of errors */
        return hist_refuse_silently(parse);
    }
    return 0;
}

static int parse_spec(struct hist_parser *parse)
{
    struct hist_word rest = { parse->spec, strlen(parse->spec) }, word;
    int err;

    while (word = hist_next_word(&rest, ':'), word.p) {
        err = parse_word(parse, word);
        if (err)
            return err;
    }
    if (!parse->keys.len || parse->size > HIST_SIZE_MAX)
        return hist_refuse_silently(parse);
    err = hist_parse_variables(parse);
    if (!err)
        err = parse_vals(parse);
    if (!err)
        err = parse_keys(parse);
    if (!err)
        err = hist_parse_actions(parse);
    if (err)
        return err;
    return parse_sorts(parse);
}

/* ---- memory ---- */

static size_t rounded(uint64_t size)
{
    size_t power = HIST_SIZE_MIN;

    while (power < size)
        power *= 2;
    return power;
}

/* Names are copied, because the definition of the event may be freed before the
 * histogram.
 */
static void keep_name(struct hist_part *part, char **room)
{
    size_t len = strlen(part->field.name) + 1;

    memcpy(*room, part->field.name, len);
    part->field.name = *room;
    part->name = *room;
    *room += len;
}

static const char *keep_word(struct hist_word word, char **room)
{
    char *text = *room;

    memcpy(text, word.p, word.len);
    text[word.len] = '\0';
    *room += word.len + 1;
    return text;
}

static size_t names_size(const struct hist *hist, const struct hist_parser *parse)
{
    size_t size = parse->name.len + parse->clock.len + 2;

    for (unsigned i = 0; i < hist->key_count; i++)
        size += strlen(hist->key[i].field.name) + 1;
    for (unsigned i = 0; i < hist->val_count; i++)
        size += strlen(hist->val[i].field.name) + 1;
    return size;
}

static void keep_names(struct hist *hist, const struct hist_parser *parse, char *room)
{
    for (unsigned i = 0; i < hist->key_count; i++)
        keep_name(&hist->key[i], &room);
    for (unsigned i = 0; i < hist->val_count; i++)
        keep_name(&hist->val[i], &room);
    if (parse->name.len)
        hist->name = keep_word(parse->name, &room);
    if (hist->clock)
        hist->clock = keep_word(parse->clock, &room);
}

/* table_make - allocate a table, its entries and its slots in a single piece. */
static struct hist_table *table_make(const struct def_host *host, const struct hist *plan,
                                     size_t size)
{
    size_t entry_size = sizeof(struct hist_entry) +
                        (1 + plan->val_count) * sizeof(uint64_t) + plan->key_size +
                        (plan->more ? plan->more->size : 0);
    struct hist_table *table =
        host->alloc(sizeof(*table) + size * entry_size + 2 * size * sizeof(*table->slot));

    if (!table)
        return NULL;
    *table = (struct hist_table){ .users = 1, .size = size, .entry_size = entry_size };
    table->entries = (uint8_t *)(table + 1);
    table->slot = (uint32_t *)(void *)(table->entries + size * entry_size);
    return table;
}

static void table_drop(const struct def_host *host, struct hist_table *table)
{
    if (!--table->users)
        host->free(table);
}

static int hist_make(const struct def_host *host, const struct hist *plan,
                     const struct hist_parser *parse, struct hist **out)
{
    size_t size = rounded(parse->size ? parse->size : HIST_SIZE_DEFAULT);
    struct hist *hist = host->alloc(sizeof(*hist) + names_size(plan, parse));

    if (!hist)
        return -ENOMEM;
    *hist = *plan;
    hist->table = table_make(host, plan, size);
    if (!hist->table) {
        host->free(hist);
        return -ENOMEM;
    }
    hist->begins_paused = hist->request == HIST_PAUSE;
    hist->own_paused = hist->begins_paused;
    hist->paused = &hist->own_paused;
    keep_names(hist, parse, (char *)(hist + 1));
    hist_clear(hist);
    *out = hist;
    return 0;
}

int hist_parse(const struct def_host *host, const char *spec,
               const struct filter_field *fields, size_t count,
               const struct hist_world *world, struct hist **out,
               struct hist_error *error)
{
    struct hist plan = { 0 };
    struct hist_parser parse = { .host = host,
                                 .fields = fields,
                                 .field_count = count,
                                 .world = world,
                                 .spec = spec,
                                 .hist = &plan,
                                 .error = error };
    int err;

    *out = NULL;
    *error = (struct hist_error){ 0 };
    err = parse_spec(&parse);
    if (!err)
        err = hist_make(host, &plan, &parse, out);
    if (err)
        hist_more_free(host, plan.more);
    error->err = err;
    return err;
}

void hist_free(const struct def_host *host, struct hist *hist)
{
    table_drop(host, hist->table);
    hist_more_free(host, hist->more);
    host->free(hist);
}

/* ---- comparing and sharing ---- */

bool hist_wants_stack(const struct hist *hist)
{
    for (unsigned i = 0; i < hist->key_count; i++)
        if (hist->key[i].show == HIST_STACK)
            return true;
    return false;
}

static bool parts_are_same(const struct hist_part *a, const struct hist_part *b,
                           unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(a[i].name, b[i].name) != 0 || a[i].show != b[i].show ||
            a[i].bucket != b[i].bucket)
            return false;
    return true;
}

bool hist_is_same(const struct hist *a, const struct hist *b)
{
    if (a->key_count != b->key_count || a->val_count != b->val_count ||
        a->sort_count != b->sort_count || !a->name != !b->name ||
        (a->name && strcmp(a->name, b->name) != 0) ||
        !hist_more_is_same(a->more, b->more))
        return false;
    for (unsigned i = 0; i < a->sort_count; i++)
        if (a->sort[i].by_key != b->sort[i].by_key ||
            a->sort[i].index != b->sort[i].index ||
            a->sort[i].descending != b->sort[i].descending)
            return false;
    return parts_are_same(a->key, b->key, a->key_count) &&
           parts_are_same(a->val, b->val, a->val_count);
}

unsigned hist_value_column(const char *spec, const char *word)
{
    const char *at = strstr(spec, word);

    return at ? (unsigned)(sizeof(prefix) - 1 + (size_t)(at - spec) + strlen(word)) : 0;
}

/* types_are_same - tell whether the parts have the same types: numbers of the same width
 * and sign, or texts. Fields of two events may have the same name and different types.
 */
static bool types_are_same(const struct hist_part *a, const struct hist_part *b,
                           unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (a[i].field.kind != b[i].field.kind || a[i].field.size != b[i].field.size ||
            a[i].field.is_signed != b[i].field.is_signed)
            return false;
    return true;
}

int hist_share(const struct def_host *host, struct hist *hist, struct hist *named)
{
    if (!hist_is_same(hist, named) ||
        !types_are_same(hist->key, named->key, hist->key_count) ||
        !types_are_same(hist->val, named->val, hist->val_count))
        return -EINVAL;
    table_drop(host, hist->table);
    hist->table = named->table;
    hist->table->users++;
    return 0;
}
