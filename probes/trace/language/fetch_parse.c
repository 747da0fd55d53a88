/* fetch_parse.c - the compiler of fetch.h.
 *
 * The order of the checks is Linux's, because the order decides which of several mistakes
 * is reported. The place of the caret is Linux's as well, with two oddities that scripts
 * may rely on. After a dereference has been read, columns are counted from the character
 * behind its parenthesis. And the u of +u8() is not counted.
 */
#include "probes/trace/language/fetch_parse.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/base/registers.h"
#include "libc/include/extra.h"

#include <ctype.h>
#include <string.h>

/* The last instruction of a program is reserved for FETCH_END. */
#define LAST (FETCH_OPS_MAX - 1)

struct fetch_parser {
    struct fetch_context *context;
    struct trace_error *error;
    struct fetch_insn *code;
    unsigned at;     /* index of the instruction that is being made, or was made last */
    unsigned column; /* of the caret, if no better place is known */
    bool is_inner;   /* the expression is within a dereference */
    bool is_named;   /* the loaded value is a parameter, which was given by its name */
    unsigned param;  /* is_named: the parameter, from 0 */
};

/* A piece of the text. */
struct piece {
    const char *p;
    size_t len;
};

static int fetch_refuse(struct fetch_parser *parse, enum trace_error_id id,
                        unsigned column, int err)
{
    *parse->error = (struct trace_error){ .err = err, .id = id, .column = column };
    return err;
}

static bool piece_is(struct piece piece, const char *text)
{
    return str_is(text, piece.p, piece.len);
}

static bool begins(struct piece piece, const char *text)
{
    return str_begins(text, piece.p, piece.len);
}

static struct piece behind(struct piece piece, size_t skip)
{
    return (struct piece){ piece.p + skip, piece.len - skip };
}

static char first(struct piece piece)
{
    return piece.len ? *piece.p : '\0';
}

static struct fetch_insn *now(struct fetch_parser *parse)
{
    return &parse->code[parse->at];
}

static void make(struct fetch_parser *parse, enum fetch_op op, int64_t value)
{
    *now(parse) = (struct fetch_insn){ .op = (uint8_t)op, .value = value };
}

/* parse_next - go on to another instruction; false: the program would be too long. */
static bool parse_next(struct fetch_parser *parse)
{
    return ++parse->at < LAST;
}

/* ---- loads ---- */

/* register_offset - find the register @name in the image. It knows those of Linux's names
 * that the image has.
 */
static int register_offset(struct piece name)
{
#define ROW(field) { #field, offsetof(struct pt_regs, field) },
#define BY_FIELD(name, field, number, gdb, dwarf) ROW(field)
    static const struct {
        const char *name;
        size_t offset;
    } registers[] = { REGISTERS(BY_FIELD) ROW(ip) ROW(cs) ROW(orig_ax) ROW(ss)
                          ROW(flags) };

    for (size_t i = 0; i < ARRAY_LEN(registers); i++)
        if (piece_is(name, registers[i].name))
            return (int)registers[i].offset;
    return -EINVAL;
}

static int parse_register(struct fetch_parser *parse, struct piece text)
{
    int offset = register_offset(behind(text, 1));

    if (parse->context->is_watch)
        return fetch_refuse(parse, TRACE_BAD_VAR, parse->column, -EINVAL);
    if (offset < 0)
        return fetch_refuse(parse, TRACE_BAD_REG_NAME, parse->column, -EINVAL);
    make(parse, FETCH_LOAD_REG, offset);
    return 0;
}

/* decimal - read a number of 64 bits that has decimal digits only. */
static bool decimal(struct piece text, uint64_t *out)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)text.p[i]) ||
            __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.p[i] - '0'), &number))
            return false;
    }
    *out = number;
    return text.len > 0;
}

static int parse_stack(struct fetch_parser *parse, struct piece number)
{
    uint64_t word;

    if (!number.len) {
        make(parse, FETCH_LOAD_SP, 0);
        return 0;
    }
    if (!decimal(number, &word))
        return fetch_refuse(parse, TRACE_BAD_VAR, parse->column, -EINVAL);
    if (word > parse->context->stack_words)
        return fetch_refuse(parse, TRACE_BAD_STACK_NUM, parse->column, -EINVAL);
    make(parse, FETCH_LOAD_STACK, (int64_t)word);
    return 0;
}

/* entry_index - return the index of argument @number among the words that are saved at
 * the entry, and add the argument if it is new. Return: -ENOSPC: no index is left.
 */
static int entry_index(struct fetch_context *context, unsigned number)
{
    for (unsigned i = 0; i < context->entry_count; i++)
        if (context->entry[i] == number)
            return (int)i;
    if (context->entry_count == FETCH_ENTRY_MAX)
        return -ENOSPC;
    context->entry[context->entry_count] = (uint16_t)number;
    return (int)context->entry_count++;
}

static int parse_numbered_argument(struct fetch_parser *parse, unsigned i)
{
    int index;

    if (!parse->context->is_return) {
        make(parse, FETCH_LOAD_ARG, i);
        return 0;
    }
    index = entry_index(parse->context, i);
    if (index < 0)
        return fetch_refuse(parse, TRACE_TOO_MANY_EARGS, parse->column, -E2BIG);
    make(parse, FETCH_LOAD_ENTRY, index);
    return 0;
}

/* has_parameter - tell whether the function has parameter @n, from 1. If the debug data
 * names no parameter of the function, it may have any.
 */
static bool has_parameter(const struct fetch_context *context, uint64_t n)
{
    const char *name;

    if (!context->param || !context->function ||
        !context->param(context->function, 0, &name))
        return true;
    return n <= FETCH_ARGS_MAX &&
           context->param(context->function, (unsigned)n - 1, &name) > 0;
}

static int parse_argument(struct fetch_parser *parse, struct piece number)
{
    struct fetch_context *context = parse->context;
    uint64_t n;

    if (!decimal(number, &n) || (context->is_return && (!context->entry_args || !n)))
        return fetch_refuse(parse, TRACE_BAD_VAR, parse->column, -EINVAL);
    if (context->is_return && !parse->is_inner && !has_parameter(context, n))
        return fetch_refuse(parse, TRACE_NO_BTFARG, parse->column, -ENOENT);
    if (!context->is_return && !context->at_entry)
        return fetch_refuse(parse, TRACE_NOFENTRY_ARGS, parse->column, -EINVAL);
    if (!n || n > context->stack_words)
        return fetch_refuse(parse, TRACE_BAD_ARG_NUM, parse->column, -EINVAL);
    return parse_numbered_argument(parse, (unsigned)n - 1);
}

/* parse_parameter - load the parameter of the function that is named @text. */
static int parse_parameter(struct fetch_parser *parse, struct piece text)
{
    struct fetch_context *context = parse->context;
    const char *name;
    size_t len;

    if (!context->param || !context->function ||
        (context->is_return && !context->entry_args))
        return fetch_refuse(parse, TRACE_BAD_FETCH_ARG, parse->column, -EINVAL);
    for (unsigned i = 0; (len = context->param(context->function, i, &name)) != 0; i++)
        if (len == text.len && !memcmp(name, text.p, len)) {
            parse->is_named = true;
            parse->param = i;
            return parse_numbered_argument(parse, i);
        }
    return fetch_refuse(parse, TRACE_BAD_FETCH_ARG, parse->column, -EINVAL);
}

/* $ns, which Linux does not have, is the time that the function took. */
static int load_duration(struct fetch_parser *parse)
{
    int index = entry_index(parse->context, FETCH_ENTRY_TIME);

    if (index < 0)
        return fetch_refuse(parse, TRACE_TOO_MANY_EARGS, parse->column, -E2BIG);
    make(parse, FETCH_LOAD_NS, index);
    return 0;
}

/* parse_of_watch - load a variable of a watch. Linux has three: the watched address, the
 * value at that address, and the name of the thread.
 */
static int parse_of_watch(struct fetch_parser *parse, struct piece name)
{
    if (piece_is(name, "comm") || piece_is(name, "COMM")) {
        make(parse, FETCH_LOAD_COMM, 0);
        return 0;
    }
    if (!piece_is(name, "addr") && !piece_is(name, "value"))
        return fetch_refuse(parse, TRACE_BAD_VAR, parse->column, -EINVAL);
    make(parse, FETCH_LOAD_ADDR, 0);
    if (piece_is(name, "addr"))
        return 0;
    if (!parse_next(parse))
        return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -EINVAL);
    make(parse, FETCH_DEREF, 0);
    return 0;
}

/* load_symbol - make an instruction for the name of a symbol and an instruction for its
 * address, which the caller may change, or add to it what reads the memory there.
 */
static int load_symbol(struct fetch_parser *parse, struct piece name)
{
    uintptr_t addr = 0;
    int err = parse->context->symbol(parse->context->arg, name.p, name.len, &addr);

    if (err && !parse->context->symbol_err)
        parse->context->symbol_err = err;
    *now(parse) = (struct fetch_insn){ .op = FETCH_NAME,
                                       .len = (uint16_t)name.len,
                                       .text = name.p };
    if (!parse_next(parse))
        return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -EINVAL);
    make(parse, FETCH_LOAD_VALUE, (int64_t)addr);
    return 0;
}

/* load_depth - $depth(FUNCTION), which Linux does not have: how deep in a call of it. */
static int load_depth(struct fetch_parser *parse, struct piece text)
{
    uint64_t addr;
    int err;

    if (!text.len || text.p[text.len - 1] != ')')
        return fetch_refuse(parse, TRACE_BAD_VAR, parse->column, -EINVAL);
    text.len--;
    if (!isdigit((unsigned char)first(text))) {
        err = load_symbol(parse, text);
        now(parse)->op = FETCH_LOAD_DEPTH;
        parse->context->within = (uintptr_t)now(parse)->value;
        return err;
    }
    err = fetch_number(text.p, text.len, &addr);
    if (err)
        return fetch_refuse(parse, TRACE_BAD_MEM_ADDR, parse->column, err);
    make(parse, FETCH_LOAD_DEPTH, (int64_t)addr);
    parse->context->within = addr;
    return 0;
}

static int parse_variable(struct fetch_parser *parse, struct piece text)
{
    struct piece name = behind(text, 1);

    if (parse->context->is_watch)
        return parse_of_watch(parse, name);
    if (piece_is(name, "retval")) {
        if (!parse->context->is_return)
            return fetch_refuse(parse, TRACE_RETVAL_ON_PROBE, parse->column, -EINVAL);
        make(parse, FETCH_LOAD_REG, offsetof(struct pt_regs, ax));
        return 0;
    }
    if (piece_is(name, "ns") && parse->context->is_return && parse->context->entry_args)
        return load_duration(parse);
    if (begins(name, "depth(") && parse->context->is_return && parse->context->entry_args)
        return load_depth(parse, behind(name, strlen("depth(")));
    if (piece_is(name, "comm") || piece_is(name, "COMM")) {
        make(parse, FETCH_LOAD_COMM, 0);
        return 0;
    }
    if (begins(name, "stack"))
        return parse_stack(parse, behind(name, 5));
    if (begins(name, "arg"))
        return parse_argument(parse, behind(name, 3));
    return fetch_refuse(parse, TRACE_BAD_VAR, parse->column, -EINVAL);
}

static int parse_address(struct fetch_parser *parse, struct piece text)
{
    struct piece place = behind(text, 1);
    uint64_t addr;
    int err;

    if (first(place) == '+')
        return fetch_refuse(parse, TRACE_FILE_ON_KPROBE, parse->column, -EINVAL);
    if (isdigit((unsigned char)first(place))) {
        err = fetch_number(place.p, place.len, &addr);
        if (err)
            return fetch_refuse(parse, TRACE_BAD_MEM_ADDR, parse->column, err);
        make(parse, FETCH_LOAD_VALUE, (int64_t)addr);
    } else {
        err = load_symbol(parse, place);
        if (err)
            return err;
    }
    if (!parse_next(parse))
        return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -EINVAL);
    make(parse, FETCH_DEREF, 0);
    return 0;
}

static int parse_constant(struct fetch_parser *parse, struct piece text)
{
    struct piece value = behind(text, 1);
    uint64_t number = 0;
    int err = -EINVAL;

    if (first(value) == '"') {
        value = behind(value, 1);
        if (!value.len || value.p[value.len - 1] != '"')
            return fetch_refuse(parse, TRACE_IMMSTR_NO_CLOSE,
                                parse->column + 2 + (unsigned)value.len, -EINVAL);
        *now(parse) = (struct fetch_insn){ .op = FETCH_LOAD_TEXT,
                                           .len = (uint16_t)(value.len - 1),
                                           .text = value.p };
        return 0;
    }
    if (isdigit((unsigned char)first(value)))
        err = fetch_number(value.p, value.len, &number);
    else if (first(value) == '-')
        err = fetch_signed(value.p, value.len, (int64_t *)&number);
    else if (first(value) == '+')
        err = fetch_signed(value.p + 1, value.len - 1, (int64_t *)&number);
    if (err)
        return fetch_refuse(parse, TRACE_BAD_IMM, parse->column + 1, err);
    make(parse, FETCH_LOAD_VALUE, (int64_t)number);
    return 0;
}

/* ---- programs of gdb ---- */

static const char agent_word[] = "agent(";

static int fetch_hex_digit(char c)
{
    if (isdigit((unsigned char)c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* parse_agent - read "agent(260004...27)", a program of gdb in hexadecimal. Its bytes go
 * behind the room for FETCH_OPS_MAX instructions.
 */
static int parse_agent(struct fetch_parser *parse, struct piece text)
{
    struct piece hex = behind(text, sizeof(agent_word) - 1);
    uint8_t *bytes = (uint8_t *)(parse->code + FETCH_OPS_MAX);
    size_t len = hex.len / 2;

    if (hex.len % 2 != 1 || hex.p[hex.len - 1] != ')' || len > AGENT_CODE_MAX)
        return fetch_refuse(parse, TRACE_BAD_AGENT, parse->column, -EINVAL);
    for (size_t i = 0; i < len; i++) {
        int high = fetch_hex_digit(hex.p[2 * i]), low = fetch_hex_digit(hex.p[2 * i + 1]);

        if (high < 0 || low < 0)
            return fetch_refuse(
                parse, TRACE_BAD_AGENT,
                parse->column + (unsigned)(sizeof(agent_word) - 1 + 2 * i), -EINVAL);
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (agent_verify(bytes, len, AGENT_VALUE, NULL))
        return fetch_refuse(parse, TRACE_BAD_AGENT, parse->column, -EINVAL);
    make(parse, FETCH_LOAD_AGENT, FETCH_OPS_MAX - parse->at);
    now(parse)->len = (uint16_t)len;
    return 0;
}

/* ---- dereferences ---- */

static int parse_expression(struct fetch_parser *parse, struct piece text);

/* parse_magnitude - read the digits behind a '-'. *@value: set to the negative number. */
static int parse_magnitude(struct piece digits, int64_t *value)
{
    uint64_t magnitude;
    int err;

    if (!isdigit((unsigned char)first(digits)))
        return -EINVAL;
    err = fetch_number(digits.p, digits.len, &magnitude);
    if (err)
        return err;
    if (magnitude > (uint64_t)INT64_MAX + 1)
        return -ERANGE;
    *value = (int64_t)(0 - magnitude);
    return 0;
}

static int parse_deref(struct fetch_parser *parse, struct piece text)
{
    bool user = text.len > 1 && text.p[1] == 'u';
    bool negative = first(text) == '-';
    struct piece offset = behind(text, 1 + user), inner;
    const char *open = memchr(offset.p, '(', offset.len);
    size_t close;
    int64_t value;
    unsigned column;
    int err;

    if (!open)
        return fetch_refuse(parse, TRACE_DEREF_NEED_BRACE, parse->column, -EINVAL);
    inner = behind(offset, (size_t)(open + 1 - offset.p));
    offset.len = (size_t)(open - offset.p);
    err = negative ? parse_magnitude(offset, &value)
                   : fetch_signed(offset.p, offset.len, &value);
    if (err)
        return fetch_refuse(parse, TRACE_BAD_DEREF_OFFS, parse->column, err);

    column = parse->column + (unsigned)offset.len + 2;
    parse->column = column;
    for (close = inner.len; close && inner.p[close - 1] != ')'; close--)
        ;
    if (!close)
        return fetch_refuse(parse, TRACE_DEREF_OPEN_BRACE, column + (unsigned)inner.len,
                            -EINVAL);
    inner.len = close - 1;
    parse->is_inner = true;
    err = parse_expression(parse, inner);
    parse->is_named = false;
    if (err)
        return err;
    parse->column = column;
    if (now(parse)->op == FETCH_LOAD_COMM || now(parse)->op == FETCH_LOAD_TEXT)
        return fetch_refuse(parse, TRACE_COMM_CANT_DEREF, column, -EINVAL);
    if (!parse_next(parse))
        return fetch_refuse(parse, TRACE_TOO_MANY_OPS, column, -EINVAL);
    make(parse, user ? FETCH_DEREF_USER : FETCH_DEREF, value);
    return 0;
}

/* The recursion has a bound: each level uses at least three characters of the text. A
 * text is at most FETCH_TEXT_MAX characters long, and no level is opened within a program
 * of gdb, which may be longer.
 */
static int parse_expression(struct fetch_parser *parse, struct piece text)
{
    switch (first(text)) {
    case '$':
        return parse_variable(parse, text);
    case '%':
        return parse_register(parse, text);
    case '@':
        return parse_address(parse, text);
    case '+':
    case '-':
        return parse_deref(parse, text);
    case '\\':
        return parse_constant(parse, text);
    default:
        if (begins(text, agent_word))
            return parse_agent(parse, text);
        return parse_parameter(parse, text);
    }
}

/* ---- types ---- */

static int parse_array(struct fetch_parser *parse, const char *text, struct piece *type,
                       struct fetch_arg *arg)
{
    const char *open = memchr(type->p, '[', type->len), *close;
    size_t len;
    uint64_t count;
    unsigned column;

    if (!open)
        return 0;
    len = type->len - (size_t)(open + 1 - type->p);
    column = parse->column + (unsigned)(open + 1 - text);
    close = memchr(open + 1, ']', len);
    if (!close)
        return fetch_refuse(parse, TRACE_ARRAY_NO_CLOSE, column + (unsigned)len, -EINVAL);
    if (close[1])
        return fetch_refuse(parse, TRACE_BAD_ARRAY_SUFFIX,
                            parse->column + (unsigned)(close + 1 - text), -EINVAL);
    if (fetch_number(open + 1, (size_t)(close - open - 1), &count) || !count ||
        count > UINT32_MAX)
        return fetch_refuse(parse, TRACE_BAD_ARRAY_NUM, column, -EINVAL);
    if (count > FETCH_ARRAY_MAX)
        return fetch_refuse(parse, TRACE_ARRAY_TOO_BIG, column, -EINVAL);
    arg->count = (uint16_t)count;
    type->len = (size_t)(open - type->p);
    return 0;
}

/* parse_type - find the type of the argument. Without a colon the type is x64, or string
 * for an expression that can only be a string.
 * @type: the text behind the colon; p is NULL if there is no colon
 */
static int parse_type(struct fetch_parser *parse, const char *text,
                      struct piece expression, struct piece *type, struct fetch_arg *arg)
{
    unsigned column = parse->column;
    int err;

    if (type->p) {
        column += (unsigned)(type->p - text);
        err = parse_array(parse, text, type, arg);
        if (err)
            return err;
    }
    if (piece_is(expression, "$comm") || piece_is(expression, "$COMM") ||
        begins(expression, "\\\"")) {
        if (arg->count || (type->p && !piece_is(*type, "string")))
            return fetch_refuse(parse, TRACE_NEED_STRING_TYPE, column, -EINVAL);
        arg->type = fetch_type_find("string", 6);
        return 0;
    }
    arg->type = type->p ? fetch_type_find(type->p, type->len) : fetch_type_find("x64", 3);
    if (!arg->type)
        return fetch_refuse(parse, TRACE_BAD_TYPE, column, -EINVAL);
    return 0;
}

/* ---- stores ---- */

static bool is_symstr(const struct fetch_arg *arg)
{
    return !strcmp(arg->type->name, "symstr");
}

/* string_is_possible - tell whether the value of the last instruction @op can be stored
 * as a string: the value has to lie in memory, or to be a text itself.
 */
static bool string_is_possible(enum fetch_op op, const struct fetch_arg *arg)
{
    switch (op) {
    case FETCH_DEREF:
        return true;
    case FETCH_DEREF_USER:
    case FETCH_LOAD_VALUE:
    case FETCH_LOAD_COMM:
    case FETCH_LOAD_TEXT:
        return !is_symstr(arg);
    case FETCH_LOAD_SP:
    case FETCH_LOAD_ENTRY:
        return false;
    default:
        return is_symstr(arg);
    }
}

/* parse_stored_string - make the store of a string. If the last instruction is a
 * dereference, the store replaces it. In two cases the dereference stays, because it
 * reads an address: in an array of strings the address of the string, for a symstr that
 * of the symbol.
 */
static int parse_stored_string(struct fetch_parser *parse, const struct fetch_arg *arg,
                               unsigned column)
{
    enum fetch_op last = now(parse)->op;
    bool user = last == FETCH_DEREF_USER || !strcmp(arg->type->name, "ustring");
    int64_t offset = now(parse)->value;

    if (!string_is_possible(last, arg))
        return fetch_refuse(parse,
                            is_symstr(arg) ? TRACE_BAD_SYMSTRING : TRACE_BAD_STRING,
                            column, -EINVAL);
    if (is_symstr(arg) || arg->count ||
        (last != FETCH_DEREF && last != FETCH_DEREF_USER)) {
        if (!parse_next(parse))
            return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -EINVAL);
        offset = 0;
    }
    if (is_symstr(arg))
        make(parse, FETCH_STORE_SYMBOL, 0);
    else
        make(parse, user ? FETCH_STORE_STRING_USER : FETCH_STORE_STRING, offset);
    return 0;
}

/* read_named - add a dereference if a named parameter is to be stored as a string: the
 * string is the characters that the parameter points to. The type of a named parameter is
 * known, so a parameter that does not point to characters is refused.
 */
static int read_named(struct fetch_parser *parse, const struct fetch_arg *arg)
{
    const struct fetch_context *context = parse->context;

    if (!parse->is_named || is_symstr(arg))
        return 0;
    if (!context->param_is_text(context->function, parse->param))
        return fetch_refuse(parse, TRACE_BAD_TYPE4STR, parse->column, -EINVAL);
    if (!parse_next(parse))
        return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -E2BIG);
    make(parse, FETCH_DEREF, 0);
    return 0;
}

static int store_value(struct fetch_parser *parse, const struct fetch_arg *arg)
{
    enum fetch_op last = now(parse)->op;

    if (last == FETCH_DEREF || last == FETCH_DEREF_USER) {
        make(parse, last == FETCH_DEREF ? FETCH_STORE_MEM : FETCH_STORE_MEM_USER,
             now(parse)->value);
    } else {
        if (!parse_next(parse))
            return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -E2BIG);
        make(parse, FETCH_STORE, 0);
    }
    now(parse)->size = arg->type->size;
    return 0;
}

/* parse_leading_number - read the number at the start of @text, in the base that its prefix
 * gives.
 * Return: how many characters the number has.
 */
static size_t parse_leading_number(struct piece text, uint64_t *out)
{
    size_t len = text.len;

    while (len && fetch_number(text.p, len, out))
        len--;
    if (!len)
        *out = 0;
    return first(text) == '+' ? 0 : len;
}

static int parse_bits(struct fetch_parser *parse, struct piece type,
                      const struct fetch_arg *arg, unsigned column)
{
    unsigned bits = arg->type->size * 8u;
    struct piece rest = behind(type, 1);
    uint64_t width, low;
    size_t len;

    rest = behind(rest, parse_leading_number(rest, &width));
    if (!width || first(rest) != '@')
        return fetch_refuse(parse, TRACE_BAD_BITFIELD, column, -EINVAL);
    rest = behind(rest, 1);
    len = parse_leading_number(rest, &low);
    if (!len || first(behind(rest, len)) != '/' || width > bits || low > bits - width ||
        !parse_next(parse))
        return fetch_refuse(parse, TRACE_BAD_BITFIELD, column, -EINVAL);
    make(parse, FETCH_BITS, (int64_t)(low | width << 8));
    now(parse)->size = arg->type->size;
    return 0;
}

static int parse_store(struct fetch_parser *parse, struct piece type,
                       struct fetch_arg *arg, unsigned type_offset)
{
    bool is_string = arg->type->kind == FETCH_STRING;
    unsigned column = parse->column + type_offset;
    enum fetch_op store;
    int err;

    err = is_string ? read_named(parse, arg) : 0;
    if (err)
        return err;
    err = is_string ? parse_stored_string(parse, arg, column) : store_value(parse, arg);
    if (err)
        return err;
    store = now(parse)->op;
    if (first(type) == 'b') {
        err = parse_bits(parse, type, arg, column);
        if (err)
            return err;
    }
    if (arg->count) {
        if (store == FETCH_STORE || store == FETCH_STORE_SYMBOL ||
            (is_string && parse->at && parse->code[parse->at - 1].op != FETCH_DEREF &&
             parse->code[parse->at - 1].op != FETCH_DEREF_USER))
            return fetch_refuse(parse, TRACE_BAD_STRING, column, -EINVAL);
        if (!parse_next(parse))
            return fetch_refuse(parse, TRACE_TOO_MANY_OPS, parse->column, -E2BIG);
        make(parse, FETCH_REPEAT, arg->count);
    }
    parse->code[parse->at + 1] = (struct fetch_insn){ .op = FETCH_END };
    return 0;
}

int fetch_parse(struct fetch_context *context, const char *text, unsigned column,
                struct fetch_arg *arg, struct fetch_insn *code, struct trace_error *error)
{
    struct fetch_parser parse = {
        .context = context, .error = error, .code = code, .column = column
    };
    struct piece expression = { text, strlen(text) }, type = { NULL, 0 };
    const char *colon, *agent;
    int err;

    agent = strstr(text, agent_word);
    if (expression.len >
        (agent && agent - text <= FETCH_TEXT_MAX ? FETCH_TEXT_LONG : FETCH_TEXT_MAX))
        return fetch_refuse(&parse, TRACE_ARG_TOO_LONG, column, -E2BIG);
    if (!expression.len)
        return fetch_refuse(&parse, TRACE_NO_ARG_BODY, column, -EINVAL);
    arg->text = text;
    arg->code = code;
    arg->count = 0;
    colon = strchr(text, ':');
    if (colon) {
        type = behind(expression, (size_t)(colon + 1 - text));
        expression.len = (size_t)(colon - text);
    }
    err = parse_type(&parse, text, expression, &type, arg);
    if (err)
        return err;
    err = parse_expression(&parse, expression);
    if (err)
        return err;
    return parse_store(&parse, type, arg, type.p ? (unsigned)(type.p - text) : 0);
}
