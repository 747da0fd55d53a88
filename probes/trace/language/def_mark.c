/* def_mark.c - makes the fields of a marker's event from the marker's format. */
#include "probes/trace/language/def_mark.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "libc/include/extra.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define CODE_LEN 3 /* load, store, end */

struct mark_field {
    const char *name; /* @name_len bytes, in the format */
    size_t name_len;
    const struct fetch_type *type;
};

/* ---- the conversions of a format ---- */

static const struct fetch_type *number_type(char kind, unsigned size)
{
    char name[4];
    int len = snprintf(name, sizeof(name), "%c%u", kind, 8 * size);

    return fetch_type_find(name, (size_t)len);
}

/* take_size - read the letters that give the size of an integer, such as "hh" or "l".
 * Return: the size in bytes.
 */
static unsigned take_size(const char **p)
{
    unsigned size = 4;

    for (; **p && strchr("hljzt", **p); ++*p)
        size = **p == 'h' ? size / 2 : 8;
    return size;
}

/* take_type - read a conversion. Return: its type; NULL: markers cannot have it. */
static const struct fetch_type *take_type(const char **p)
{
    unsigned size;

    *p += strspn(*p, "-+ #0123456789.");
    size = take_size(p);
    switch (*(*p)++) {
    case 'd':
    case 'i':
        return number_type('s', size);
    case 'u':
        return number_type('u', size);
    case 'x':
    case 'X':
    case 'o':
        return number_type('x', size);
    case 'p':
        return number_type('x', 8);
    case 'c':
        return fetch_type_find("char", 4);
    case 's':
        return fetch_type_find("string", 6);
    default:
        return NULL;
    }
}

/* take_field_name - find the last word in [@from, @end). A 0x at the end belongs to the
 * number that follows, and is no word.
 */
static void take_field_name(const char *from, const char *end, struct mark_field *field)
{
    if (end - from >= 2 && !memcmp(end - 2, "0x", 2))
        end -= 2;
    while (end > from && !is_word_char(end[-1]))
        end--;
    field->name = end;
    while (field->name > from && is_word_char(field->name[-1]))
        field->name--;
    field->name_len = (size_t)(end - field->name);
}

/* fields_of - find the fields of @format. Return: how many; -EINVAL. */
static int fields_of(const char *format, struct mark_field *fields)
{
    const char *from = format, *p = format;
    int count = 0;

    while ((p = strchr(p, '%')) != NULL) {
        if (p[1] == '%') {
            p += 2;
            continue;
        }
        if (count == DEF_MARK_ARGS_MAX)
            return -EINVAL;
        take_field_name(from, p, &fields[count]);
        p++;
        fields[count].type = take_type(&p);
        if (!fields[count++].type)
            return -EINVAL;
        from = p;
    }
    return count;
}

/* ---- the definition ---- */

/* A definition with all that it points to, so that def_free() frees a single piece. */
struct mark_def {
    struct def def;
    struct fetch_arg args[DEF_MARK_ARGS_MAX];
    struct fetch_insn code[DEF_MARK_ARGS_MAX][CODE_LEN];
    char names[DEF_MARK_ARGS_MAX][FETCH_NAME_MAX + 1];
    char name[DEF_NAME_MAX];
};

static bool is_name_taken(const struct mark_def *m, const char *name)
{
    for (unsigned i = 0; i < m->def.arg_count; i++)
        if (!strcmp(m->args[i].name, name))
            return true;
    return false;
}

static void name_field(struct mark_def *m, const struct mark_field *field)
{
    unsigned i = m->def.arg_count;
    char *name = m->names[i];

    if (field->name_len && field->name_len <= FETCH_NAME_MAX &&
        !isdigit((unsigned char)*field->name))
        memcpy(name, field->name, field->name_len);
    if (!*name || is_name_taken(m, name))
        snprintf(name, sizeof(m->names[i]), "arg%u", i + 1);
}

static void add_field(struct mark_def *m, const struct mark_field *field)
{
    unsigned i = m->def.arg_count;
    bool is_string = field->type->kind == FETCH_STRING;

    name_field(m, field);
    m->code[i][0] = (struct fetch_insn){ .op = FETCH_LOAD_ENTRY, .value = i };
    m->code[i][1] =
        (struct fetch_insn){ .op = is_string ? FETCH_STORE_STRING : FETCH_STORE,
                             .size = field->type->size };
    m->args[i] = (struct fetch_arg){ .name = m->names[i],
                                     .text = field->type->name,
                                     .type = field->type,
                                     .code = m->code[i],
                                     .offset = m->def.args_size };
    m->def.args_size += (unsigned)fetch_fixed_size(&m->args[i]);
    m->def.has_strings |= is_string;
    m->def.arg_count++;
}

int def_of_mark(const struct def_host *host, const char *name, const char *format,
                struct def **def)
{
    struct mark_field fields[DEF_MARK_ARGS_MAX];
    int count = fields_of(format, fields);
    struct mark_def *m;

    if (count < 0 || strlen(name) >= DEF_NAME_MAX)
        return -EINVAL;
    m = host->alloc(sizeof(*m));
    if (!m)
        return -ENOMEM;
    memset(m, 0, sizeof(*m));
    memcpy(m->name, name, strlen(name) + 1);
    m->def.group = DEF_MARK_GROUP;
    m->def.event = m->name;
    m->def.args = m->args;
    for (int i = 0; i < count; i++)
        add_field(m, &fields[i]);
    *def = &m->def;
    return 0;
}
