/* filter_parse.c - the compiler of filter.h.
 *
 * Comparisons become steps, in the order in which they are written. An exit of a part of
 * the filter is a word next[] for which the parser knows the answer of the part, yes or
 * no, but not yet the step that follows. The exits with the same answer are a linked
 * list: until an exit is filled in, its word holds the next exit of the list.
 *
 * The mistakes that are refused, their errno and their column are Linux's. As on Linux, a
 * && or || at the end is not a mistake.
 */
#include "probes/trace/language/filter_parts.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_LEN 24 /* characters of a number, and one more */

struct filter_parser {
    const struct filter_field *fields;
    size_t field_count;
    const char *text, *at; /* the next character */
    struct filter *filter;
    const struct def_host *host;
    size_t room;          /* steps that there is memory for */
    char *patterns;       /* where the next pattern is stored */
    struct level *levels; /* one more than the deepest nesting of parentheses */
    size_t level_count;
    struct filter_error *error;
};

/* The exits of a part: list[1] for the answer yes, list[0] for no. The number of an exit
 * is its step times 2, plus the answer.
 */
#define LAST_EXIT 0xffffu
struct exits {
    uint16_t list[2];
    bool is_empty; /* there is no comparison in this part */
};

/* The inside of a parenthesis, as far as it has been read. It consists of parts with ||
 * between them. The last part consists of terms with && between them.
 */
struct level {
    bool invert; /* there was a '!' in front of the parenthesis */
    bool has_or, has_and;
    struct exits all, last; /* of the parts before the last ||, and of the last part */
    size_t step, last_step; /* the first step of the level, and of the last part */
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

/* ---- before parsing: check that quotes and parentheses pair ---- */

/* open_one - find the last '(' that has no ')', by reading the text backwards. */
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

static bool is_double(const char *at)
{
    return (*at == '&' || *at == '|') && at[1] == *at;
}

/* pairs - check that quotes and parentheses pair, and count levels and steps. The number
 * of steps is an upper limit: it counts the pieces between parentheses and operators. As
 * on Linux, the second character of an operator counts as a part of the next piece.
 */
static int pairs(struct filter_parser *parse)
{
    const char *text = parse->text;
    size_t open = 0, quote_at = 0, i;
    bool in_piece = false;
    char quote = '\0';

    parse->level_count = 1;
    for (i = 0; text[i]; i++) {
        bool ends_piece = !quote && (strchr("()", text[i]) || is_double(text + i));

        if (!isspace((unsigned char)text[i])) {
            parse->room += !ends_piece && !in_piece;
            in_piece = !ends_piece;
        }
        if (quote) {
            if (text[i] == quote)
                quote = '\0';
        } else if (text[i] == '"' || text[i] == '\'') {
            quote = text[i];
            quote_at = i;
        } else if (text[i] == '(') {
            if (++open == parse->level_count)
                parse->level_count++;
        } else if (text[i] == ')' && !open--) {
            return filter_refuse(parse, FILTER_TOO_MANY_CLOSE_ERROR, i, -EPERM);
        }
    }
    if (quote)
        return filter_refuse(parse, FILTER_MISSING_QUOTE_ERROR, quote_at, -ESRCH);
    if (open)
        return filter_refuse(parse, FILTER_TOO_MANY_OPEN_ERROR, open_one(text, i),
                             -ENOENT);
    return 0;
}

/* ---- a comparison ---- */

/* column - return the column of @at for an error in a comparison. Linux counts it from
 * the character behind the first one of the comparison, so it is greater by 1 than the
 * index.
 */
static size_t column(const struct filter_parser *parse, const char *at)
{
    return (size_t)(at - parse->text) + 1;
}

/* filter_take - go behind @word if it is the next text. Return: whether it is. */
static bool filter_take(struct filter_parser *parse, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(parse->at, word, len) != 0)
        return false;
    parse->at += len;
    return true;
}

/* is_name_byte - Linux uses its isalnum(), which also accepts the letters of Latin-1. */
static bool is_name_byte(unsigned char c)
{
    return isalnum(c) || c == '_' || (c >= 0xc0 && c != 0xd7 && c != 0xf7);
}

static int parse_field(struct filter_parser *parse, struct filter_step *step)
{
    const char *name = parse->at;
    const struct filter_field *field;

    while (is_name_byte((unsigned char)*parse->at))
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
    /* .ustring says that the field is a pointer into user memory. It changes nothing
     * here, because no field is such a pointer: the record holds the string itself.
     */
    step->of_function =
        !filter_take(parse, ".ustring") && filter_take(parse, ".function");
    parse->at = skip_blanks(parse->at);
    return 0;
}

static int parse_op(struct filter_parser *parse, struct filter_step *step)
{
    static const char ops[FILTER_OPS][3] = {
        [FILTER_GLOB] = "~", [FILTER_NE] = "!=", [FILTER_EQ] = "==", [FILTER_LE] = "<=",
        [FILTER_LT] = "<",   [FILTER_GE] = ">=", [FILTER_GT] = ">",  [FILTER_AND] = "&",
    };

    for (int op = 0; op < FILTER_OPS; op++)
        if (ops[op][0] && filter_take(parse, ops[op])) {
            step->op = (enum filter_op)op;
            parse->at = skip_blanks(parse->at);
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

/* field_sized - an operand that does not fit in the size of its field loses its upper bits,
 * as on Linux. Return: it, as filter_field_number() returns the value of the field.
 */
static uint64_t field_sized(const struct filter_field *field, uint64_t operand)
{
    unsigned unused = 64 - 8u * field->size;

    operand <<= unused;
    return field->is_signed ? (uint64_t)((int64_t)operand >> unused) : operand >> unused;
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
    step->value = field_sized(&step->field, step->value);
    step->negate = step->op == FILTER_NE;
    return 0;
}

/* parse_function - read the function of `FIELD.function == vfs_read`, which holds if the
 * value is an address within the function. The filter gives the function by its name, or
 * by any address within it.
 */
static int parse_function(struct filter_parser *parse, struct filter_step *step)
{
    const struct def_host *host = parse->host;
    const char *name = parse->at;
    uintptr_t addr = 0, start, end;
    size_t len = strcspn(name, " \t\n)");
    bool found;

    if (step->field.kind != FILTER_NUMBER || step->field.size != sizeof(addr))
        return filter_refuse(parse, FILTER_ILLEGAL_FIELD_OP_ERROR, column(parse, name),
                             -EINVAL);
    if (step->op != FILTER_EQ && step->op != FILTER_NE)
        return filter_refuse(parse, FILTER_INVALID_OP_ERROR, column(parse, name),
                             -EINVAL);
    parse->at += len;
    if (isdigit((unsigned char)*name))
        found = !fetch_number(name, len, &addr);
    else
        found = host->symbol(NULL, 0, name, len, &addr) > 0;
    if (!found || !host->function || !host->function(addr, &start, &end))
        return filter_refuse(parse, FILTER_NO_FUNCTION_ERROR, column(parse, parse->at),
                             -EINVAL);
    step->negate = step->op == FILTER_NE;
    step->op = FILTER_WITHIN;
    step->value = start;
    step->end = end;
    return 0;
}

/* cpu_list - set step->value to the bits of a list such as "0,2-3". Return: false: @text
 * is not a list, or names CPUs that do not exist.
 */
static bool cpu_list(const struct def_host *host, struct filter_step *step,
                     const char *text, size_t len)
{
    unsigned cpus = host->cpus ? host->cpus() : 64;

    step->value = 0;
    while (len) {
        size_t part = 0, dash;
        uint64_t from, to;

        while (part < len && text[part] != ',')
            part++;
        for (dash = 0; dash < part && text[dash] != '-'; dash++)
            ;
        if (fetch_number(text, dash, &from))
            return false;
        to = from;
        if (dash < part && fetch_number(text + dash + 1, part - dash - 1, &to))
            return false;
        if (from > to || to >= cpus || to >= 64)
            return false;
        step->value |= (UINT64_MAX >> (63 - (to - from))) << from;
        text += part + (part < len);
        len -= part + (part < len);
    }
    return step->value != 0;
}

/* parse_cpus - read `CPUS{LIST}`. The comparison holds if the value is the number of a
 * CPU in the list. With `==` it never holds if the list has several CPUs, as on Linux.
 */
static int parse_cpus(struct filter_parser *parse, struct filter_step *step)
{
    const char *list, *end, *word = parse->at - (sizeof("CPUS") - 1);

    if (is_string_field(&step->field) || !size_can_be_compared(&step->field) ||
        (step->op != FILTER_EQ && step->op != FILTER_NE && step->op != FILTER_AND))
        return filter_refuse(parse, FILTER_ILLEGAL_FIELD_OP_ERROR, column(parse, word),
                             -EINVAL);
    list = parse->at + 1;
    if (*parse->at != '{')
        return filter_refuse(parse, FILTER_MISSING_BRACE_OPEN_ERROR, column(parse, list),
                             -EINVAL);
    end = strchr(list, '}');
    if (!end)
        return filter_refuse(parse, FILTER_MISSING_BRACE_CLOSE_ERROR,
                             column(parse, list + strlen(list)), -EINVAL);
    if (!cpu_list(parse->host, step, list, (size_t)(end - list)))
        return filter_refuse(parse, FILTER_INVALID_CPULIST_ERROR, column(parse, end),
                             -EINVAL);
    parse->at = end + 1;
    step->negate = step->op == FILTER_NE;
    if (step->op != FILTER_AND && (step->value & (step->value - 1)))
        step->value = 0;
    step->op = FILTER_CPUS;
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
    if (step->of_function)
        err = parse_function(parse, step);
    else if (filter_take(parse, "CPUS"))
        err = parse_cpus(parse, step);
    else if (*parse->at == '"' || *parse->at == '\'')
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

/* ---- joining comparisons ---- */

static uint16_t *exit_word(struct filter_parser *parse, uint16_t exit)
{
    return &parse->filter->step[exit / 2].next[exit % 2];
}

/* lead_to - let all exits of a list lead to @step. */
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

/* exits_join - join the parts @left and @right of an operator, with the result in @left. If
 * the left part's answer is @goes_on, the right part is evaluated and decides; any other
 * answer of the left part is the answer of the whole.
 * @right_step: where the right part begins
 */
static void exits_join(struct filter_parser *parse, struct exits *left,
                       const struct exits *right, size_t right_step, bool goes_on)
{
    if (right->is_empty)
        return;
    lead_to(parse, left->list[goes_on], (uint16_t)right_step);
    left->list[goes_on] = right->list[goes_on];
    left->list[!goes_on] =
        exits_append(parse, left->list[!goes_on], right->list[!goes_on]);
}

/* is_not - tell whether a '!' negates a term. In front of = or ~ it does not. */
static bool is_not(const char *at)
{
    return *at == '!' && at[1] != '=' && at[1] != '~';
}

static void level_open(struct filter_parser *parse, struct level *level, bool invert)
{
    size_t step = parse->filter->count;

    *level = (struct level){ .invert = invert, .step = step, .last_step = step };
}

/* parse_begin - read the '!' and '(' in front of a comparison.
 * @invert: set if a '!' inverts the answer of the comparison
 *
 * Return: the level of the comparison, which each '(' makes an inner one.
 */
static struct level *parse_begin(struct filter_parser *parse, struct level *level,
                                 bool *invert)
{
    *invert = false;
    for (;; parse->at++) {
        parse->at = skip_blanks(parse->at);
        if (is_not(parse->at)) {
            *invert = !*invert;
        } else if (*parse->at == '(') {
            level_open(parse, ++level, *invert);
            *invert = false;
        } else {
            return level;
        }
    }
}

static void turn_round(struct exits *exits)
{
    uint16_t yes = exits->list[1];

    exits->list[1] = exits->list[0];
    exits->list[0] = yes;
}

/* add_term - add a term to the last part of @level. Between terms there is a &&. */
static void add_term(struct filter_parser *parse, struct level *level,
                     const struct exits *term, size_t step)
{
    if (level->has_and) {
        exits_join(parse, &level->last, term, step, true);
        return;
    }
    level->last = *term;
    level->last_step = step;
    level->has_and = true;
}

/* end_part - join the last part of @level to the parts before it. This happens at a ||,
 * and at the end of the level.
 */
static void end_part(struct filter_parser *parse, struct level *level)
{
    if (level->has_or)
        exits_join(parse, &level->all, &level->last, level->last_step, false);
    else
        level->all = level->last;
    level->has_or = true;
    level->has_and = false;
}

/* parse_close - read a ')': the level ends, and becomes a term of the outer level.
 * Return: the outer level.
 */
static struct level *parse_close(struct filter_parser *parse, struct level *level)
{
    end_part(parse, level);
    if (level->invert)
        turn_round(&level->all);
    add_term(parse, level - 1, &level->all, level->step);
    parse->at++;
    return level - 1;
}

/* parse_terms - read the whole text. Each nested parenthesis takes a level in memory and
 * no call, so the stack does not limit the nesting.
 */
static int parse_terms(struct filter_parser *parse, struct exits *exits)
{
    struct level *level = parse->levels;
    bool invert;
    int err;

    level_open(parse, level, false);
    for (;;) {
        struct exits term = { .list = { LAST_EXIT, LAST_EXIT }, .is_empty = true };
        size_t step;

        level = parse_begin(parse, level, &invert);
        step = parse->filter->count;
        err = *parse->at ? parse_comparison(parse, &term) : 0;
        if (err)
            return err;
        if (invert)
            turn_round(&term);
        add_term(parse, level, &term, step);
        for (parse->at = skip_blanks(parse->at);
             *parse->at == ')' && level > parse->levels;
             parse->at = skip_blanks(parse->at))
            level = parse_close(parse, level);
        if (!*parse->at)
            break;
        if (!is_double(parse->at))
            return filter_refuse(parse, FILTER_TOO_MANY_PREDS_ERROR,
                                 (size_t)(parse->at - parse->text), -EPERM);
        if (*parse->at == '|')
            end_part(parse, level);
        parse->at += 2;
    }
    end_part(parse, level);
    *exits = level->all;
    return 0;
}

/* ---- the whole ---- */

static int parse_all(struct filter_parser *parse)
{
    struct exits exits = { 0 };
    int err = parse_terms(parse, &exits);

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
        .host = host,
        .fields = fields,
        .field_count = count,
        .text = text,
        .at = text,
        .error = error,
    };
    size_t len = strlen(text), head;
    char *copy;
    int err;

    *out = NULL;
    *error = (struct filter_error){ 0 };
    if (len >= FILTER_TEXT_MAX)
        return filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -EINVAL);
    err = pairs(&parse);
    if (err)
        return err;
    if (!parse.room)
        return filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -EINVAL);
    /* A pattern is a piece of the text, with a NUL for its two quotes. So all patterns
     * fit in as many bytes as the text.
     */
    head = sizeof(*parse.filter) + parse.room * sizeof(struct filter_step);
    parse.filter = host->alloc(head + 2 * (len + 1));
    if (!parse.filter)
        return filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -ENOMEM);
    copy = (char *)parse.filter + head;
    memcpy(copy, text, len + 1);
    parse.patterns = copy + len + 1;
    parse.filter->text = copy;
    parse.filter->count = 0;
    parse.levels = host->alloc(parse.level_count * sizeof(*parse.levels));
    err = parse.levels ? parse_all(&parse)
                       : filter_refuse(&parse, FILTER_ERRNO_ERROR, 0, -ENOMEM);
    if (parse.levels)
        host->free(parse.levels);
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

/* The caret has the same column as in the log of errors, but never a column behind the
 * end of the text.
 */
size_t filter_block(const char *text, const struct filter_error *error, char *buf,
                    size_t size)
{
    size_t at = error->column < strlen(text) ? error->column : strlen(text);

    if (error->id == FILTER_ERRNO_ERROR)
        return (size_t)snprintf(buf, size, "%s\nError: (0)\n", text);
    return (size_t)snprintf(buf, size, "%s\n%*s^\nparse_error: %s\n", text, (int)at, "",
                            filter_error_text(error->id));
}
