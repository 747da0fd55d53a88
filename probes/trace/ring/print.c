/* print.c - prints records as lines of text. The layout of each line is Linux's. */
#include "probes/trace/ring/print.h"
#include "probes/trace/ring/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SYMBOL_LEN 160
#define COMM_LEN 16

static void print_string(const struct print *p, const char *text)
{
    p->write(p->to, text, strlen(text));
}

void print_text(const struct print *p, const char *fmt, ...)
{
    char text[256];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len > 0)
        p->write(p->to, text,
                 (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

/* ---- lines that are not records ---- */

static const char columns[] =
    "#                                _-----=> irqs-off/BH-disabled\n"
    "#                               / _----=> need-resched\n"
    "#                              | / _---=> hardirq/softirq\n"
    "#                              || / _--=> preempt-depth\n"
    "#                              ||| / _-=> migrate-disable\n"
    "#                              |||| /     delay\n"
    "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
    "#              | |         |   |||||     |         |\n";
static const char columns_short[] =
    "#           TASK-PID     CPU#     TIMESTAMP  FUNCTION\n"
    "#              | |         |         |         |\n";

void print_header(const struct print *p, const char *tracer, uint64_t entries,
                  uint64_t written, unsigned cpus)
{
    print_text(p, "# tracer: %s\n#\n", tracer);
    if (p->brief)
        return;
    print_text(p, "# entries-in-buffer/entries-written: %lu/%lu   #P:%u\n#\n", entries,
               written, cpus);
    print_string(p, p->no_irq_info ? columns_short : columns);
}

void print_lost(const struct print *p, unsigned cpu, uint64_t missed)
{
    if (missed == PAGE_MISSED_SOME)
        print_text(p, "CPU:%u [LOST EVENTS]\n", cpu);
    else if (missed)
        print_text(p, "CPU:%u [LOST %lu EVENTS]\n", cpu, missed);
}

/* ---- the columns in front of an event ---- */

static char hex_or_dot(unsigned value)
{
    return value ? "0123456789abcdef"[value & 15] : '.';
}

static char interrupt_mark(uint8_t flags)
{
    if (flags & RECORD_NMI)
        return flags & RECORD_HARDIRQ ? 'Z' : 'z';
    return flags & RECORD_HARDIRQ ? 'h' : '.';
}

static void print_flags(const struct print *p, const struct record_head *head)
{
    print_text(p, "%c%c%c%c%c", head->flags & RECORD_IRQS_OFF ? 'd' : '.',
               head->flags & RECORD_NEED_RESCHED ? 'n' : '.', interrupt_mark(head->flags),
               hex_or_dot(head->preempt_count & 15),
               hex_or_dot(head->preempt_count >> 4));
}

static void print_time(const struct print *p, uint64_t time)
{
    uint64_t us = (time + 500) / 1000;

    if (p->cycles)
        print_text(p, " %12lu: ", time);
    else
        print_text(p, " %5lu.%06lu: ", us / 1000000, us % 1000000);
}

static void print_context(const struct print *p, unsigned cpu, uint64_t time,
                          const struct record_head *head)
{
    char comm[COMM_LEN] = "<...>";

    if (p->brief)
        return;
    if (!head->pid)
        strcpy(comm, "<idle>");
    else if (p->comm)
        p->comm(head->pid, comm);
    print_text(p, "%16s-%-7d [%03u] ", comm, head->pid, cpu);
    if (!p->no_irq_info)
        print_flags(p, head);
    print_time(p, time);
}

/* ---- arguments ---- */

static void print_address_name(const struct print *p, uintptr_t addr)
{
    char text[SYMBOL_LEN];

    if (p->symbol && p->symbol(text, sizeof(text), addr))
        print_string(p, text);
    else
        print_text(p, "0x%lx", addr);
}

/* print_located - print a string. The word at @at says where in the record the string
 * lies, and how long it is with its NUL.
 */
static void print_located(const struct print *p, const uint8_t *record, size_t len,
                          const uint8_t *at)
{
    uint32_t where, off, size;

    memcpy(&where, at, sizeof(where));
    off = where & 0xffff;
    size = where >> 16;
    if (!size || off + size > len) {
        print_string(p, "(fault)");
        return;
    }
    p->write(p->to, "\"", 1);
    p->write(p->to, (const char *)record + off,
             strnlen((const char *)record + off, size));
    p->write(p->to, "\"", 1);
}

static uint64_t load_unsigned(const uint8_t *at, size_t size)
{
    uint64_t value = 0;

    memcpy(&value, at, size);
    return value;
}

static int64_t load_signed(const uint8_t *at, size_t size)
{
    unsigned unused = 64 - 8 * (unsigned)size;

    return (int64_t)(load_unsigned(at, size) << unused) >> unused;
}

static void print_value(const struct print *p, const struct fetch_type *type,
                        const uint8_t *record, size_t len, const uint8_t *at)
{
    switch (type->kind) {
    case FETCH_UNSIGNED:
        print_text(p, "%lu", load_unsigned(at, type->size));
        break;
    case FETCH_SIGNED:
        print_text(p, "%ld", load_signed(at, type->size));
        break;
    case FETCH_HEX:
        print_text(p, "0x%lx", load_unsigned(at, type->size));
        break;
    case FETCH_CHAR:
        print_text(p, "'%c'", *at);
        break;
    case FETCH_SYMBOL:
        print_address_name(p, load_unsigned(at, type->size));
        break;
    case FETCH_STRING:
        print_located(p, record, len, at);
        break;
    }
}

static void print_arg(const struct print *p, const struct fetch_arg *arg,
                      const uint8_t *record, size_t head, size_t len)
{
    const uint8_t *at = record + head + arg->offset;

    print_text(p, " %s=", arg->name);
    if (!arg->count) {
        print_value(p, arg->type, record, len, at);
        return;
    }
    for (unsigned i = 0; i < arg->count; i++, at += arg->type->size) {
        p->write(p->to, i ? "," : "{", 1);
        print_value(p, arg->type, record, len, at);
    }
    p->write(p->to, "}", 1);
}

void print_args(const struct print *p, const struct fetch_arg *args, size_t count,
                const void *record, size_t head, size_t len)
{
    for (size_t i = 0; i < count; i++)
        print_arg(p, &args[i], record, head, len);
}

/* ---- records ---- */

/* print_where - print the address behind the name of a place, if that is wanted. */
static void print_where(const struct print *p, uintptr_t addr)
{
    if (p->addresses)
        print_text(p, " <%016lx>", addr);
}

/* name_only - print the name of a place without "+0x0/0x90", unless p->offsets is set. */
static void name_only(const struct print *p, uintptr_t addr)
{
    char text[SYMBOL_LEN], *plus, *module;

    if (!p->symbol || !p->symbol(text, sizeof(text), addr)) {
        print_text(p, "0x%lx", addr);
        return;
    }
    plus = strchr(text, '+');
    module = strchr(text, ' ');
    if (plus && !p->offsets)
        *plus = '\0';
    print_string(p, text);
    if (module && !p->offsets)
        print_string(p, module);
}

/* print_classic - print "NAME: @PLACE" or "NAME: <-PLACE", where NAME is the function of
 * @at, and PLACE has an offset but no size.
 */
static void print_classic(const struct print *p, uintptr_t at, const char *mark,
                          uintptr_t place)
{
    char text[SYMBOL_LEN];

    name_only(p, at);
    print_text(p, ": %s", mark);
    if (p->symbol && p->symbol(text, sizeof(text), place)) {
        text[strcspn(text, "/")] = '\0';
        print_string(p, text);
    } else {
        print_text(p, "0x%lx", place);
    }
}

static void print_probe(const struct print *p, const struct event *event,
                        const struct record_probe *record)
{
    if (p->classic) {
        print_classic(p, record->ip, "@", record->ip);
        return;
    }
    print_text(p, "%s: (", event->name);
    print_address_name(p, record->ip);
    print_where(p, record->ip);
    print_string(p, ")");
}

static void print_return(const struct print *p, const struct event *event,
                         const struct record_return *record)
{
    if (p->classic) {
        print_classic(p, record->ret_ip, "<-", record->func);
        return;
    }
    print_text(p, "%s: (", event->name);
    print_address_name(p, record->ret_ip);
    print_where(p, record->ret_ip);
    print_string(p, " <- ");
    name_only(p, record->func);
    print_where(p, record->func);
    print_string(p, ")");
}

static void print_marker(const struct print *p, const struct record_text *record,
                         size_t len)
{
    name_only(p, record->ip);
    print_where(p, record->ip);
    print_string(p, ": ");
    p->write(p->to, record->text,
             strnlen(record->text, len - offsetof(struct record_text, text)));
}

static void print_stack(const struct print *p, const struct record_stack *record,
                        size_t len)
{
    size_t room = (len - sizeof(*record)) / sizeof(record->caller[0]);
    size_t count = record->size < 0 ? 0 : (size_t)record->size;

    print_string(p, "<stack trace>\n");
    for (size_t i = 0; i < count && i < room; i++) {
        char text[SYMBOL_LEN];

        print_string(p, " => ");
        /* A call may be the last instruction of its function. */
        if (i && p->offsets)
            print_string(p,
                         caller_text(text, sizeof(text), record->caller[i], p->symbol));
        else
            name_only(p, record->caller[i] - (i > 0));
        print_where(p, record->caller[i]);
        print_string(p, "\n");
    }
}

void print_record(const struct print *p, const struct event *event, unsigned cpu,
                  uint64_t time, const void *record, size_t len)
{
    const struct record_head *head = record;

    print_context(p, cpu, time, head);
    if (!event) {
        print_text(p, "Unknown type %u\n", head->type);
        return;
    }
    switch (event->shape) {
    case EVENT_PROBE:
        print_probe(p, event, record);
        break;
    case EVENT_RETURN:
        print_return(p, event, record);
        break;
    case EVENT_SYNTH:
        print_text(p, "%s:", event->name);
        break;
    case EVENT_TEXT:
        print_marker(p, record, len);
        return; /* the text has its own newline */
    case EVENT_STACK:
        print_stack(p, record, len);
        return;
    }
    print_args(p, event->args, event->arg_count, record, event_head(event), len);
    print_string(p, "\n");
}
