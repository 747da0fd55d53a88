/* judge.c - checks plans of lab 9. Standard input has the text, the sites and the plans.
 * When all plans are written, each must be a jump to its pad. Their number is compared
 * with the number of plans that the engine's own planner finds.
 */
#include "docs/labs/host/grader.h"
#include "docs/labs/host/pun/shared.h"
#include "probes/insn/insn.h"
#include "probes/jump/pun.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

static bool pad_is_its_own(const struct site *s, size_t total)
{
    for (size_t i = 0; i < total; i++)
        if (&sites[i] != s && sites[i].jump_len && sites[i].pad < s->pad + PAD_LEN &&
            s->pad < sites[i].pad + PAD_LEN)
            return false;
    return true;
}

static bool is_jump(const struct site *s)
{
    struct insn insn;

    return !insn_decode(&insn, now + s->offset, INSN_MAX_LEN, text.start + s->offset) &&
           insn.kind == INSN_JMP_REL && !insn.opsize66 && insn.target == s->pad &&
           insn.imm_len == 4;
}

static void write_plan(const struct site *s)
{
    if (s->jump_len <= s->len)
        memcpy(now + s->offset, s->jump, s->jump_len);
}

/* Is the plan of a site right? If not, state its first mistake as a fact.
 * @total: the number of sites that have their plans at the same time
 */
static bool is_right(const struct site *s, size_t total)
{
    const char *wrong = NULL;

    if (!s->jump_len)
        return true;
    if (s->jump_len > s->len)
        wrong = "writes behind its instruction";
    else if (!pad_is_allowed(s->pad))
        wrong = "has a pad where none may be";
    else if (!pad_is_its_own(s, total))
        wrong = "has a pad that overlaps another one";
    else if (!is_jump(s))
        wrong = "is no jump to its pad when all are written";
    if (wrong)
        lab_fact("the plan for %u bytes at offset %zu %s", s->len, s->offset, wrong);
    return !wrong;
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
        lab_fact("enough");
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

static void together(unsigned percent)
{
    size_t found = 0;

    read_all();
    for (size_t i = 0; i < count; i++)
        write_plan(&sites[i]);
    for (size_t i = 0; i < count; i++) {
        if (!is_right(&sites[i], count))
            return;
        found += sites[i].jump_len > 0;
    }
    enough_fact(found, ours(0, count), percent);
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
    together(90);
}

const struct lab_line lab_lines[] = {
    { "four", four }, { "three", three }, { "short", two },
    { "all", all },   { "most", most },   { 0 },
};
