/* filter_parse.c - the compiler of filter.h.
 *
 * Comparisons become steps, in the order in which they are written. A part of the filter has
 * exits, where the answer is known to be yes or no but not yet which step is next. The exits
 * of a part are a list, which runs through the very words that are to be filled in.
 *
 * What is refused, with which errno and at which column, is Linux's; also that a && or || at
 * the end is no mistake.
 */
#include "probes/trace/filter_parts.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "probes/trace/fetch_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_LEN 24 /* characters of a number, and one more */

struct filter_parser {
    const struct filter_field *fields;
    size_t field_count;
    const char *text, *at; /* the next character */
    struct filter *filter;
    size_t room;    /* steps that there is memory for */
    char *patterns; /* where the next one goes */
    unsigned depth;
    struct filter_error *error;
};

/* Both lists of exits of a part. An exit is a step times 2, plus the answer. */
#define LAST_EXIT 0xffffu
struct exits {
    uint16_t list[2];
    bool is_empty; /* there is no comparison in this part */
};

const char *filter_error_text(enum filter_error_id id)
{
#define FILTER_TEXT_ROW(name, text) [FILTER_##name##_ERROR] = (text),
    static const char *const texts[] = { FILTER_ERRORS(FILTER_TEXT_ROW) };

    return (size_t)id < ARRAY_LEN(texts) ? texts[id] : "";
}

static int filter_refuse(struct filter_parser *parse, enum filter_error_id id,
                         size_t column, int err)
{
    *parse->error = (struct filter_error){ err, id, (unsigned)column };
    return err;
}

/* ---- before anything is parsed: do quotes and parentheses pair? ---- */

/* The position of the '(' that has no ')': found from behind. */
static size_t open_one(const char *text, size_t end)
{
    unsigned closed = 0;
    char quote = '\0';

    while (end--) {
        char c = text[end];

        if (quote) {
            if (c == quote)
                quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == ')') {
            closed++;
        } else if (c == '(' && !closed--) {
            return end;
        }
    }
    return 0;
}

/* pairs - also counts what can be a comparison at most. */
static int pairs(struct filter_parser *parse, size_t *comparisons)
{
    const char *text = parse->text;
    size_t open = 0, quote_at = 0, i;
    char quote = '\0';

    *comparisons = 1;
    for (i = 0; text[i]; i++) {
        if (quote) {
            if (text[i] == quote)
                quote = '\0';
            continue;
        }
        if (text[i] == '"' || text[i] == '\'') {
            quote = text[i];
            quote_at = i;
        } else if (text[i] == '(') {
            open++;
        } else if (text[i] == ')' && !open--) {
            return filter_refuse(parse, FILTER_TOO_MANY_CLOSE_ERROR, i, -EPERM);
        } else if (strchr("&|", text[i]) && text[i + 1] == text[i]) {
            ++*comparisons;
        }
    }
    if (quote)
        return filter_refuse(parse, FILTER_MISSING_QUOTE_ERROR, quote_at, -ESRCH);
    if (open)
        return filter_refuse(parse, FILTER_TOO_MANY_OPEN_ERROR, open_one(text, i),
                             -ENOENT);
    return 0;
}

static void filter_skip_blanks(struct filter_parser *parse)
{
    while (isspace((unsigned char)*parse->at))
        parse->at++;
}

/* ---- a comparison ---- */

/* Columns are counted from the character behind the first one of the comparison. */
static size_t column(const struct filter_parser *parse, const char *at)
{
    return (size_t)(at - parse->text) + 1;
}

static int parse_field(struct filter_parser *parse, struct filter_step *step)
{
    static const char user_string[] = ".ustring";
    const char *name = parse->at;
    const struct filter_field *field;

    while (isalnum((unsigned char)*parse->at) || *parse->at == '_')
        parse->at++;
    if (parse->at == name)
        return filter_refuse(parse, FILTER_ERRNO_ERROR, 0, -EPERM);
    field = filter_field_find(parse->fields, parse->field_count, name,
                              (size_t)(parse->at - name));
    if (!field)
        return filter_refuse(parse, FILTER_FIELD_NOT_FOUND_ERROR,
                             column(parse, parse->at), -EINVAL);
    step->field = *field;
    step->field.name = NULL;
    /* Says that a pointer is one into a user's memory. No field holds such a pointer: the
     * string itself is in the record.
     */
    if (!strncmp(parse->at, user_string, sizeof(user_string) - 1))
        parse->at += sizeof(user_string) - 1;
    filter_skip_blanks(parse);
    return 0;
}

static int parse_op(struct filter_parser *parse, struct filter_step *step)
{
    static const char ops[FILTER_OPS][3] = {
        [FILTER_GLOB] = "~", [FILTER_NE] = "!=", [FILTER_EQ] = "==", [FILTER_LE] = "<=",
        [FILTER_LT] = "<",   [FILTER_GE] = ">=", [FILTER_GT] = ">",  [FILTER_AND] = "&",
    };

    for (int op = 0; op < FILTER_OPS; op++)
        if (!strncmp(parse->at, ops[op], strlen(ops[op]))) {
            step->op = (enum filter_op)op;
            parse->at += strlen(ops[op]);
            filter_skip_blanks(parse);
            return 0;
        }
    return filter_refuse(parse, FILTER_INVALID_OP_ERROR, column(parse, parse->at),
                         -EINVAL);
}

static bool is_string_field(const struct filter_field *field)
{
    return field->kind != FILTER_NUMBER && field->kind != FILTER_CPU;
}

static int parse_string(struct filter_parser *parse, struct filter_step *step)
{
    const char *open = parse->at, *close;
    size_t len;

    if (step->op != FILTER_GLOB && step->op != FILTER_EQ && step->op != FILTER_NE)
        return filter_refuse(parse, FILTER_ILLEGAL_FIELD_OP_ERROR, column(parse, open),
                             -EINVAL);
    if (!is_string_field(&step->field))
        return filter_refuse(parse, FILTER_EXPECT_DIGIT_ERROR, column(parse, open),
                             -EINVAL);
    close = strchr(open + 1, *open);
    if (!close)
        return filter_refuse(parse, FILTER_MISSING_QUOTE_ERROR,
                             column(parse, open + strlen(open)), -EINVAL);
    parse->at = close + 1;
    open++;
    len = (size_t)(close - open);
    if (len >= FILTER_STRING_MAX)
        return filter_refuse(parse, FILTER_OPERAND_TOO_LONG_ERROR, column(parse, close),
                             -EINVAL);
    step->negate = step->op == FILTER_NE;
    if (step->op == FILTER_GLOB && *open == '!') {
        step->negate = true;
        open++;
        len--;
    }
    step->pattern = parse->patterns;
    memcpy(parse->patterns, open, len);
    parse->patterns[len] = '\0';
    parse->patterns += len + 1;
    return 0;
}

static bool size_can_be_compared(const struct filter_field *field)
{
    return field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8;
}

static int parse_number(struct filter_parser *parse, struct filter_step *step)
{
    const char *number = parse->at;
    size_t len;
    int err;

    if (is_string_field(&step->field))
        return filter_refuse(parse, FILTER_EXPECT_STRING_ERROR, column(parse, number),
                             -EINVAL);
    if (step->op == FILTER_GLOB || !size_can_be_compared(&step->field))
        return filter_refuse(parse, FILTER_ILLEGAL_FIELD_OP_ERROR, column(parse, number),
                             -EINVAL);
    parse->at += *number == '-';
    while (isalnum((unsigned char)*parse->at))
        parse->at++;
    len = (size_t)(parse->at - number);
    if (len >= NUMBER_LEN)
        return filter_refuse(parse, FILTER_OPERAND_TOO_LONG_ERROR,
                             column(parse, parse->at), -EINVAL);
    err = step->field.is_signed ? fetch_signed(number, len, (int64_t *)&step->value)
                                : fetch_number(number, len, &step->value);
    if (err)
        return filter_refuse(parse, FILTER_ILLEGAL_INTVAL_ERROR, column(parse, number),
                             -EINVAL);
    step->negate = step->op == FILTER_NE;
    return 0;
}

static int parse_comparison(struct filter_parser *parse, struct exits *exits)
{
    size_t number = parse->filter->count;
    struct filter_step *step = &parse->filter->step[number];
    int err;

    if (number == parse->room)
        return filter_refuse(parse, FILTER_TOO_MANY_PREDS_ERROR,
                             (size_t)(parse->at - parse->text), -EINVAL);
    *step = (struct filter_step){ .next = { LAST_EXIT, LAST_EXIT } };
    err = parse_field(parse, step);
    if (err)
        return err;
    err = parse_op(parse, step);
    if (err)
        return err;
    if (*parse->at == '"' || *parse->at == '\'')
        err = parse_string(parse, step);
    else if (isdigit((unsigned char)*parse->at) || *parse->at == '-')
        err = parse_number(parse, step);
    else
        err = filter_refuse(parse, FILTER_INVALID_VALUE_ERROR, column(parse, parse->at),
                            -EINVAL);
    if (err)
        return err;
    parse->filter->count++;
    *exits =
        (struct exits){ .list = { (uint16_t)(2 * number), (uint16_t)(2 * number + 1) } };
    return 0;
}

/* ---- how comparisons are joined ---- */

static uint16_t *exit_word(struct filter_parser *parse, uint16_t exit)
{
    return &parse->filter->step[exit / 2].next[exit % 2];
}

/* lead_to - all exits of a list. */
static void lead_to(struct filter_parser *parse, uint16_t list, uint16_t step)
{
    while (list != LAST_EXIT) {
        uint16_t *word = exit_word(parse, list);

        list = *word;
        *word = step;
    }
}

static uint16_t exits_append(struct filter_parser *parse, uint16_t list, uint16_t more)
{
    uint16_t *end = &list;

    while (*end != LAST_EXIT)
        end = exit_word(parse, *end);
    *end = more;
    return list;
}

static int parse_or(struct filter_parser *parse, struct exits *exits);

/* A '!' before an operator belongs to no term. */
static bool is_not(const char *at)
{
    return *at == '!' && at[1] != '=' && at[1] != '~';
}

static int parse_parenthesis(struct filter_parser *parse, struct exits *exits)
{
    int err;

    if (++parse->depth > FILTER_DEPTH_MAX)
        return filter_refuse(parse, FILTER_TOO_MANY_OPEN_ERROR,
                             (size_t)(parse->at - parse->text), -EINVAL);
    parse->at++;
    err = parse_or(parse, exits);
    if (err)
        return err;
    parse->at++; /* the ')': pairs() has seen that it is there */
    parse->depth--;
    return 0;
}

static int parse_term(struct filter_parser *parse, struct exits *exits)
{
    bool invert = false;
    int err;

    for (filter_skip_blanks(parse); is_not(parse->at); filter_skip_blanks(parse)) {
        invert = !invert;
        parse->at++;
    }
    *exits = (struct exits){ .list = { LAST_EXIT, LAST_EXIT }, .is_empty = true };
    if (!*parse->at)
        return 0;
    err = *parse->at == '(' ? parse_parenthesis(parse, exits)
                            : parse_comparison(parse, exits);
    if (err)
        return err;
    if (invert) {
        uint16_t yes = exits->list[1];

        exits->list[1] = exits->list[0];
        exits->list[0] = yes;
    }
    filter_skip_blanks(parse);
    if (*parse->at && *parse->at != ')' && strncmp(parse->at, "&&", 2) != 0 &&
        strncmp(parse->at, "||", 2) != 0)
        return filter_refuse(parse, FILTER_TOO_MANY_PREDS_ERROR,
                             (size_t)(parse->at - parse->text), -EPERM);
    return 0;
}

/* join - join the parts @left and @right of an operator, with the result in @left. If the
 * left part's answer is @goes_on, the right part is evaluated and decides; any other
 * answer of the left part is the answer of the whole.
 * @right_step: where the right part begins
 */
static void join(struct filter_parser *parse, struct exits *left,
                 const struct exits *right, size_t right_step, bool goes_on)
{
    if (right->is_empty)
        return;
    lead_to(parse, left->list[goes_on], (uint16_t)right_step);
    left->list[goes_on] = right->list[goes_on];
    left->list[!goes_on] =
        exits_append(parse, left->list[!goes_on], right->list[!goes_on]);
}

static int parse_and(struct filter_parser *parse, struct exits *exits)
{
    struct exits right;
    int err = parse_term(parse, exits);

    while (!err && *parse->at == '&') {
        size_t step = parse->filter->count;

        parse->at += 2;
        err = parse_term(parse, &right);
        if (!err)
            join(parse, exits, &right, step, true);
    }
    return err;
}

static int parse_or(struct filter_parser *parse, struct exits *exits)
{
    struct exits right;
    int err = parse_and(parse, exits);

    while (!err && *parse->at == '|') {
        size_t step = parse->filter->count;

        parse->at += 2;
        err = parse_and(parse, &right);
        if (!err)
            join(parse, exits, &right, step, false);
    }
    return err;
}

/* ---- the whole ---- */

static int parse_all(struct filter_parser *parse)
{
    struct exits exits;
    int err = parse_or(parse, &exits);

    if (err)
        return err;
    if (exits.is_empty)
        return filter_refuse(parse, FILTER_NO_FILTER_ERROR,
                             (size_t)(parse->at - parse->text), -EINVAL);
    lead_to(parse, exits.list[1], FILTER_YES);
    lead_to(parse, exits.list[0], FILTER_NO);
    return 0;
}

int filter_parse(const struct def_host *host, const char *text,
                 const struct filter_field *fields, size_t count, struct filter **out,
                 struct filter_error *error)
{
    struct filter_parser parse = {
        .fields = fields, .field_count = count, .text = text, .at = text, .error = error
    };
    size_t len = strlen(text), head;
    char *copy;
    int err;

    *out = NULL;
    *error = (struct filter_error){ 0 };
    if (len >= FILTER_TEXT_MAX)
        return filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -EINVAL);
    err = pairs(&parse, &parse.room);
    if (err)
        return err;
    filter_skip_blanks(&parse);
    if (!*parse.at)
        return filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -EINVAL);
    /* Patterns are pieces of the text, and each takes a NUL in the place of two quotes. */
    head = sizeof(*parse.filter) + parse.room * sizeof(struct filter_step);
    parse.filter = host->alloc(head + 2 * (len + 1));
    if (!parse.filter)
        return filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -ENOMEM);
    copy = (char *)parse.filter + head;
    memcpy(copy, text, len + 1);
    parse.patterns = copy + len + 1;
    parse.filter->text = copy;
    parse.filter->count = 0;
    err = parse_all(&parse);
    if (err) {
        host->free(parse.filter);
        return err;
    }
    *out = parse.filter;
    return 0;
}

void filter_free(const struct def_host *host, struct filter *filter)
{
    host->free(filter);
}

const char *filter_text(const struct filter *filter)
{
    return filter->text;
}

/* The caret stays at the text, and is one further left than in the log of errors. */
size_t filter_block(const char *text, const struct filter_error *error, char *buf,
                    size_t size)
{
    size_t at = error->column < strlen(text) ? error->column : strlen(text);

    if (error->id == FILTER_ERRNO_ERROR)
        return (size_t)snprintf(buf, size, "%s\nError: (0)\n", text);
    return (size_t)snprintf(buf, size, "%s\n%*s^\nparse_error: %s\n", text, (int)at, "",
                            filter_error_text(error->id));
}
