/* refusal.c - parses refused.tsv, which is linked in as it is, and writes refusal_site.
 */
#include "tests/conformance/refusal.h"

#include "kernel/base/compiler.h"
#include "probes/core/life.h"

#include <stdio.h>
#include <string.h>

#define SITE_LEN 32
#define ROWS_MAX 80

/* refused.asm */
extern const char refused_list[], refused_list_end[];
void refusal_site(void);

/* A row of refused.tsv has a kind of instructions, a rule, and a sentence. The sentence
 * is not kept.
 */
struct row {
    char what[16], rule[20];
    bool met;
};

static struct row rows[ROWS_MAX];
static size_t row_count;

/* ---- the list ---- */

/* word_take - copy the part of [@at, @end) up to @stop into @word, cut if it is too long.
 * Return: the address behind @stop.
 */
static const char *word_take(const char *at, const char *end, char stop, char *word,
                             size_t size)
{
    size_t len = 0;

    for (; at < end && *at != stop; at++)
        if (len + 1 < size)
            word[len++] = *at;
    if (size)
        word[len] = '\0';
    return at < end ? at + 1 : end;
}

/* row_take - copy the line at @at into @row, unless it is a comment. @taken: was it
 * copied?
 * Return: the address of the next line.
 */
static const char *row_take(const char *at, struct row *row, bool *taken)
{
    const char *end = refused_list_end;

    *taken = *at != '#';
    if (*taken) {
        at = word_take(at, end, '\t', row->what, sizeof(row->what));
        at = word_take(at, end, '\t', row->rule, sizeof(row->rule));
    }
    return word_take(at, end, '\n', NULL, 0);
}

static void list_load(void)
{
    const char *at = refused_list;
    bool taken;

    if (row_count)
        return;
    while (at < refused_list_end && row_count < ROWS_MAX) {
        at = row_take(at, &rows[row_count], &taken);
        row_count += taken;
    }
}

static struct row *row_find(const char *what, enum probe_reason rule)
{
    list_load();
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].what, what) == 0 &&
            strcmp(rows[i].rule, probe_reason_name(rule)) == 0)
            return &rows[i];
    return NULL;
}

bool refusal_meet(enum insn_kind kind, enum probe_reason rule)
{
    struct row *row = row_find(insn_kind_name(kind), rule);

    if (!row)
        row = row_find("any", rule);
    if (row)
        row->met = true;
    return row;
}

bool refusal_is_met(enum insn_kind kind, enum probe_reason rule)
{
    const struct row *row = row_find(insn_kind_name(kind), rule);

    return row && row->met;
}

bool refusal_row(size_t i, char *text, size_t size, bool *met)
{
    list_load();
    if (i >= row_count)
        return false;
    snprintf(text, size, "%s %s", rows[i].what, rows[i].rule);
    *met = rows[i].met;
    return true;
}

/* ---- the place ---- */

/* site_write - write @insn and NOPs of one byte behind it to refusal_site; NULL: write
 * NOPs of two bytes, as it was built.
 */
static void site_write(const uint8_t *insn, size_t len)
{
    uint8_t bytes[SITE_LEN];

    memset(bytes, 0x90, sizeof(bytes));
    for (size_t i = 0; !insn && i < SITE_LEN; i += 2)
        bytes[i] = 0x66;
    if (insn)
        memcpy(bytes, insn, len);
    plat_lock(PLAT_PROBES);
    plat_lock(PLAT_TEXT);
    plat_text_write((uintptr_t)refusal_site, bytes, sizeof(bytes));
    plat_unlock(PLAT_TEXT);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
}

void refusal_withdraw(void)
{
    site_write(NULL, 0);
}

int refusal_offer(const struct sample *sample, struct kprobe *p, struct insn *insn,
                  struct probe_reject *why)
{
    uintptr_t site = (uintptr_t)refusal_site;

    site_write(sample->bytes, sample->len);
    memset(insn, 0, sizeof(*insn));
    if (insn_decode(insn, (const uint8_t *)site, SITE_LEN, site))
        memset(insn, 0, sizeof(*insn));
    memset(p, 0, sizeof(*p));
    p->addr = site;
    return register_kprobe_why(p, why);
}
