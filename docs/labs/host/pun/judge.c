/* judge.c - checks plans of lab 9. Standard input has the text, the sites and the plans.
 * When all plans are written, each must be a jump to its pad. Their number is compared
 * with the number of plans that the engine's own planner finds.
 */
#include "docs/labs/host/grader.h"
#include "docs/labs/host/pun/shared.h"
#include "probes/insn/insn.h"
#include "probes/jump/pun.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JMP 0xe9
#define JMP_LEN 5

static struct site sites[SITES_MAX];
static struct text text;
static uint8_t bytes[TEXT_MAX], now[TEXT_MAX];
static size_t count;

/* ---- are they jumps? ---- */

static bool pad_is_allowed(uint64_t pad)
{
    uint64_t end = pad + PAD_LEN;

    return pad >= text.pads_start && end <= text.pads_end && end > pad &&
           (end <= text.hole_start || pad >= text.hole_end);
}

/* Return a site whose pad overlaps the pad of @s; NULL: there is none. */
static const struct site *overlapping(const struct site *s, size_t total)
{
    for (size_t i = 0; i < total; i++)
        if (&sites[i] != s && sites[i].jump_len && sites[i].pad < s->pad + PAD_LEN &&
            s->pad < sites[i].pad + PAD_LEN)
            return &sites[i];
    return NULL;
}

static void write_plan(const struct site *s)
{
    if (s->jump_len <= s->len)
        memcpy(now + s->offset, s->jump, s->jump_len);
}

/* State that the plan of a site breaks a rule. */
__attribute__((format(printf, 2, 3))) static bool broken(const struct site *s,
                                                         const char *rule, ...)
{
    char why[200], there[3 * INSN_MAX_LEN + 1] = "";
    va_list args;

    va_start(args, rule);
    vsnprintf(why, sizeof(why), rule, args);
    va_end(args);
    for (unsigned i = 0; i < INSN_MAX_LEN; i++)
        snprintf(there + 3 * i, 4, " %02x", now[s->offset + i]);
    lab_fact("the plan for %u bytes at %#lx (offset %zu) with the pad %#lx: %s; when all "
             "plans are written, the bytes there are%s",
             s->len, text.start + s->offset, s->offset, s->pad, why, there);
    return false;
}

/* Is the plan of a site right? If not, state the first rule that it breaks.
 * @total: the number of sites that have their plans at the same time
 */
static bool is_right(const struct site *s, size_t total)
{
    const uint8_t *at = now + s->offset;
    unsigned n = shared_prefixes(at);
    const struct site *other = overlapping(s, total);
    uint64_t target;
    int32_t disp;

    memcpy(&disp, at + n + 1, sizeof(disp));
    target = text.start + s->offset + n + JMP_LEN + (uint64_t)disp;
    if (!s->jump_len)
        return true;
    if (s->jump_len > s->len)
        return broken(s, "it writes %u bytes, more than its instruction has",
                      s->jump_len);
    if (!pad_is_allowed(s->pad))
        return broken(s, "not all bytes of the pad lie in an area of pads");
    if (other)
        return broken(s, "the pad overlaps %#lx, the pad of offset %zu", other->pad,
                      other->offset);
    if (at[n] != JMP)
        return broken(s,
                      "behind %u prefixes is %02x, not e9 (ten prefixes at most; those "
                      "that pun.h names)",
                      n, at[n]);
    if (target != s->pad)
        return broken(s, "with the displacement %d it jumps to %#lx", disp, target);
    return true;
}

/* ---- how many are there? ---- */

static bool pad_is_free(void *arg, uintptr_t pad)
{
    (void)arg;
    return pad_is_allowed(pad);
}

static bool byte_at(void *arg, uintptr_t addr, uint8_t *byte)
{
    (void)arg;
    if (addr < text.start || addr - text.start >= text.len)
        return false;
    *byte = bytes[addr - text.start];
    return true;
}

/* Let the engine plan @total sites from number @first on. Return how many it could plan.
 */
static size_t ours(size_t first, size_t total)
{
    struct pun_env env = { .pads_start = text.pads_start,
                           .pads_end = text.pads_end,
                           .hole_start = text.hole_start,
                           .hole_end = text.hole_end,
                           .pad_is_free = pad_is_free,
                           .byte_at = byte_at };
    struct pun *puns = calloc(total, sizeof(*puns));
    struct pun_batch batch = {
        .env = &env, .puns = puns, .count = total, .work = malloc(pun_work_len(total, 0))
    };
    size_t failed;

    for (size_t i = 0; i < total; i++) {
        const struct site *s = &sites[first + i];

        puns[i].addr = text.start + s->offset;
        puns[i].len = (uint8_t)s->len;
        memcpy(puns[i].bytes, bytes + s->offset, s->len);
    }
    failed = pun_plan(&batch);
    free(puns);
    free(batch.work);
    return total - failed;
}

/* ---- the lines ---- */

static void read_all(void)
{
    count = shared_read(&text, bytes, sites);
    for (size_t i = 0; i < count; i++)
        plan_read(&sites[i]);
    memcpy(now, bytes, sizeof(now));
}

static void enough_fact(size_t found, size_t of, unsigned percent)
{
    if (100 * found >= percent * of)
        lab_fact("enough: %zu of %zu", found, of);
    else
        lab_fact("%zu plans; the engine has %zu, and %u %% of that are needed", found, of,
                 percent);
}

static void alone(unsigned percent)
{
    size_t found = 0, of = 0;

    read_all();
    for (size_t i = 0; i < count; i++) {
        struct site only = sites[i];

        write_plan(&only);
        if (!is_right(&only, 0))
            return;
        memcpy(now, bytes, sizeof(now));
        found += only.jump_len > 0;
        of += ours(i, 1);
    }
    enough_fact(found, of, percent);
}

/* Can a jump without prefixes lead from a site to a pad? Its last bytes are in the text. */
static bool reaches(const struct site *s, uint64_t pad)
{
    uint32_t disp = (uint32_t)(pad - (text.start + s->offset + JMP_LEN));
    unsigned own = s->len < JMP_LEN ? s->len - 1 : JMP_LEN - 1;

    return pad_is_allowed(pad) &&
           !memcmp((uint8_t *)&disp + own, bytes + s->offset + s->len, JMP_LEN - 1 - own);
}

/* Return how many plans there can be if the areas of pads have @room bytes, which are few. */
static size_t fit(uint64_t room)
{
    uint64_t start = text.hole_end < text.pads_end ? text.hole_end : text.pads_start;
    size_t sites_that_reach = 0;

    for (size_t i = 0; i < count; i++)
        for (uint64_t pad = start; pad < start + room; pad++)
            if (reaches(&sites[i], pad)) {
                sites_that_reach++;
                break;
            }
    return sites_that_reach < room / PAD_LEN ? sites_that_reach : room / PAD_LEN;
}

static void together(unsigned percent)
{
    size_t found = 0;
    uint64_t room;

    read_all();
    room = text.hole_start - text.pads_start + text.pads_end - text.hole_end;
    for (size_t i = 0; i < count; i++)
        write_plan(&sites[i]);
    for (size_t i = 0; i < count; i++) {
        if (!is_right(&sites[i], count))
            return;
        found += sites[i].jump_len > 0;
    }
    enough_fact(found, room <= PAD_LEN * count ? fit(room) : ours(0, count), percent);
}

static void four(void)
{
    alone(98);
}

static void three(void)
{
    alone(95);
}

static void two(void)
{
    alone(90);
}

static void all(void)
{
    together(60);
}

static void most(void)
{
    together(85);
}

const struct lab_line lab_lines[] = {
    { "four", four }, { "three", three }, { "short", two },
    { "all", all },   { "most", most },   { 0 },
};
