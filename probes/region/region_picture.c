/* region_picture.c - draw a region as text, with four columns for each byte:
 *
 *     IA
 *     |
 *     [ 0][ 1][ 2][ 3][ 4][ 5]    bytes from the insertion address
 *     [55][48  89  e5][41  57]    instructions; padding in round brackets
 *     [<- DCR -------------->]    what is copied
 *         [<- JTPR ----->]        where no branch may lead
 *                   T             a target: a branch leads there
 */
#include "probes/region/region.h"

#include "kernel/base/compiler.h"
#include "probes/core/registry.h"
#include "probes/region/targets.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 4 /* for each byte */

struct picture {
    const struct region *r;
    char text[REGION_LINE_MAX];
    void (*line)(const char *text, void *arg);
    void *arg;
};

/* ---- one line ---- */

static void line_start(struct picture *p)
{
    memset(p->text, ' ', sizeof(p->text));
    p->text[sizeof(p->text) - 1] = '\0';
}

static NOINLINE void line_end(struct picture *p)
{
    size_t len = sizeof(p->text) - 1;

    while (len && p->text[len - 1] == ' ')
        len--;
    p->text[len] = '\0';
    p->line(p->text, p->arg);
}

static void draw_words(struct picture *p, size_t column, const char *text)
{
    memcpy(p->text + column, text, strlen(text));
}

static void put_byte(struct picture *p, size_t i)
{
    char hex[3];

    snprintf(hex, sizeof(hex), "%02x", p->r->bytes[i]);
    draw_words(p, COLUMNS * i + 1, hex);
}

/* put_span - draw "[<- NAME --->]" over the bytes from @first up to @end; "[--]" if the
 * name does not fit.
 */
static void put_span(struct picture *p, size_t first, size_t end, const char *name)
{
    size_t from = COLUMNS * first, to = COLUMNS * end;

    memset(p->text + from, '-', to - from);
    p->text[from] = '[';
    p->text[to - 1] = ']';
    if (to - from < strlen("[<-  >]") + strlen(name))
        return;
    draw_words(p, from + 1, "<- ");
    draw_words(p, from + 4, name);
    p->text[from + 4 + strlen(name)] = ' ';
    p->text[to - 2] = '>';
}

/* ---- the lines ---- */

static void draw_address(struct picture *p)
{
    line_start(p);
    draw_words(p, 0, "IA");
    line_end(p);
    line_start(p);
    draw_words(p, 0, "|");
    line_end(p);
}

static void draw_numbers(struct picture *p)
{
    size_t bytes = p->r->len > REGION_JUMP_LEN ? p->r->len : REGION_JUMP_LEN;
    char number[24];

    line_start(p);
    for (size_t i = 0; i < bytes; i++) {
        snprintf(number, sizeof(number), "[%2zu]", i);
        draw_words(p, COLUMNS * i, number);
    }
    line_end(p);
}

static size_t insn_end(const struct region *r, size_t i)
{
    return i + 1u < r->count ? r->starts[i + 1] : (size_t)(r->len - r->padding);
}

static void draw_instructions(struct picture *p)
{
    const struct region *r = p->r;

    if (!r->len)
        return;
    line_start(p);
    for (size_t i = 0; i < r->count; i++) {
        p->text[COLUMNS * r->starts[i]] = '[';
        p->text[COLUMNS * insn_end(r, i) - 1] = ']';
    }
    for (size_t i = 0; i < r->len; i++)
        put_byte(p, i);
    for (size_t i = (size_t)(r->len - r->padding); i < r->len; i++) {
        p->text[COLUMNS * i] = '(';
        p->text[COLUMNS * i + COLUMNS - 1] = ')';
    }
    line_end(p);
}

static void draw_spans(struct picture *p)
{
    if (p->r->len) {
        line_start(p);
        put_span(p, 0, p->r->len, "DCR");
        line_end(p);
    }
    line_start(p);
    put_span(p, 1, REGION_JUMP_LEN, "JTPR");
    line_end(p);
}

/* ---- targets and probes in the way of the jump ---- */

struct obstacle {
    char mark;
    const char *meaning;
    bool (*is_at)(uintptr_t addr);
};

static bool is_target(uintptr_t addr)
{
    return !targets_opaque(addr) && targets_inside(addr, addr + 1);
}

static bool is_probed(uintptr_t addr)
{
    return registry_find(addr);
}

static const struct obstacle obstacles[] = {
    { 'T', "T: a branch, a pointer or a fix-up leads there", is_target },
    { '?', "?: it is not known what leads there", targets_opaque },
    { 'P', "P: another probe", is_probed },
};

static void draw_obstacle(struct picture *p, const struct obstacle *o)
{
    bool any = false;

    line_start(p);
    for (size_t i = 1; i < REGION_JUMP_LEN; i++) {
        if (!o->is_at(p->r->addr + i))
            continue;
        p->text[COLUMNS * i + 1] = o->mark;
        any = true;
    }
    if (!any)
        return;
    draw_words(p, COLUMNS * (REGION_JUMP_LEN + 1), o->meaning);
    line_end(p);
}

void region_draw(uintptr_t addr, void (*line)(const char *text, void *arg), void *arg)
{
    struct region r;
    struct picture p = { .r = &r, .line = line, .arg = arg };
    struct probe_reject why;

    region_plan(addr, &r, &why);
    draw_address(&p);
    draw_numbers(&p);
    draw_instructions(&p);
    draw_spans(&p);
    for (size_t i = 0; i < sizeof(obstacles) / sizeof(obstacles[0]); i++)
        draw_obstacle(&p, &obstacles[i]);
}
