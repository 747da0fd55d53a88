/* trace_table.c - prints histograms as tables: the largest numbers first, and
 * distributions as bars.
 */
#include "probes/console/trace_table.h"
#include "kernel/base/compiler.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/heap.h"
#include "probes/trace/language/hist_parts.h"
#include "probes/trace/live/live.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 160
#define BAR 40

/* ---- one key ---- */

/* unnamed_text - write an address without a symbol: its module may have gone. */
static void unnamed_text(char *buf, uint64_t addr, bool is_return)
{
    size_t offset;
    const char *gone = ksyms_gone(addr - is_return, &offset);

    if (gone)
        snprintf(buf, TEXT_MAX, "[%s]+0x%zx", gone, offset + is_return);
    else
        snprintf(buf, TEXT_MAX, "0x%lx", addr);
}

static void function_text(char *buf, uint64_t addr)
{
    struct ksym sym;

    if (ksyms_at(addr, &sym))
        unnamed_text(buf, addr, false);
    else
        snprintf(buf, TEXT_MAX, "%s", sym.name);
}

/* place_in_text - write an address. A return address may be the end of its function. */
static void place_in_text(char *buf, uint64_t addr, bool is_return)
{
    struct ksym sym;

    if (ksyms_at(addr - is_return, &sym))
        unnamed_text(buf, addr, is_return);
    else
        snprintf(buf, TEXT_MAX, "%s+0x%zx", sym.name, sym.offset + is_return);
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
        function_text(buf, number);
        break;
    case HIST_SYM_OFFSET:
        place_in_text(buf, number, true);
        break;
    case HIST_STRING:
        snprintf(buf, TEXT_MAX, "%.*s", part->size, (const char *)key + part->at);
        for (char *p = buf; *p; p++) /* a newline would end the row */
            *p = isprint((unsigned char)*p) ? *p : '.';
        break;
    case HIST_HEX: /* as `print` shows it; the file has no 0x, as on Linux */
        snprintf(buf, TEXT_MAX, "0x%lx", number);
        break;
    default:
        snprintf(buf, TEXT_MAX, part->field.is_signed ? "%ld" : "%lu", number);
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

/* show_stack - print a stack, without the first @skip addresses. */
static void show_stack(const struct hist *hist, struct hist_entry *entry, size_t skip,
                       struct seq *out)
{
    const struct hist_part *part = &hist->key[hist->key_count - 1];
    char text[TEXT_MAX];

    for (size_t i = skip; i < HIST_STACK_MAX; i++) {
        uint64_t addr;

        memcpy(&addr, hist_entry_key(hist, entry) + part->at + i * sizeof(addr),
               sizeof(addr));
        if (!addr)
            return;
        place_in_text(text, addr, i != skip);
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

static void print_total(const struct trace_answer *answer, const struct hist *hist,
                        const struct hist_entry *entry, struct seq *out)
{
    bool has_value = answer->action == ACTION_SUM || answer->action == ACTION_MIN ||
                     answer->action == ACTION_MAX || answer->action == ACTION_AVG;
    bool is_signed = has_value && hist->val[0].field.is_signed;
    uint64_t value = entry->sum[has_value];

    if (answer->action == ACTION_AVG)
        value = average(entry, is_signed);
    seq_printf(out, is_signed ? "%12ld" : "%12lu", value);
}

/* print_share - print the share of the row in all hits, in percent. */
static void print_share(const struct hist *hist, const struct hist_entry *entry,
                        struct seq *out)
{
    uint64_t all = hist->table->hits;
    uint64_t share = all ? (entry->sum[0] * 10000 + all / 2) / all : 0;

    seq_printf(out, "%6lu.%02lu", share / 100, share % 100);
}

static void print_rows(const struct trace_answer *answer, const struct hist *hist,
                       size_t skip, uint32_t *order, size_t count, struct seq *out)
{
    static const char *const titles[] = {
        [ACTION_COUNT] = "COUNT", [ACTION_SUM] = "SUM",     [ACTION_MIN] = "MIN",
        [ACTION_MAX] = "MAX",     [ACTION_AVG] = "AVERAGE", [ACTION_STACK] = "COUNT",
    };
    size_t most = answer->top ? answer->top : answer->most;
    char keys[2 * TEXT_MAX];

    if (answer->action == ACTION_AVG)
        sort_by_average(hist, order, count);
    seq_printf(out, "%12s", titles[answer->action]);
    if (answer->in_percent)
        seq_printf(out, "%9s", "%");
    for (unsigned i = 0; i < answer->key_count; i++)
        seq_printf(out, i + 1 < answer->key_count ? "  %-24s" : "  %s", answer->key[i]);
    seq_puts(out, "\n");
    for (size_t i = 0; i < count && (!most || i < most); i++) {
        struct hist_entry *entry = hist_entry(hist, order[i]);

        keys_text(hist, entry, answer->key_count, keys, sizeof(keys));
        print_total(answer, hist, entry, out);
        if (answer->in_percent)
            print_share(hist, entry, out);
        seq_printf(out, "%s%s\n", answer->key_count ? "  " : "", keys);
        if (answer->action == ACTION_STACK)
            show_stack(hist, entry, skip, out);
    }
    if (!answer->top && most && most < count)
        seq_printf(out, "%zu more rows; `top N`, or > FILE, has them\n", count - most);
}

/* ---- distributions ---- */

#define BUCKETS                                                                          \
    65 /* of hist, bucket i: up to 2^i; the last: more than 2^63, or negative */
#define ROWS_MAX                                                                         \
    (TRACE_LHIST_ROWS + 2) /* of lhist, with all below MIN, and from MAX on */

static void print_bar(const char *row, uint64_t n, uint64_t total, struct seq *out)
{
    unsigned bar = total ? (unsigned)((n * BAR + total - 1) / total) : 0;

    seq_printf(out, "%16s |%-*.*s %lu\n", row, BAR, (int)bar,
               "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@", n);
}

/* row_of - the row of an entry whose last key is @number. */
static unsigned row_of(const struct trace_answer *answer, uint64_t number, bool is_signed)
{
    if (answer->action == ACTION_HIST)
        return number < BUCKETS ? (unsigned)number : BUCKETS - 1;
    if (number < answer->low || (is_signed && (int64_t)number < 0))
        return 0;
    if (number >= answer->high)
        return (unsigned)((answer->high - answer->low) / answer->step) + 1;
    return (unsigned)((number - answer->low) / answer->step) + 1;
}

static void row_name(const struct trace_answer *answer, unsigned row, bool is_signed,
                     char *buf, size_t size)
{
    uint64_t from = answer->low + (row - 1) * answer->step;

    if (answer->action == ACTION_HIST && is_signed && row == BUCKETS - 1)
        strlcpy(buf, "-1", size);
    else if (answer->action == ACTION_HIST)
        snprintf(buf, size, "%lu", row < 64 ? UINT64_C(1) << row : UINT64_MAX);
    else if (!row)
        snprintf(buf, size, "< %lu", answer->low);
    else if (from >= answer->high)
        snprintf(buf, size, ">= %lu", answer->high);
    else
        snprintf(buf, size, "[%lu, %lu)", from, from + answer->step);
}

/* print_bars - print a bar for each row. @in: hits of each row, @total: all hits. Negative
 * numbers of hist, which are in the last row, come first.
 */
static void print_bars(const struct trace_answer *answer, const uint64_t *in,
                       uint64_t total, bool is_signed, struct seq *out)
{
    bool negative = is_signed && answer->action == ACTION_HIST;
    unsigned first = 0,
             end = answer->action == ACTION_HIST ? BUCKETS - negative : ROWS_MAX;
    char row[48];

    if (negative && in[BUCKETS - 1])
        print_bar("-1", in[BUCKETS - 1], total, out);
    while (first < end && !in[first])
        first++;
    while (end > first && !in[end - 1])
        end--;
    for (unsigned i = first; i < end; i++) {
        row_name(answer, i, is_signed, row, sizeof(row));
        print_bar(row, in[i], total, out);
    }
}

/* print_distribution - print the distribution of all entries that have the same keys as
 * entry @order[@first]. The last key is not compared, because it is the distributed
 * value. The number in @order of each of these entries becomes UINT32_MAX: the entry is
 * done.
 */
static void print_distribution(const struct trace_answer *answer, const struct hist *hist,
                               uint32_t *order, size_t first, size_t count,
                               struct seq *out)
{
    const struct hist_part *value = &hist->key[hist->key_count - 1];
    uint64_t in[ROWS_MAX] = { 0 }, total = 0;
    char mine[2 * TEXT_MAX], keys[2 * TEXT_MAX];

    keys_text(hist, hist_entry(hist, order[first]), answer->key_count, mine,
              sizeof(mine));
    for (size_t i = first; i < count; i++) {
        struct hist_entry *entry;

        if (order[i] == UINT32_MAX)
            continue;
        entry = hist_entry(hist, order[i]);
        keys_text(hist, entry, answer->key_count, keys, sizeof(keys));
        if (strcmp(mine, keys) != 0)
            continue;
        in[row_of(answer, key_number(value, hist_entry_key(hist, entry)),
                  value->field.is_signed)] += entry->sum[0];
        total += entry->sum[0];
        order[i] = UINT32_MAX;
    }
    seq_printf(out, "%s%s", mine, answer->key_count ? "\n" : "");
    seq_printf(out, "%13s %s  ------------- distribution ------------- count\n",
               answer->value, answer->action == ACTION_HIST ? "<=" : "  ");
    print_bars(answer, in, total, value->field.is_signed, out);
}

static uint64_t start_of(uint64_t addr)
{
    struct ksym sym;

    return ksyms_at(addr, &sym) ? addr : sym.start;
}

static void print_table(const struct trace_answer *answer, const struct hist *hist,
                        size_t skip, struct seq *out)
{
    uint32_t *order = kmalloc(hist_size(hist) * sizeof(*order));
    size_t count = order ? hist_sorted(hist, order) : 0;
    bool distributes = trace_answer_distributes(answer);

    if (!count)
        seq_puts(out, "nothing was hit\n");
    else if (!distributes)
        print_rows(answer, hist, skip, order, count, out);
    for (size_t i = 0; distributes && i < count; i++)
        if (order[i] != UINT32_MAX)
            print_distribution(answer, hist, order, i, count, out);
    if (hist->table->dropped)
        seq_printf(out, "%lu hits had no room in the table\n", hist->table->dropped);
    kfree(order);
}

void trace_table_print(const struct trace_line *line, unsigned i, const struct hist *hist,
                       struct seq *out)
{
    struct hist *by_function = hist_by_symbol(&live_host, hist, start_of);

    print_table(&line->answer[i], by_function ? by_function : hist,
                line->hz ? TRACE_SAMPLER_FRAMES : 0, out);
    if (by_function)
        hist_copy_free(&live_host, by_function);
}
