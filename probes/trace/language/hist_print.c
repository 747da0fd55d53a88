/* hist_print.c - sorts the entries of a histogram, and prints them in Linux's form. */
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/language/symbol_text.h"

#include "kernel/base/compiler.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A text that is printed piece by piece. Text that does not fit is only counted. */
struct out {
    char *buf;
    size_t size, len;
};

#define PRINT(out, ...)                                                                  \
    ((out)->len += (size_t)snprintf(                                                     \
         (out)->len < (out)->size ? (out)->buf + (out)->len : NULL,                      \
         (out)->len < (out)->size ? (out)->size - (out)->len : 0, __VA_ARGS__))

/* ---- the line ---- */

static void print_key_part(struct out *out, const struct hist_part *part)
{
    const char *modifier = hist_modifiers[part->show];

    PRINT(out, "%s%s", part->field.kind == FILTER_VARIABLE ? "$" : "", part->name);
    if (part->show == HIST_BUCKETS)
        PRINT(out, ".buckets=%llu", (unsigned long long)part->bucket);
    else if (modifier)
        PRINT(out, ".%s", modifier);
}

static void print_sort(struct out *out, const struct hist *hist,
                       const struct hist_sort *sort)
{
    if (!sort->by_key && !sort->index)
        PRINT(out, "hitcount");
    else
        print_key_part(out, sort->by_key ? &hist->key[sort->index]
                                         : &hist->val[sort->index - 1]);
    if (sort->descending)
        PRINT(out, ".descending");
}

static void print_variables(struct out *out, const struct hist_more *more)
{
    for (unsigned i = 0; i < more->var_count; i++)
        PRINT(out, "%s%s=%s", i ? "," : ":", more->var[i].name, more->var[i].text);
}

size_t hist_print_spec(const struct hist *hist, const char *filter, char *buf,
                       size_t size)
{
    struct out out = { buf, size, 0 };

    PRINT(&out, "hist:");
    if (hist->name)
        PRINT(&out, "name=%s:", hist->name);
    PRINT(&out, "keys=");
    for (unsigned i = 0; i < hist->key_count; i++) {
        PRINT(&out, "%s", i ? "," : "");
        print_key_part(&out, &hist->key[i]);
    }
    PRINT(&out, ":vals=%s", hist->no_hitcount && hist->val_count ? "" : "hitcount");
    for (unsigned i = 0; i < hist->val_count; i++) {
        PRINT(&out, "%s", i || !hist->no_hitcount ? "," : "");
        print_key_part(&out, &hist->val[i]);
    }
    if (hist->more)
        print_variables(&out, hist->more);
    PRINT(&out, ":sort=");
    for (unsigned i = 0; i < hist->sort_count; i++) {
        PRINT(&out, "%s", i ? "," : "");
        print_sort(&out, hist, &hist->sort[i]);
    }
    PRINT(&out, ":size=%zu%s%s%s", hist->table->size, hist->clock ? ":clock=" : "",
          hist->clock ? hist->clock : "", hist->no_hitcount ? ":nohitcount" : "");
    for (unsigned i = 0; hist->more && i < hist->more->action_count; i++)
        PRINT(&out, ":%s", hist->more->action[i].text);
    PRINT(&out, "%s%s [%s]", filter ? " if " : "", filter ? filter : "",
          *hist->paused ? "paused" : "active");
    return out.len;
}

/* ---- the order ---- */

static int compare_keys(uint64_t a, uint64_t b, bool is_signed)
{
    if (a == b)
        return 0;
    return (is_signed ? (int64_t)a < (int64_t)b : a < b) ? -1 : 1;
}

static int compare_by(const struct hist *hist, const struct hist_sort *sort,
                      struct hist_entry *a, struct hist_entry *b)
{
    const struct hist_part *part;
    uint64_t x, y;

    if (!sort->by_key)
        return compare_keys(a->sum[sort->index], b->sum[sort->index],
                            sort->index && hist->val[sort->index - 1].field.is_signed);
    part = &hist->key[sort->index];
    if (!hist_key_is_number(part))
        return memcmp(hist_entry_key(hist, a) + part->at,
                      hist_entry_key(hist, b) + part->at, part->size);
    memcpy(&x, hist_entry_key(hist, a) + part->at, sizeof(x));
    memcpy(&y, hist_entry_key(hist, b) + part->at, sizeof(y));
    return compare_keys(x, y, part->field.is_signed);
}

/* comes_first - tell whether entry @a is printed before entry @b. Entries that are equal
 * keep the order in which they were made.
 */
static bool comes_first(const struct hist *hist, uint32_t a, uint32_t b)
{
    for (unsigned i = 0; i < hist->sort_count; i++) {
        int order =
            compare_by(hist, &hist->sort[i], hist_entry(hist, a), hist_entry(hist, b));

        if (order)
            return hist->sort[i].descending ? order > 0 : order < 0;
    }
    return a < b;
}

static void swap_entries(uint32_t *a, uint32_t *b)
{
    uint32_t was = *a;

    *a = *b;
    *b = was;
}

/* numbers_sink - move @numbers[i] down to its place in a heap. The root of the heap is
 * the entry that is printed last.
 */
static void numbers_sink(const struct hist *hist, uint32_t *numbers, size_t i,
                         size_t count)
{
    size_t child;

    while ((child = 2 * i + 1) < count) {
        if (child + 1 < count && comes_first(hist, numbers[child], numbers[child + 1]))
            child++;
        if (!comes_first(hist, numbers[i], numbers[child]))
            return;
        swap_entries(&numbers[i], &numbers[child]);
        i = child;
    }
}

/* measure_wholes - note of what the values are shares: the sum of all entries, or for bars
 * the largest value.
 */
static void measure_wholes(const struct hist *hist, const uint32_t *numbers, size_t count)
{
    for (unsigned i = 0; i < hist->val_count; i++) {
        uint64_t *whole = &hist->table->whole[i];

        *whole = 0;
        for (size_t at = 0; hist_part_is_share(&hist->val[i]) && at < count; at++) {
            uint64_t value = hist_entry(hist, numbers[at])->sum[1 + i];

            if (hist->val[i].show == HIST_PERCENT)
                *whole += value;
            else if (value > *whole)
                *whole = value;
        }
    }
}

size_t hist_sorted(const struct hist *hist, uint32_t *numbers)
{
    size_t count = 0;

    for (size_t i = 0; i < 2 * hist->table->size; i++) {
        uint32_t seen = __atomic_load_n(&hist->table->slot[i], __ATOMIC_ACQUIRE);

        if (seen && hist_entry(hist, seen - 1)->sum[0] && count < hist->table->size)
            numbers[count++] = seen - 1;
    }
    hist->table->used = count;
    for (size_t i = count / 2; i--;)
        numbers_sink(hist, numbers, i, count);
    for (size_t i = count; i-- > 1;) {
        swap_entries(&numbers[0], &numbers[i]);
        numbers_sink(hist, numbers, 0, i);
    }
    measure_wholes(hist, numbers, count);
    return count;
}

/* ---- an entry ---- */

static void print_stack_part(struct out *out, const struct hist_part *part,
                             const uint8_t *key, symbol_text_t symbol)
{
    char text[128];
    uint64_t addr;

    PRINT(out, "%s:\n", part->name);
    for (unsigned i = 0; i < HIST_STACK_MAX; i++) {
        memcpy(&addr, key + part->at + i * sizeof(addr), sizeof(addr));
        if (!addr)
            return;
        PRINT(out, "         %s\n",
              i ? caller_text(text, sizeof(text), addr, symbol)
                : address_text(text, sizeof(text), addr, symbol));
    }
}

/* symbol_len - of the text of an address, as ksyms_text() writes it: the name's characters.
 * "[reads]+0x20", in a module that has gone, has no name but itself.
 */
static int symbol_len(const char *text)
{
    return (int)strcspn(text, *text == '[' ? "" : "+");
}

static void print_key(struct out *out, const struct hist_part *part, const uint8_t *key,
                      const char *comm, symbol_text_t symbol)
{
    unsigned long long value;
    char text[128];

    if (part->show == HIST_STACK) {
        print_stack_part(out, part, key, symbol);
        return;
    }
    memcpy(&value, key + part->at, sizeof(value));
    PRINT(out, "%s: ", part->name);
    switch (part->show) {
    case HIST_HEX:
        PRINT(out, "%llx", value);
        return;
    case HIST_SYM:
        address_text(text, sizeof(text), value, symbol);
        PRINT(out, "[%llx] %-45.*s", value, symbol_len(text), text);
        return;
    case HIST_SYM_OFFSET:
        PRINT(out, "[%llx] %-55s", value,
              address_text(text, sizeof(text), value, symbol));
        return;
    case HIST_EXECNAME:
        PRINT(out, "%-16s[%10llu]", comm, value);
        return;
    case HIST_SYSCALL: /* this kernel has no system calls */
        PRINT(out, "%-30s[%3llu]", "unknown_syscall", value);
        return;
    case HIST_LOG2:
        PRINT(out, "~ 2^%-2llu", value);
        return;
    case HIST_BUCKETS:
        PRINT(out, "~ %llu-%llu", value, value + (unsigned long long)part->bucket - 1);
        return;
    default:
        if (hist_key_is_number(part))
            PRINT(out, "%10llu", value);
        else
            PRINT(out, "%-50s", (const char *)key + part->at);
    }
}

/* share_of - return how many of @parts equal parts of @whole @value is, rounded down. Sums
 * wrap at 64 bits: all parts if @value is above @whole.
 */
static uint64_t share_of(uint64_t value, uint64_t whole, uint64_t parts)
{
    if (value >= whole)
        return value ? parts : 0;
    if (value <= UINT64_MAX / parts)
        return value * parts / whole;
    return value / (whole / parts);
}

static void print_sum(struct out *out, const struct hist_part *part, uint64_t value,
                      uint64_t whole)
{
    static const char bar[] = "####################";
    const int longest = sizeof(bar) - 1;
    uint64_t share;

    switch (part->show) {
    case HIST_HEX:
        PRINT(out, "  %s: %10llx", part->name, (unsigned long long)value);
        return;
    case HIST_PERCENT:
        share = share_of(value, whole, 10000);
        PRINT(out, "  %s (%%): %3llu.%02llu", part->name, (unsigned long long)share / 100,
              (unsigned long long)share % 100);
        return;
    case HIST_GRAPH:
        share = (share_of(value, whole, 2 * (uint64_t)longest) + 1) / 2;
        PRINT(out, "  %s: %-*.*s", part->name, longest, (int)share, bar);
        return;
    default:
        PRINT(out, "  %s: %10llu", part->name, (unsigned long long)value);
    }
}

/* print_kept - print what onmax and onchange have kept in an entry. */
static void print_kept(struct out *out, const struct hist_action *action,
                       const uint8_t *words)
{
    unsigned long long value;

    if (action->handler == HIST_ONMATCH)
        return;
    memcpy(&value, words + action->at, sizeof(value));
    PRINT(out, "\n\t%s: %10llu", action->handler == HIST_ONMAX ? "max" : "changed",
          value);
    for (unsigned i = 0; !action->synth && i < action->arg_count; i++) {
        const struct hist_arg *arg = &action->arg[i];

        if (arg->is_text) {
            PRINT(out, "  %s: %-32s", arg->name, (const char *)words + arg->at);
            continue;
        }
        memcpy(&value, words + arg->at, sizeof(value));
        PRINT(out, "  %s: %10llu", arg->name, value);
    }
}

size_t hist_print_entry(const struct hist *hist, uint32_t number, symbol_text_t symbol,
                        char *buf, size_t size)
{
    struct out out = { buf, size, 0 };
    struct hist_entry *entry = hist_entry(hist, number);
    const uint8_t *key = hist_entry_key(hist, entry);
    bool many_lines = false;

    PRINT(&out, "{ ");
    for (unsigned i = 0; i < hist->key_count; i++) {
        PRINT(&out, "%s", i ? ", " : "");
        print_key(&out, &hist->key[i], key, entry->comm, symbol);
        many_lines = hist->key[i].show == HIST_STACK;
    }
    PRINT(&out, "%s}", many_lines ? "" : " ");
    if (!hist->no_hitcount)
        PRINT(&out, " hitcount: %10llu", (unsigned long long)entry->sum[0]);
    for (unsigned i = 0; i < hist->val_count; i++)
        print_sum(&out, &hist->val[i], entry->sum[1 + i], hist->table->whole[i]);
    for (unsigned i = 0; hist->more && i < hist->more->action_count; i++)
        print_kept(&out, &hist->more->action[i], hist_entry_more(hist, entry));
    PRINT(&out, "\n");
    return out.len;
}

size_t hist_print_totals(const struct hist *hist, char *buf, size_t size)
{
    struct out out = { buf, size, 0 };
    unsigned long long unmatched = hist_unmatched(hist), unread = hist_unread(hist);

    PRINT(&out, "\nTotals:\n    Hits: %llu\n    Entries: %llu\n    Dropped: %llu\n",
          (unsigned long long)hist->table->hits, (unsigned long long)hist->table->used,
          (unsigned long long)hist->table->dropped);
    if (unmatched) /* Linux does not print these two */
        PRINT(&out, "    Unmatched: %llu\n", unmatched);
    if (unread)
        PRINT(&out, "    Unread: %llu\n", unread);
    return out.len;
}

/* The layout of these structs, for probes/trace/host/dead_hist.py. That tool reads the
 * memory of a kernel that has crashed, and prints as the functions above do. Its list of
 * names has the order of this table.
 */
extern const uint64_t hist_layout[];
USED const uint64_t hist_layout[] = {
    sizeof(struct hist),
    offsetof(struct hist, table),
    offsetof(struct hist, key),
    offsetof(struct hist, key_count),
    offsetof(struct hist, val),
    offsetof(struct hist, val_count),
    offsetof(struct hist, sort),
    offsetof(struct hist, sort_count),
    offsetof(struct hist, no_hitcount),
    sizeof(struct hist_part),
    offsetof(struct hist_part, name),
    offsetof(struct hist_part, field.is_signed),
    offsetof(struct hist_part, show),
    offsetof(struct hist_part, bucket),
    offsetof(struct hist_part, at),
    offsetof(struct hist_part, size),
    sizeof(struct hist_sort),
    offsetof(struct hist_sort, by_key),
    offsetof(struct hist_sort, index),
    offsetof(struct hist_sort, descending),
    sizeof(struct hist_table),
    offsetof(struct hist_table, size),
    offsetof(struct hist_table, entry_size),
    offsetof(struct hist_table, slot),
    offsetof(struct hist_table, entries),
    offsetof(struct hist_table, used),
    offsetof(struct hist_table, hits),
    offsetof(struct hist_table, dropped),
    offsetof(struct hist_entry, comm),
    offsetof(struct hist_entry, sum),
};
