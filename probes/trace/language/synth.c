/* synth.c - makes the definition of a synthetic event from its line. */
#include "probes/trace/language/synth.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"
#include "probes/trace/language/fetch_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define CODE_LEN 3 /* load, store, end */

/* A definition with all that it points to, so that def_free() frees a single piece. */
struct synth_def {
    struct def def;
    struct fetch_arg args[HIST_ARGS_MAX];
    struct fetch_insn code[HIST_ARGS_MAX][CODE_LEN];
    char name[DEF_NAME_MAX];
    char *room; /* of texts, which is free */
    char text[];
};

struct synth_parser {
    struct synth_def *to;
    const char *line;
    struct synth_error *error;
};

const char *synth_error_text(enum synth_error_id id)
{
#define SYNTH_TEXT_ROW(name, text) [SYNTH_##name##_ERROR] = (text),
    static const char *const texts[] = { SYNTH_ERRORS(SYNTH_TEXT_ROW) };

    return (size_t)id < ARRAY_LEN(texts) ? texts[id] : "";
}

static int refuse_synth(struct synth_parser *parse, enum synth_error_id id,
                        const char *at)
{
    *parse->error = (struct synth_error){ id, (unsigned)(at - parse->line) };
    return -EINVAL;
}

/* type_of - find the type that C calls @name. Return: NULL: there is none. */
static const struct fetch_type *type_of(const char *name, size_t len)
{
    static const char *const names[][2] = {
        { "int", "s32" },           { "unsigned int", "u32" }, { "long", "s64" },
        { "unsigned long", "u64" }, { "pid_t", "s32" },        { "bool", "u8" },
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_is(names[i][0], name, len))
            return fetch_type_find(names[i][1], 3);
    return len >= 2 && strchr("us", *name) && isdigit((unsigned char)name[1])
               ? fetch_type_find(name, len)
               : NULL;
}

static const char *synth_keep(struct synth_def *to, const char *text, size_t len)
{
    char *kept = to->room;

    memcpy(kept, text, len);
    kept[len] = '\0';
    to->room += len + 1;
    return kept;
}

static void add_synth_field(struct synth_def *to, const char *name, size_t len,
                            const char *type_name, size_t type_len,
                            const struct fetch_type *type)
{
    unsigned i = to->def.arg_count++;
    bool is_text = type->kind == FETCH_STRING;

    to->code[i][0] = (struct fetch_insn){ .op = FETCH_LOAD_ENTRY, .value = i };
    to->code[i][1] =
        (struct fetch_insn){ .op = is_text ? FETCH_STORE_STRING : FETCH_STORE,
                             .size = type->size };
    to->args[i] = (struct fetch_arg){ .name = synth_keep(to, name, len),
                                      .text = synth_keep(to, type_name, type_len),
                                      .type = type,
                                      .code = to->code[i],
                                      .offset = to->def.args_size };
    to->def.args_size += (unsigned)fetch_fixed_size(&to->args[i]);
    to->def.has_strings |= is_text;
}

/* parse_synth_field - read "TYPE FIELD" of @len characters. FIELD is the last word. */
static int parse_synth_field(struct synth_parser *parse, const char *p, size_t len)
{
    const struct fetch_type *type;
    const char *name, *bracket;
    size_t type_len, name_len;

    len = cut_blanks(p, len);
    name = p + len;
    while (name > p && !isspace((unsigned char)name[-1]))
        name--;
    type_len = cut_blanks(p, (size_t)(name - p));
    if (!type_len)
        return refuse_synth(parse, SYNTH_INVALID_FIELD_ERROR, p);
    name_len = (size_t)(p + len - name);
    bracket = memchr(name, '[', name_len);
    if (bracket)
        name_len = (size_t)(bracket - name);
    if (!fetch_name_is_good(name, name_len))
        return refuse_synth(parse, SYNTH_BAD_NAME_ERROR, name);
    if (bracket && p[len - 1] != ']')
        return refuse_synth(parse, SYNTH_INVALID_ARRAY_SPEC_ERROR, name);
    if (type_len == 8 && !memcmp(p, "unsigned", 8))
        return refuse_synth(parse, SYNTH_INCOMPLETE_TYPE_ERROR, p);
    if (bracket && type_len == 4 && !memcmp(p, "char", 4))
        type = fetch_type_find("string", 6);
    else
        type = bracket ? NULL : type_of(p, type_len);
    if (!type)
        return refuse_synth(parse, SYNTH_INVALID_TYPE_ERROR, p);
    if (parse->to->def.arg_count == HIST_ARGS_MAX)
        return refuse_synth(parse, SYNTH_TOO_MANY_FIELDS_ERROR, p);
    add_synth_field(parse->to, name, name_len, p, type_len, type);
    return 0;
}

int synth_name(const char *line, char *buf)
{
    size_t len;

    line = skip_blanks(line);
    line += *line == '!';
    len = strcspn(line, " \t\n;");
    if (len >= DEF_NAME_MAX || !fetch_name_is_good(line, len))
        return -EINVAL;
    memcpy(buf, line, len);
    buf[len] = '\0';
    return 0;
}

static int parse_synth_line(struct synth_parser *parse)
{
    const char *p = skip_blanks(parse->line);

    if (synth_name(p, parse->to->name))
        return refuse_synth(parse, SYNTH_BAD_NAME_ERROR, p);
    p = skip_blanks(p + strlen(parse->to->name));
    p = skip_blanks(p + (*p == ';'));
    if (!*p)
        return refuse_synth(parse, SYNTH_INVALID_CMD_ERROR, parse->line);
    while (*p) {
        size_t len = strcspn(p, ";");
        int err = parse_synth_field(parse, p, len);

        if (err)
            return err;
        p += len;
        p = skip_blanks(p + (*p == ';'));
    }
    return 0;
}

int synth_parse(const struct def_host *host, const char *line, struct def **def,
                struct synth_error *error)
{
    size_t size = sizeof(struct synth_def) + 2 * strlen(line) + 2;
    struct synth_def *to = host->alloc(size);
    struct synth_parser parse = { to, line, error };
    int err;

    *error = (struct synth_error){ 0 };
    if (!to)
        return -ENOMEM;
    memset(to, 0, size);
    to->room = to->text;
    to->def.group = SYNTH_GROUP;
    to->def.event = to->name;
    to->def.args = to->args;
    to->def.is_synth = true;
    err = parse_synth_line(&parse);
    if (err)
        host->free(to);
    else
        *def = &to->def;
    return err;
}

size_t synth_print(const struct def *def, char *buf, size_t size)
{
    size_t len = (size_t)snprintf(buf, size, "%s\t", def->event);

    for (unsigned i = 0; i < def->arg_count; i++)
        len += (size_t)snprintf(len < size ? buf + len : NULL,
                                len < size ? size - len : 0, "%s%s %s%s", i ? "; " : "",
                                def->args[i].text, def->args[i].name,
                                def->args[i].type->kind == FETCH_STRING ? "[]" : "");
    return len;
}
