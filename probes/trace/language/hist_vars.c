/* hist_vars.c - reads the variables and the actions of a histogram's line. */
#include "probes/trace/language/hist_parts.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <string.h>

/* ---- memory ---- */

/* more_of - make room for variables and actions. Each text of the line is kept at most
 * twice, with a NUL: in its action, and alone. (Names of fields are only read here.)
 */
static struct hist_more *more_of(struct hist_parser *parse)
{
    struct hist *hist = parse->hist;

    if (!hist->more) {
        size_t size = sizeof(*hist->more) + 3 * strlen(parse->spec) + 16;

        hist->more = parse->host->alloc(size);
        if (!hist->more)
            return NULL;
        memset(hist->more, 0, size);
        hist->more->room = hist->more->text;
    }
    return hist->more;
}

static const char *keep_text(struct hist_more *more, struct hist_word word)
{
    char *text = more->room;

    memcpy(text, word.p, word.len);
    more->room += word.len + 1;
    return text;
}

static struct hist_var *variable_of(const struct hist *hist, const struct hist_ref *ref)
{
    return &(ref->of ? ref->of : hist)->more->var[ref->var];
}

static void note_reader(struct hist_ref *ref, bool comes)
{
    unsigned step = comes ? 1 : -1u;

    if (!ref->of)
        return;
    ref->of->more->readers += step;
    if (ref->unsets)
        variable_of(NULL, ref)->readers += step;
}

void hist_more_free(const struct def_host *host, struct hist_more *more)
{
    if (!more)
        return;
    for (unsigned i = 0; i < more->ref_count; i++)
        note_reader(&more->ref[i], false);
    for (unsigned i = 0; i < more->action_count; i++)
        if (more->action[i].synth)
            more->action[i].synth->users--;
    host->free(more);
}

bool hist_more_is_same(const struct hist_more *a, const struct hist_more *b)
{
    if (!a || !b)
        return a == b;
    if (a->var_count != b->var_count || a->action_count != b->action_count)
        return false;
    for (unsigned i = 0; i < a->var_count; i++)
        if (strcmp(a->var[i].name, b->var[i].name) != 0 ||
            strcmp(a->var[i].text, b->var[i].text) != 0)
            return false;
    for (unsigned i = 0; i < a->action_count; i++) {
        if (strcmp(a->action[i].text, b->action[i].text) != 0)
            return false;
        for (unsigned j = 0; j < a->action[i].arg_count; j++)
            if (a->action[i].arg[j].is_text != b->action[i].arg[j].is_text)
                return false; /* what save() keeps has another size */
    }
    return true;
}

/* ---- variables that are read ---- */

static struct hist_word word_trimmed(struct hist_word word)
{
    while (word.len && isspace((unsigned char)*word.p))
        word = hist_word_behind(word, 1);
    word.len = cut_blanks(word.p, word.len);
    return word;
}

static int find_variable(const struct hist *hist, struct hist_word name)
{
    const struct hist_more *more = hist->more;

    for (unsigned i = 0; more && i < more->var_count; i++)
        if (hist_word_is(name, more->var[i].name))
            return (int)i;
    return -1;
}

struct variable_search {
    const struct hist_parser *parse;
    struct hist_word group, event, name; /* group.p NULL: any event */
    bool in_match;                       /* only events of an onmatch */
    struct hist_ref found;
};

/* is_matched - is the event named by an onmatch of the line? */
static bool is_matched(const struct hist_parser *parse, const char *group,
                       const char *event)
{
    for (unsigned i = 0; i < parse->action_count; i++) {
        struct hist_word rest = parse->action[i];

        if (hist_word_is(hist_next_word(&rest, '('), "onmatch") &&
            hist_word_is(hist_next_word(&rest, '.'), group) &&
            hist_word_is(hist_next_word(&rest, ')'), event))
            return true;
    }
    return false;
}

static bool search_variable(struct hist *hist, const char *group, const char *event,
                            void *arg)
{
    struct variable_search *search = arg;
    int var;

    if (search->group.p
            ? !hist_word_is(search->group, group) || !hist_word_is(search->event, event)
            : search->in_match && !is_matched(search->parse, group, event))
        return true;
    var = find_variable(hist, search->name);
    if (var < 0)
        return true;
    search->found = (struct hist_ref){ .of = hist, .var = (unsigned)var };
    return false;
}

/* find_elsewhere - find a variable of another histogram. As on Linux, those of the events
 * that an onmatch names come first.
 */
static bool find_elsewhere(struct variable_search *search)
{
    const struct hist_world *world = search->parse->world;

    if (!world)
        return false;
    search->in_match = true;
    world->each(search_variable, search);
    search->in_match = false;
    if (!search->found.of)
        world->each(search_variable, search);
    return search->found.of;
}

/* parse_reference - read [GROUP.EVENT.]$NAME. @index: set to its number among those that are
 * read; @not_found: the error if there is no such variable. As on Linux, in an expression it
 * is a field that is not found.
 */
static int parse_reference(struct hist_parser *parse, struct hist_word word, bool unsets,
                           enum hist_error_id not_found, uint64_t *index)
{
    struct hist_more *more = more_of(parse);
    struct variable_search search = { .parse = parse };
    struct hist_ref *ref;
    int own;

    if (!more)
        return -ENOMEM;
    if (!hist_word_begins(word, "$")) {
        search.group = hist_next_word(&word, '.');
        search.event = hist_next_word(&word, '.');
    }
    if (!word.p || !hist_word_begins(word, "$"))
        return hist_refuse(parse, not_found, search.group);
    search.name = hist_word_behind(word, 1);
    own = search.group.p ? -1 : find_variable(parse->hist, search.name);
    if (own >= 0)
        search.found = (struct hist_ref){ .var = (unsigned)own };
    else if (!find_elsewhere(&search))
        return hist_refuse(parse, not_found, word);
    for (*index = 0; *index < more->ref_count; ++*index)
        if (more->ref[*index].of == search.found.of &&
            more->ref[*index].var == search.found.var)
            break;
    ref = &more->ref[*index];
    if (*index == HIST_REFS_MAX)
        return hist_refuse(parse, HIST_TOO_MANY_VARS_ERROR, search.name);
    if (*index == more->ref_count)
        more->ref_count++;
    else
        note_reader(ref, false);
    search.found.unsets = unsets || ref->unsets;
    *ref = search.found;
    note_reader(ref, true);
    return 0;
}

int hist_parse_value(struct hist_parser *parse, struct hist_word word,
                     struct hist_part *part)
{
    struct hist_more *more;
    uint64_t index;
    int err = parse_reference(parse, word, false, HIST_FIELD_NOT_FOUND_ERROR, &index);

    if (err)
        return err;
    more = parse->hist->more;
    part->field =
        (struct filter_field){ .name = keep_text(more, hist_word_behind(word, 1)),
                               .offset = (uint16_t)index,
                               .size = sizeof(uint64_t),
                               .kind = FILTER_VARIABLE };
    part->name = part->field.name;
    return 0;
}

int hist_plain_variable(struct hist_parser *parse, struct hist_word *word)
{
    int i = find_variable(parse->hist, hist_word_behind(*word, 1));
    const struct hist_var *var;

    if (i < 0)
        return hist_refuse(parse, HIST_FIELD_NOT_FOUND_ERROR, *word);
    var = &parse->hist->more->var[i];
    if (var->op_count != 1 || var->op[0].kind != HIST_FIELD)
        return hist_refuse(parse, HIST_INVALID_REF_KEY_ERROR, *word);
    *word = (struct hist_word){ var->op[0].part.name, strlen(var->op[0].part.name) };
    return 0;
}

/* ---- expressions ---- */

struct expression {
    struct hist_parser *parse;
    struct hist_word whole, rest;
    struct hist_var *var;
};

static int push_op(struct expression *x, const struct hist_op *op)
{
    if (x->var->op_count == HIST_OPS_MAX)
        return hist_refuse(x->parse, HIST_TOO_MANY_SUBEXPR_ERROR, x->whole);
    x->var->op[x->var->op_count++] = *op;
    return 0;
}

static const struct filter_field *hist_field_of(const struct hist_parser *parse,
                                                struct hist_word word)
{
    struct hist_word name = hist_next_word(&word, '.');

    return filter_field_find(parse->fields, parse->field_count, name.p, name.len);
}

static bool is_text_field(const struct filter_field *field)
{
    return hist_part_is_text(&(struct hist_part){ .field = *field });
}

/* names_variable - is @word $NAME, or GROUP.EVENT.$NAME? */
static bool names_variable(struct hist_word word)
{
    return word.len && memchr(word.p, '$', word.len);
}

static int take_field(struct expression *x, struct hist_word word, struct hist_op *op)
{
    const struct filter_field *field = hist_field_of(x->parse, word);
    int err;

    if (field && is_text_field(field))
        return hist_refuse(x->parse, HIST_INVALID_STR_OPERAND_ERROR, word);
    err = hist_parse_part(x->parse, word, false, &op->part);
    if (!err && hist_part_is_share(&op->part))
        return hist_refuse(x->parse, HIST_BAD_FIELD_MODIFIER_ERROR, word);
    if (!err)
        x->var->is_time |= op->part.field.kind == FILTER_TIME;
    return err;
}

static int parse_operand(struct expression *x)
{
    struct hist_word word = { x->rest.p, 0 };
    struct hist_op op = { .kind = HIST_FIELD };
    int err = 0;

    while (word.len < x->rest.len && !strchr("+-*/", word.p[word.len]))
        word.len++;
    if (!word.len && x->rest.len && *x->rest.p == '-')
        return hist_refuse(x->parse, HIST_UNARY_MINUS_SUBEXPR_ERROR, x->rest);
    x->rest = hist_word_behind(x->rest, word.len);
    word = word_trimmed(word);
    if (!word.len)
        return hist_refuse(x->parse, HIST_FIELD_NOT_FOUND_ERROR, x->whole);
    if (isdigit((unsigned char)*word.p)) {
        op.kind = HIST_CONSTANT;
        if (fetch_number(word.p, word.len, &op.value))
            return hist_refuse(x->parse, HIST_EXPECT_NUMBER_ERROR, word);
    } else if (names_variable(word)) {
        op.kind = HIST_REF;
        err =
            parse_reference(x->parse, word, true, HIST_FIELD_NOT_FOUND_ERROR, &op.value);
    } else {
        err = take_field(x, word, &op);
    }
    return err ? err : push_op(x, &op);
}

/* take_operator - take one of the characters @of. Return: it; NUL: another comes. */
static char take_operator(struct expression *x, const char *of)
{
    char c = x->rest.len ? *x->rest.p : '\0';

    if (!c || !strchr(of, c))
        return '\0';
    x->rest = hist_word_behind(x->rest, 1);
    return c;
}

static int parse_term(struct expression *x)
{
    int err = parse_operand(x);
    char c;

    while (!err && (c = take_operator(x, "*/")) != '\0') {
        struct hist_word divisor = x->rest;
        const struct hist_op *last;

        err = parse_operand(x);
        last = &x->var->op[x->var->op_count - 1];
        if (!err && c == '/' && last->kind == HIST_CONSTANT && !last->value)
            return hist_refuse(x->parse, HIST_DIVISION_BY_ZERO_ERROR, divisor);
        if (!err)
            err = push_op(
                x, &(struct hist_op){ .kind = c == '*' ? HIST_MULTIPLY : HIST_DIVIDE });
    }
    return err;
}

static int hist_parse_expression(struct expression *x)
{
    int err = parse_term(x);
    char c;

    while (!err && (c = take_operator(x, "+-")) != '\0') {
        err = parse_term(x);
        if (!err)
            err = push_op(
                x, &(struct hist_op){ .kind = c == '+' ? HIST_ADD : HIST_SUBTRACT });
    }
    return err;
}

static int hist_parse_variable(struct hist_parser *parse, struct hist_word word)
{
    struct hist_word value = word, name = hist_next_word(&value, '=');
    struct hist_more *more = more_of(parse);
    struct expression x = { .parse = parse, .whole = value, .rest = value };
    int err;

    if (!more)
        return -ENOMEM;
    if (!value.len)
        return hist_refuse(parse, HIST_EMPTY_ASSIGNMENT_ERROR, word);
    if (find_variable(parse->hist, name) >= 0)
        return hist_refuse(parse, HIST_DUPLICATE_VAR_ERROR, name);
    if (more->var_count == HIST_VARS_MAX)
        return hist_refuse(parse, HIST_TOO_MANY_VARS_ERROR, name);
    x.var = &more->var[more->var_count];
    err = hist_parse_expression(&x);
    if (err)
        return err;
    x.var->name = keep_text(more, name);
    x.var->text = keep_text(more, value);
    more->var_count++;
    more->size += sizeof(struct hist_word_of_var);
    return 0;
}

int hist_parse_variables(struct hist_parser *parse)
{
    int err = 0;

    for (unsigned i = 0; !err && i < parse->variable_count; i++) {
        struct hist_word rest = parse->variable[i], word;

        while (!err && (word = hist_next_word(&rest, ','), word.p))
            err = hist_parse_variable(parse, word);
    }
    return err;
}

/* ---- actions ---- */

static struct hist_word name_of_reference(const struct hist *hist,
                                          const struct hist_ref *ref)
{
    const char *name = variable_of(hist, ref)->name;

    return (struct hist_word){ name, strlen(name) };
}

/* check_references - the histogram of a variable needs the same keys, and the same unit of
 * time if times are combined.
 */
static int check_references(struct hist_parser *parse)
{
    const struct hist *hist = parse->hist;
    const struct hist_more *more = hist->more;

    for (unsigned i = 0; i < more->ref_count; i++) {
        const struct hist_ref *ref = &more->ref[i];

        if (ref->of && (ref->of->key_count != hist->key_count ||
                        ref->of->key_size != hist->key_size))
            return hist_refuse(parse, HIST_HIST_NOT_FOUND_ERROR,
                               name_of_reference(hist, ref));
    }
    for (unsigned i = 0; i < more->var_count; i++)
        for (unsigned j = 0; more->var[i].is_time && j < more->var[i].op_count; j++) {
            const struct hist_op *op = &more->var[i].op[j];
            const struct hist_ref *ref = &more->ref[op->value];

            if (op->kind == HIST_REF && ref->of && variable_of(hist, ref)->is_time &&
                ref->of->in_us != hist->in_us)
                return hist_refuse(parse, HIST_TIMESTAMP_MISMATCH_ERROR,
                                   name_of_reference(hist, ref));
        }
    return 0;
}

/* local_field - return FIELD of GROUP.EVENT.FIELD if that is the line's own event. */
static struct hist_word local_field(const struct hist_parser *parse,
                                    struct hist_word word)
{
    struct hist_word rest = word, group = hist_next_word(&rest, '.'),
                     event = hist_next_word(&rest, '.');

    if (!rest.p)
        return word;
    if (!parse->world || !hist_word_is(group, parse->world->group) ||
        !hist_word_is(event, parse->world->event))
        return (struct hist_word){ word.p, 0 };
    return rest;
}

static int hist_parse_argument(struct hist_parser *parse, struct hist_action *action,
                               struct hist_word word)
{
    struct hist_more *more = parse->hist->more;
    struct hist_arg *arg = &action->arg[action->arg_count];
    struct hist_word name = local_field(parse, word);
    const struct filter_field *field;
    int err;

    if (action->arg_count == HIST_ARGS_MAX)
        return hist_refuse(parse, HIST_TOO_MANY_PARAMS_ERROR, word);
    arg->name = keep_text(more, name);
    if (names_variable(word) && action->synth) {
        arg->op.kind = HIST_REF;
        err = parse_reference(parse, word, false, HIST_PARAM_NOT_FOUND_ERROR,
                              &arg->op.value);
        if (err)
            return err;
    } else {
        field = hist_field_of(parse, name);
        if (!field)
            return hist_refuse(parse, HIST_PARAM_NOT_FOUND_ERROR, word);
        arg->op.kind = HIST_FIELD;
        arg->op.part.field = *field;
        arg->is_text = is_text_field(field);
    }
    if (action->synth && action->arg_count < action->synth->field_count &&
        arg->is_text != (action->synth->texts >> action->arg_count & 1))
        return hist_refuse(parse, HIST_SYNTH_TYPE_MISMATCH_ERROR, word);
    action->arg_count++;
    return 0;
}

static int parse_arguments(struct hist_parser *parse, struct hist_action *action,
                           struct hist_word rest)
{
    struct hist_word word;
    int err = 0;

    while (!err && rest.len && (word = hist_next_word(&rest, ','), word.p))
        err = hist_parse_argument(parse, action, word_trimmed(word));
    return err;
}

/* parse_save - read the fields of save(). They get room in each entry. */
static int parse_save(struct hist_parser *parse, struct hist_action *action,
                      struct hist_word name, struct hist_word rest)
{
    struct hist_more *more = parse->hist->more;
    int err;

    if (action->handler == HIST_ONMATCH)
        return hist_refuse(parse, HIST_ACTION_MISMATCH_ERROR, name);
    for (unsigned i = 0; i < more->action_count; i++)
        if (!more->action[i].synth)
            return hist_refuse(parse, HIST_TOO_MANY_SAVE_ACTIONS_ERROR, name);
    if (!word_trimmed(rest).len)
        return hist_refuse(parse, HIST_NO_SAVE_PARAMS_ERROR, name);
    err = parse_arguments(parse, action, rest);
    for (unsigned i = 0; !err && i < action->arg_count; i++) {
        action->arg[i].at = (uint16_t)more->size;
        more->size += action->arg[i].is_text ? HIST_STRING_MAX : sizeof(uint64_t);
    }
    return err;
}

static int parse_synth(struct hist_parser *parse, struct hist_action *action,
                       struct hist_word name, struct hist_word rest)
{
    int err;

    if (hist_word_is(name, "trace"))
        name = word_trimmed(hist_next_word(&rest, ','));
    action->synth = parse->world ? parse->world->synth(name.p, name.len) : NULL;
    if (!action->synth)
        return hist_refuse(parse, HIST_SYNTH_EVENT_NOT_FOUND_ERROR, name);
    err = parse_arguments(parse, action, rest);
    if (!err && action->arg_count != action->synth->field_count)
        return hist_refuse(parse, HIST_SYNTH_COUNT_MISMATCH_ERROR, name);
    return err;
}

/* parse_what - read NAME(ARG,..) behind the handler's '.'. */
static int parse_what(struct hist_parser *parse, struct hist_action *action,
                      struct hist_word rest)
{
    struct hist_word name = hist_next_word(&rest, '(');

    if (!name.len || !rest.p || hist_word_is(name, "snapshot"))
        return hist_refuse(parse, HIST_ACTION_NOT_FOUND_ERROR, name);
    if (!rest.len || rest.p[rest.len - 1] != ')')
        return hist_refuse(parse, HIST_NO_CLOSING_PAREN_ERROR, rest);
    rest.len--;
    if (hist_word_is(name, "save"))
        return parse_save(parse, action, name, rest);
    return parse_synth(parse, action, name, rest);
}

static int parse_match(struct hist_parser *parse, struct hist_word inner)
{
    struct hist_word event = inner, group = hist_next_word(&event, '.');

    if (!event.p)
        return hist_refuse(parse, HIST_SUBSYS_NOT_FOUND_ERROR, inner);
    if (!group.len || !event.len)
        return hist_refuse(parse, HIST_INVALID_SUBSYS_EVENT_ERROR, inner);
    return 0;
}

static int parse_tracked(struct hist_parser *parse, struct hist_action *action,
                         struct hist_word inner)
{
    if (!hist_word_begins(inner, "$"))
        return hist_refuse(parse, HIST_ONX_NOT_VAR_ERROR, inner);
    action->at = (uint16_t)parse->hist->more->size;
    parse->hist->more->size += sizeof(struct hist_word_of_var);
    return parse_reference(parse, inner, false, HIST_ONX_VAR_NOT_FOUND_ERROR,
                           &action->tracked);
}

static int hist_parse_action(struct hist_parser *parse, struct hist_word word)
{
    struct hist_more *more = more_of(parse);
    struct hist_word rest = word, handler = hist_next_word(&rest, '('), inner;
    struct hist_action *action;
    int err;

    if (!more)
        return -ENOMEM;
    action = &more->action[more->action_count];
    action->text = keep_text(more, word);
    inner = hist_next_word(&rest, ')');
    if (!rest.p)
        return hist_refuse(parse, HIST_NO_CLOSING_PAREN_ERROR, inner);
    action->handler = hist_word_is(handler, "onmatch") ? HIST_ONMATCH
                      : hist_word_is(handler, "onmax") ? HIST_ONMAX
                                                       : HIST_ONCHANGE;
    err = action->handler == HIST_ONMATCH ? parse_match(parse, inner)
                                          : parse_tracked(parse, action, inner);
    if (err)
        return err;
    if (!hist_word_begins(rest, "."))
        return hist_refuse(parse, HIST_ACTION_NOT_FOUND_ERROR, rest);
    err = parse_what(parse, action, hist_word_behind(rest, 1));
    if (err)
        return err;
    if (action->synth)
        action->synth->users++;
    more->action_count++;
    return 0;
}

int hist_parse_actions(struct hist_parser *parse)
{
    int err = 0;

    for (unsigned i = 0; !err && i < parse->action_count; i++)
        err = hist_parse_action(parse, parse->action[i]);
    if (!err && parse->hist->more)
        err = check_references(parse);
    return err;
}
