/* trace_table.c - prints histograms as tables: the largest numbers first, and
 * distributions as bars.
 */
#include "probes/console/trace_table.h"
#include "kernel/base/compiler.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/heap.h"
#include "probes/trace/language/hist_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 160
#define BAR 40

/* ---- one key ---- */

static void address_text(char *buf, uint64_t addr, bool with_offset)
{
    struct ksym sym;

    if (ksyms_at(addr, &sym))
        snprintf(buf, TEXT_MAX, "0x%lx", addr);
    else if (with_offset)
        snprintf(buf, TEXT_MAX, "%s+0x%zx", sym.name, sym.offset);
    else
        snprintf(buf, TEXT_MAX, "%s", sym.name);
}

static uint64_t key_number(const struct hist_part *part, const uint8_t *key)
{
    uint64_t number;

    memcpy(&number, key + part->at, sizeof(number));
    return number;
}

static void key_text(const struct hist_part *part, const uint8_t *key, char *buf)
{
    uint64_t number = key_number(part, key);

    switch (part->show) {
    case HIST_SYM:
    case HIST_SYM_OFFSET:
        address_text(buf, number, part->show == HIST_SYM_OFFSET);
        break;
    case HIST_STRING:
        snprintf(buf, TEXT_MAX, "%.*s", part->size, (const char *)key + part->at);
        break;
    default:
        if (part->field.is_signed)
            snprintf(buf, TEXT_MAX, "%ld", (int64_t)number);
        else
            snprintf(buf, TEXT_MAX, number >> 32 ? "0x%lx" : "%lu", number);
    }
}

/* keys_text - write the first @count keys of the entry, in columns. */
static void keys_text(const struct hist *hist, struct hist_entry *entry, unsigned count,
                      char *buf, size_t size)
{
    char text[TEXT_MAX];
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        key_text(&hist->key[i], hist_entry_key(hist, entry), text);
        len += (size_t)scnprintf(buf + len, size - len, i + 1 < count ? "%-24s  " : "%s",
                                 text);
    }
}

static void show_stack(const struct hist *hist, struct hist_entry *entry, struct seq *out)
{
    const struct hist_part *part = &hist->key[hist->key_count - 1];
    char text[TEXT_MAX];

    for (size_t i = 0; i < HIST_STACK_MAX; i++) {
        uint64_t addr;

        memcpy(&addr, hist_entry_key(hist, entry) + part->at + i * sizeof(addr),
               sizeof(addr));
        if (!addr)
            return;
        address_text(text, addr, true);
        seq_printf(out, "              %s\n", text);
    }
}

/* ---- rows ---- */

static uint64_t average(const struct hist_entry *entry, bool is_signed)
{
    uint64_t hits = entry->sum[0];

    if (!hits)
        return 0;
    return is_signed ? (uint64_t)((int64_t)entry->sum[1] / (int64_t)hits)
                     : entry->sum[1] / hits;
}

struct average_row {
    uint64_t key; /* in the order of the averages, also where they are signed */
    uint32_t number;
};

static int by_average(const void *a, const void *b)
{
    const struct average_row *first = a, *second = b;

    return (first->key < second->key) - (first->key > second->key);
}

/* sort_by_average - sort @order by the averages, the largest first. Before, it is sorted
 * by the sums; if there is no memory, this order stays.
 */
static void sort_by_average(const struct hist *hist, uint32_t *order, size_t count)
{
    bool is_signed = hist->val[0].field.is_signed;
    struct average_row *rows = kmalloc(count * sizeof(*rows) + 1);

    if (!rows)
        return;
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct average_row){ average(hist_entry(hist, order[i]), is_signed) ^
                                            (uint64_t)is_signed << 63,
                                        order[i] };
    qsort(rows, count, sizeof(*rows), by_average);
    for (size_t i = 0; i < count; i++)
        order[i] = rows[i].number;
    kfree(rows);
}

static void print_total(const struct trace_line *line, const struct hist *hist,
                        const struct hist_entry *entry, struct seq *out)
{
    bool has_value = line->action == ACTION_SUM || line->action == ACTION_MIN ||
                     line->action == ACTION_MAX || line->action == ACTION_AVG;
    bool is_signed = has_value && hist->val[0].field.is_signed;
    uint64_t value = entry->sum[has_value];

    if (line->action == ACTION_AVG)
        value = average(entry, is_signed);
    seq_printf(out, is_signed ? "%12ld" : "%12lu", value);
}

static void print_rows(const struct trace_line *line, const struct hist *hist,
                       uint32_t *order, size_t count, struct seq *out)
{
    static const char *const titles[] = {
        [ACTION_COUNT] = "COUNT", [ACTION_SUM] = "SUM",     [ACTION_MIN] = "MIN",
        [ACTION_MAX] = "MAX",     [ACTION_AVG] = "AVERAGE", [ACTION_STACK] = "COUNT",
    };
    char keys[2 * TEXT_MAX];

    if (line->action == ACTION_AVG)
        sort_by_average(hist, order, count);
    seq_printf(out, "%12s", titles[line->action]);
    for (unsigned i = 0; i < line->key_count; i++)
        seq_printf(out, i + 1 < line->key_count ? "  %-24s" : "  %s", line->key[i]);
    seq_puts(out, "\n");
    for (size_t i = 0; i < count && (!line->top || i < line->top); i++) {
        struct hist_entry *entry = hist_entry(hist, order[i]);

        keys_text(hist, entry, line->key_count, keys, sizeof(keys));
        print_total(line, hist, entry, out);
        seq_printf(out, "%s%s\n", line->key_count ? "  " : "", keys);
        if (line->action == ACTION_STACK)
            show_stack(hist, entry, out);
    }
}

/* ---- distributions ---- */

#define BUCKETS 65 /* bucket i: up to 2^i; the last bucket: more than 2^63, or negative */

static void print_bar(const char *row, uint64_t n, uint64_t total, struct seq *out)
{
    unsigned bar = total ? (unsigned)((n * BAR + total - 1) / total) : 0;

    seq_printf(out, "%16s |%-*.*s %lu\n", row, BAR, (int)bar,
               "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@", n);
}

/* print_bars - print a bar for each bucket. @in: hits of each bucket, @total: all hits */
static void print_bars(const uint64_t *in, uint64_t total, bool is_signed,
                       struct seq *out)
{
    unsigned first = 0, end = BUCKETS - is_signed;
    char row[24];

    if (is_signed && in[BUCKETS - 1])
        print_bar("-1", in[BUCKETS - 1], total, out);
    while (first < end && !in[first])
        first++;
    while (end > first && !in[end - 1])
        end--;
    for (unsigned i = first; i < end; i++) {
        snprintf(row, sizeof(row), "%lu", i < 64 ? UINT64_C(1) << i : UINT64_MAX);
        print_bar(row, in[i], total, out);
    }
}

/* print_distribution - print the distribution of all entries that have the same keys as
 * entry @order[@first]. The last key is not compared, because it is the distributed
 * value. The number in @order of each of these entries becomes UINT32_MAX: the entry is
 * done.
 */
static void print_distribution(const struct trace_line *line, const struct hist *hist,
                               uint32_t *order, size_t first, size_t count,
                               struct seq *out)
{
    const struct hist_part *value = &hist->key[hist->key_count - 1];
    uint64_t in[BUCKETS] = { 0 }, total = 0;
    char mine[2 * TEXT_MAX], keys[2 * TEXT_MAX];

    keys_text(hist, hist_entry(hist, order[first]), line->key_count, mine, sizeof(mine));
    for (size_t i = first; i < count; i++) {
        struct hist_entry *entry;
        uint64_t bucket;

        if (order[i] == UINT32_MAX)
            continue;
        entry = hist_entry(hist, order[i]);
        keys_text(hist, entry, line->key_count, keys, sizeof(keys));
        if (strcmp(mine, keys) != 0)
            continue;
        bucket = key_number(value, hist_entry_key(hist, entry));
        in[bucket < BUCKETS ? bucket : BUCKETS - 1] += entry->sum[0];
        total += entry->sum[0];
        order[i] = UINT32_MAX;
    }
    seq_printf(out, "%s%s", mine, line->key_count ? "\n" : "");
    seq_printf(out, "%13s <=  ------------- distribution ------------- count\n",
               line->value);
    print_bars(in, total, value->field.is_signed, out);
}

void trace_table_print(const struct trace_line *line, const struct hist *hist,
                       struct seq *out)
{
    uint32_t *order = kmalloc(hist_size(hist) * sizeof(*order));
    size_t count = order ? hist_sorted(hist, order) : 0;

    if (!count)
        seq_puts(out, "nothing was hit\n");
    else if (line->action != ACTION_HIST)
        print_rows(line, hist, order, count, out);
    for (size_t i = 0; line->action == ACTION_HIST && i < count; i++)
        if (order[i] != UINT32_MAX)
            print_distribution(line, hist, order, i, count, out);
    if (hist->table->dropped)
        seq_printf(out, "%lu hits had no room in the table\n", hist->table->dropped);
    kfree(order);
}
