/* format.c - prints descriptions of layouts. Most offsets and sizes are computed from the
 * structs that are described.
 */
#include "probes/trace/ring/format.h"
#include "probes/trace/ring/page.h"

#include <string.h>

/* ---- pages ---- */

void format_page(const struct print *p)
{
    print_text(p, "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n");
    print_text(p, "\tfield: local_t commit;\toffset:%zu;\tsize:8;\tsigned:1;\n",
               offsetof(struct ring_page, commit));
    print_text(p, "\tfield: int overwrite;\toffset:%zu;\tsize:1;\tsigned:1;\n",
               offsetof(struct ring_page, commit));
    print_text(p, "\tfield: char data;\toffset:%zu;\tsize:%d;\tsigned:1;\n",
               offsetof(struct ring_page, data), RING_DATA_LEN);
}

void format_header(const struct print *p)
{
    print_text(p, "# compressed entry header\n"
                  "\ttype_len    :    5 bits\n"
                  "\ttime_delta  :   27 bits\n"
                  "\tarray       :   32 bits\n\n");
    print_text(p,
               "\tpadding     : type == %d\n"
               "\ttime_extend : type == %d\n"
               "\ttime_stamp : type == %d\n"
               "\tdata max type_len  == %d\n",
               RING_TYPE_PADDING, RING_TYPE_EXTEND, RING_TYPE_STAMP, RING_TYPE_DATA_MAX);
}

/* ---- fields ---- */

static void field(const struct print *p, const char *decl, const char *name, size_t off,
                  size_t size, bool is_signed)
{
    print_text(p, "\tfield:%s %s;\toffset:%zu;\tsize:%zu;\tsigned:%d;\n", decl, name, off,
               size, is_signed);
}

#define FIELD(p, type, member, decl, name, is_signed)                                    \
    field(p, decl, name, offsetof(type, member), sizeof(((type *)0)->member), is_signed)

static void common_fields(const struct print *p)
{
    FIELD(p, struct record_head, type, "unsigned short", "common_type", false);
    FIELD(p, struct record_head, flags, "unsigned char", "common_flags", false);
    FIELD(p, struct record_head, preempt_count, "unsigned char", "common_preempt_count",
          false);
    FIELD(p, struct record_head, pid, "int", "common_pid", true);
    print_text(p, "\n");
}

static void head_fields(const struct print *p, const struct event *event)
{
    switch (event->shape) {
    case EVENT_PROBE:
        FIELD(p, struct record_probe, ip, "unsigned long", "__probe_ip", false);
        break;
    case EVENT_RETURN:
        FIELD(p, struct record_return, func, "unsigned long", "__probe_func", false);
        FIELD(p, struct record_return, ret_ip, "unsigned long", "__probe_ret_ip", false);
        break;
    case EVENT_SYNTH:
        break;
    case EVENT_TEXT:
        FIELD(p, struct record_text, ip, "unsigned long", "ip", false);
        field(p, "char", "buf[]", offsetof(struct record_text, text), 0, true);
        break;
    case EVENT_STACK:
        FIELD(p, struct record_stack, size, "int", "size", true);
        field(p, "unsigned long", "caller[]", offsetof(struct record_stack, caller), 0,
              false);
        break;
    }
}

static bool is_string_arg(const struct fetch_arg *arg)
{
    return arg->type->kind == FETCH_STRING;
}

static void arg_field(const struct print *p, const struct fetch_arg *arg, size_t head)
{
    const char *decl = arg->type->field;

    print_text(p, "\tfield:%s", decl);
    if (arg->count && is_string_arg(arg))
        print_text(p, "[%u]", arg->count);
    print_text(p, " %s%s;", arg->name, arg->count && !is_string_arg(arg) ? "[]" : "");
    print_text(p, "\toffset:%zu;\tsize:%zu;\tsigned:%d;\n", head + arg->offset,
               fetch_fixed_size(arg),
               is_string_arg(arg) || arg->type->kind == FETCH_SIGNED);
}

/* ---- print fmt ---- */

static const char *format_conversion(const struct fetch_type *type)
{
    switch (type->kind) {
    case FETCH_UNSIGNED:
        return type->size == 8 ? "%Lu" : "%u";
    case FETCH_SIGNED:
        return type->size == 8 ? "%Ld" : "%d";
    case FETCH_HEX:
        return type->size == 8 ? "0x%Lx" : "0x%x";
    case FETCH_CHAR:
        return "'%c'";
    case FETCH_SYMBOL:
        return "%pS";
    case FETCH_STRING:
        break;
    }
    return "\\\"%s\\\"";
}

static void arg_conversion(const struct print *p, const struct fetch_arg *arg)
{
    print_text(p, " %s=", arg->name);
    if (!arg->count) {
        print_text(p, "%s", format_conversion(arg->type));
        return;
    }
    for (unsigned i = 0; i < arg->count; i++)
        print_text(p, "%c%s", i ? ',' : '{', format_conversion(arg->type));
    print_text(p, "}");
}

static void arg_value(const struct print *p, const struct fetch_arg *arg)
{
    if (!arg->count) {
        print_text(p, is_string_arg(arg) ? ", __get_str(%s)" : ", REC->%s", arg->name);
        return;
    }
    for (unsigned i = 0; i < arg->count; i++)
        print_text(p, is_string_arg(arg) ? ", __get_str(%s[%u])" : ", REC->%s[%u]",
                   arg->name, i);
}

/* Linux's number. Tools find the stack by the field's name, not by this format. */
#define STACK_FMT_PLACES 8

static void print_stack_fmt(const struct print *p)
{
    print_text(p, "\"");
    for (unsigned i = 0; i < STACK_FMT_PLACES; i++)
        print_text(p, "\\t=> %%ps\\n");
    print_text(p, "\"");
    for (unsigned i = 0; i < STACK_FMT_PLACES; i++)
        print_text(p, ", (void *)REC->caller[%u]", i);
}

static void print_fmt(const struct print *p, const struct event *event)
{
    static const char *const heads[][2] = {
        [EVENT_PROBE] = { "(%lx)", ", REC->__probe_ip" },
        [EVENT_RETURN] = { "(%lx <- %lx)", ", REC->__probe_func, REC->__probe_ret_ip" },
        [EVENT_SYNTH] = { "", "" },
    };

    if (event->shape == EVENT_TEXT) {
        print_text(p, "\"%%ps: %%s\", (void *)REC->ip, REC->buf");
        return;
    }
    if (event->shape == EVENT_STACK) {
        print_stack_fmt(p);
        return;
    }
    print_text(p, "\"%s", heads[event->shape][0]);
    for (unsigned i = 0; i < event->arg_count; i++)
        arg_conversion(p, &event->args[i]);
    print_text(p, "\"%s", heads[event->shape][1]);
    for (unsigned i = 0; i < event->arg_count; i++)
        arg_value(p, &event->args[i]);
}

void format_event(const struct print *p, const struct event *event)
{
    print_text(p, "name: %s\nID: %u\nformat:\n", event->name, event->id);
    common_fields(p);
    head_fields(p, event);
    for (unsigned i = 0; i < event->arg_count; i++)
        arg_field(p, &event->args[i], event_head(event));
    print_text(p, "\nprint fmt: ");
    print_fmt(p, event);
    print_text(p, "\n");
}
