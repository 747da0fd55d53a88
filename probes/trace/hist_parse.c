/* hist_parse.c - what a histogram counts, out of its line. */
#include "probes/trace/hist_parts.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/fetch_parse.h"

#include <string.h>

#define PREFIX_LEN 5 /* of "hist:" */

struct hist_parser {
    const struct filter_field *fields;
    size_t field_count;
    const char *spec;
    struct hist *hist;
    struct hist_error *error;
    uint64_t size;
    struct hist_word {
        const char *p;
        size_t len;
    } keys, vals, sorts, name;
};

static const char *const modifiers[HIST_SHOWS] = {
    [HIST_HEX] = "hex",           [HIST_SYM] = "sym",   [HIST_SYM_OFFSET] = "sym-offset",
    [HIST_EXECNAME] = "execname", [HIST_LOG2] = "log2", [HIST_MIN] = "min",
    [HIST_MAX] = "max",
};

const char *hist_modifier(enum hist_show show)
{
    return modifiers[show];
}

const char *hist_error_text(enum hist_error_id id)
{
#define HIST_TEXT_ROW(name, text) [HIST_##name##_ERROR] = (text),
    static const char *const texts[] = { HIST_ERRORS(HIST_TEXT_ROW) };

    return (size_t)id < ARRAY_LEN(texts) ? texts[id] : "";
}

/* hist_refuse - @at: where the caret goes; NULL: to the beginning, as Linux has it of what is
 * empty.
 */
static int hist_refuse(struct hist_parser *parse, enum hist_error_id id, const char *at)
{
    *parse->error = (struct hist_error){
        .err = -EINVAL,
        .id = id,
        .column = id && at ? PREFIX_LEN + (unsigned)(at - parse->spec) : 0,
    };
    return -EINVAL;
}

static bool word_is(struct hist_word word, const char *text)
{
    return strlen(text) == word.len && !memcmp(word.p, text, word.len);
}

/* next_word - up to @delim or the end; @rest is moved behind it. p NULL: there is none. */
static struct hist_word next_word(struct hist_word *rest, char delim)
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

static int parse_buckets(struct hist_parser *parse, struct hist_word width,
                         struct hist_part *part)
{
    if (fetch_number(width.p, width.len, &part->bucket) || !part->bucket)
        return hist_refuse(parse, HIST_BAD_FIELD_MODIFIER_ERROR, width.p);
    part->show = HIST_BUCKETS;
    return 0;
}

static int parse_modifier(struct hist_parser *parse, struct hist_word modifier,
                          bool is_key, struct hist_part *part)
{
    static const char buckets[] = "buckets=";
    const size_t len = sizeof(buckets) - 1;
    bool is_text = part->field.kind != FILTER_NUMBER && part->field.kind != FILTER_CPU;

    if (is_key && !is_text && modifier.len > len && !memcmp(modifier.p, buckets, len))
        return parse_buckets(
            parse, (struct hist_word){ modifier.p + len, modifier.len - len }, part);
    for (int show = 0; show < HIST_SHOWS; show++) {
        bool is_value = show == HIST_MIN || show == HIST_MAX;

        if (modifiers[show] && word_is(modifier, modifiers[show]) && !is_text &&
            (is_value != is_key || show == HIST_HEX) &&
            (show != HIST_EXECNAME || !strcmp(part->field.name, "common_pid"))) {
            part->show = (enum hist_show)show;
            return 0;
        }
    }
    return hist_refuse(parse, HIST_BAD_FIELD_MODIFIER_ERROR,
                       modifier.len ? modifier.p : NULL);
}

static bool is_stack(struct hist_word name)
{
    return word_is(name, "stacktrace") || word_is(name, "common_stacktrace");
}

static int parse_part(struct hist_parser *parse, struct hist_word word, bool is_key,
                      struct hist_part *part)
{
    struct hist_word name = next_word(&word, '.');
    const struct filter_field *field;

    *part = (struct hist_part){ .name = name.p };
    if (is_key && is_stack(name) && !word.p) {
        part->show = HIST_STACK;
        part->field.name = "stacktrace";
        return 0;
    }
    field = filter_field_find(parse->fields, parse->field_count, name.p, name.len);
    if (!field)
        return hist_refuse(parse, HIST_FIELD_NOT_FOUND_ERROR, name.len ? name.p : NULL);
    part->field = *field;
    if (field->kind != FILTER_NUMBER && field->kind != FILTER_CPU) {
        if (!is_key)
            return hist_refuse(parse, HIST_NONE_ERROR, name.p);
        part->show = HIST_STRING;
    }
    if (word.p)
        return parse_modifier(parse, word, is_key, part);
    return 0;
}

static uint16_t part_size(const struct hist_part *part)
{
    switch (part->show) {
    case HIST_STRING:
        return HIST_STRING_MAX;
    case HIST_STACK:
        return HIST_STACK_MAX * sizeof(uint64_t);
    default:
        return sizeof(uint64_t);
    }
}

static int parse_keys(struct hist_parser *parse)
{
    struct hist *hist = parse->hist;
    struct hist_word rest = parse->keys, word;
    struct hist_part *part;
    int err;

    while (word = next_word(&rest, ','), word.p) {
        if (hist->key_count == HIST_KEYS_MAX)
            return hist_refuse(parse, HIST_NONE_ERROR, word.p);
        part = &hist->key[hist->key_count];
        err = parse_part(parse, word, true, part);
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
    int err;

    while (word = next_word(&rest, ','), word.p) {
        if (word_is(word, "hitcount"))
            continue;
        if (hist->val_count == HIST_VALS_MAX)
            return hist_refuse(parse, HIST_NONE_ERROR, word.p);
        err = parse_part(parse, word, false, &hist->val[hist->val_count]);
        if (err)
            return err;
        hist->val_count++;
    }
    return 0;
}

/* ---- the order ---- */

static int find_sort(struct hist_parser *parse, struct hist_word name,
                     struct hist_sort *sort)
{
    const struct hist *hist = parse->hist;

    if (word_is(name, "hitcount"))
        return 0;
    for (unsigned i = 0; i < hist->val_count; i++)
        if (word_is(name, hist->val[i].field.name)) {
            sort->index = i + 1;
            return 0;
        }
    for (unsigned i = 0; i < hist->key_count; i++)
        if (word_is(name, hist->key[i].field.name)) {
            sort->by_key = true;
            sort->index = i;
            return 0;
        }
    return hist_refuse(parse, HIST_INVALID_SORT_FIELD_ERROR, name.p);
}

static int parse_sort(struct hist_parser *parse, struct hist_word word,
                      struct hist_sort *sort)
{
    struct hist_word name = next_word(&word, '.');
    int err;

    if (!name.len)
        return hist_refuse(parse, HIST_EMPTY_SORT_FIELD_ERROR, name.p);
    *sort = (struct hist_sort){ 0 };
    err = find_sort(parse, name, sort);
    if (err || !word.p)
        return err;
    sort->descending = word_is(word, "descending");
    if (!sort->descending && !word_is(word, "ascending"))
        return hist_refuse(parse, HIST_INVALID_SORT_MODIFIER_ERROR, word.p);
    return 0;
}

static int parse_sorts(struct hist_parser *parse)
{
    struct hist *hist = parse->hist;
    struct hist_word rest = parse->sorts, word;
    int err;

    while (word = next_word(&rest, ','), word.p) {
        if (hist->sort_count == HIST_SORTS_MAX)
            return hist_refuse(parse, HIST_TOO_MANY_SORT_FIELDS_ERROR, word.p);
        err = parse_sort(parse, word, &hist->sort[hist->sort_count]);
        if (err)
            return err;
        hist->sort_count++;
    }
    if (!hist->sort_count)
        hist->sort_count = 1; /* by the hitcount, which is 0 */
    return 0;
}

/* ---- the parts of the line ---- */

static int parse_assignment(struct hist_parser *parse, struct hist_word word,
                            const char *equal)
{
    struct hist_word name = { word.p, (size_t)(equal - word.p) };
    struct hist_word value = { equal + 1, word.len - name.len - 1 };

    if (!value.len)
        return hist_refuse(parse, HIST_EMPTY_ASSIGNMENT_ERROR, word.p);
    if (word_is(name, "keys") || word_is(name, "key")) {
        parse->keys = value;
    } else if (word_is(name, "vals") || word_is(name, "val") || word_is(name, "values")) {
        parse->vals = value;
    } else if (word_is(name, "sort")) {
        parse->sorts = value;
    } else if (word_is(name, "name")) {
        parse->name = value;
    } else if (word_is(name, "size")) {
        if (fetch_number(value.p, value.len, &parse->size) ||
            parse->size <= HIST_SIZE_MIN / 2)
            return hist_refuse(parse, HIST_NONE_ERROR, word.p);
    } else {
        return hist_refuse(parse, HIST_ACTION_NOT_FOUND_ERROR, word.p);
    }
    return 0;
}

static int parse_word(struct hist_parser *parse, struct hist_word word)
{
    const char *equal = memchr(word.p, '=', word.len);
    struct hist *hist = parse->hist;

    if (equal)
        return parse_assignment(parse, word, equal);
    if (word_is(word, "pause"))
        hist->request = HIST_PAUSE;
    else if (word_is(word, "continue") || word_is(word, "cont"))
        hist->request = HIST_CONTINUE;
    else if (word_is(word, "clear"))
        hist->request = HIST_CLEAR;
    else if (word_is(word, "nohitcount") || word_is(word, "NOHC"))
        hist->no_hitcount = true;
    else /* as Linux, which has no sentence for a word that it does not know */
        return hist_refuse(parse, HIST_NONE_ERROR, word.p);
    return 0;
}

static int parse_spec(struct hist_parser *parse)
{
    struct hist_word rest = { parse->spec, strlen(parse->spec) }, word;
    int err;

    while (word = next_word(&rest, ':'), word.p) {
        err = parse_word(parse, word);
        if (err)
            return err;
    }
    if (!parse->keys.len || parse->size > HIST_SIZE_MAX)
        return hist_refuse(parse, HIST_NONE_ERROR, parse->spec);
    err = parse_keys(parse);
    if (err)
        return err;
    err = parse_vals(parse);
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

/* Names are copied: the definition that they come from may go before the histogram. */
static void keep_name(struct hist_part *part, char **room)
{
    size_t len = strlen(part->field.name) + 1;

    memcpy(*room, part->field.name, len);
    part->field.name = *room;
    part->name = *room;
    *room += len;
}

static size_t names_size(const struct hist *hist, const struct hist_parser *parse)
{
    size_t size = parse->name.len + 1;

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
    if (!parse->name.len)
        return;
    memcpy(room, parse->name.p, parse->name.len);
    room[parse->name.len] = '\0';
    hist->name = room;
}

/* One piece: the table, its entries, its slots. */
static struct hist_table *table_make(const struct def_host *host, const struct hist *plan,
                                     size_t size)
{
    size_t entry_size = sizeof(struct hist_entry) +
                        (1 + plan->val_count) * sizeof(uint64_t) + plan->key_size;
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
    hist->paused = hist->request == HIST_PAUSE;
    keep_names(hist, parse, (char *)(hist + 1));
    hist_clear(hist);
    *out = hist;
    return 0;
}

int hist_parse(const struct def_host *host, const char *spec,
               const struct filter_field *fields, size_t count, struct hist **out,
               struct hist_error *error)
{
    struct hist plan = { 0 };
    struct hist_parser parse = { .fields = fields,
                                 .field_count = count,
                                 .spec = spec,
                                 .hist = &plan,
                                 .error = error };
    int err;

    *out = NULL;
    *error = (struct hist_error){ 0 };
    err = parse_spec(&parse);
    if (!err)
        err = hist_make(host, &plan, &parse, out);
    error->err = err;
    return err;
}

void hist_free(const struct def_host *host, struct hist *hist)
{
    table_drop(host, hist->table);
    host->free(hist);
}

/* ---- beside others ---- */

enum hist_request hist_request(const struct hist *hist)
{
    return hist->request;
}

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
        (a->name && strcmp(a->name, b->name) != 0))
        return false;
    for (unsigned i = 0; i < a->sort_count; i++)
        if (a->sort[i].by_key != b->sort[i].by_key ||
            a->sort[i].index != b->sort[i].index ||
            a->sort[i].descending != b->sort[i].descending)
            return false;
    return parts_are_same(a->key, b->key, a->key_count) &&
           parts_are_same(a->val, b->val, a->val_count);
}

const char *hist_name(const struct hist *hist)
{
    return hist->name;
}

unsigned hist_name_column(const char *spec)
{
    const char *name = strstr(spec, "name=");

    return name ? (unsigned)(sizeof("hist:name=") - 1 + (size_t)(name - spec)) : 0;
}

/* types_are_same - numbers of one width and sign, or texts? A name may mean another thing in
 * another event.
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
