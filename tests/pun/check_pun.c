/* check_pun.c - plans a jump at each instruction of real programs, and checks the plans.
 *
 *     check_pun [-q] FILE...
 *
 * It plans a jump at each instruction of the FILEs that may carry a probe: first at one
 * instruction alone, with the original text around it, and then at all of them at once.
 * It writes the bytes of each plan and decodes them. Every instruction of the program
 * must be as before, or a jump to its own pad. -q: single plans only for every 64th
 * instruction.
 *
 * The output is TAP, with the tables of docs/optimize.md as comments.
 */
#include "tests/pun/churn.h"
#include "tests/pun/image.h"
#include "tests/pun/pads.h"
#include "tests/pun/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVICTED_MAX 8
#define CHURN_MAX 250000 /* instructions; for a larger text churn_run() takes too long */
#define LENGTHS 6        /* 1, 2, 3, 4, 5 and more; 0 is not used */

struct tally {
    size_t asked, failed, evicted;
    size_t explained; /* of those that failed: they are in a row where one must fail */
    size_t by[LENGTHS][PUN_RUNGS];
    size_t problems;
    double seconds;
};

static int tests, failures;

static void test_report(bool holds, const char *what, const struct image *image)
{
    printf("%s %d - %s: %s\n", holds ? "ok" : "not ok", ++tests, image->path, what);
    failures += !holds;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void problem(struct tally *t, const struct pun *p, const char *what)
{
    if (t->problems++ < 10)
        printf("# %#lx, %u bytes, %s: %s\n", p->addr, p->len, pun_rung_name(p->rung),
               what);
}

static unsigned length_class(unsigned len)
{
    return len < LENGTHS ? len : LENGTHS - 1;
}

static void count(struct tally *t, const struct pun *p)
{
    t->asked++;
    t->failed += p->rung == PUN_NONE;
    t->by[length_class(p->len)][p->rung]++;
}

/* ---- checks of a plan ---- */

/* jump_check - check that the text now has a jump that leads where the plan @p says. */
static void jump_check(struct tally *t, const struct world *w, const struct pun *p)
{
    const uint8_t *at = w->text + (p->addr - w->image->base);
    enum insn_kind kind = p->is_call ? INSN_CALL_REL : INSN_JMP_REL;
    struct insn insn;

    if (insn_decode(&insn, at, INSN_MAX_LEN, p->addr))
        problem(t, p, "does not decode");
    else if (insn.kind != kind || insn.len != p->span || insn.opsize66)
        problem(t, p, "is no such jump");
    else if (insn.target != (p->pad ? p->pad : p->detour))
        problem(t, p, "goes elsewhere");
    if (p->jump_len > p->span || p->span > INSN_MAX_LEN)
        problem(t, p, "writes more than it is long");
}

static void pad_check(struct tally *t, const struct world *w, const struct pun *p)
{
    const struct pun_env *env = &w->env;
    uintptr_t end = p->pad + PUN_PAD_LEN;

    if (p->pad < env->pads_start || end > env->pads_end ||
        (end > env->hole_start && p->pad < env->hole_end))
        problem(t, p, "its pad is out of range");
}

/* writes_check - check that the jump overwrites only its own instruction and padding. */
static void writes_check(struct tally *t, const struct world *w, const struct pun *p)
{
    for (size_t i = p->len; i < p->jump_len; i++) {
        size_t off = p->addr + i - w->image->base;

        if (off >= w->image->len || !(w->image->flags[off] & IMAGE_PADDING))
            problem(t, p, "writes an instruction that is not its own");
    }
}

static void plan_check(struct tally *t, const struct world *w, const struct pun *p)
{
    if (p->rung == PUN_NONE)
        return;
    jump_check(t, w, p);
    writes_check(t, w, p);
    if (p->pad)
        pad_check(t, w, p);
}

/* text_differs - do these bytes of the text differ from the original? */
static bool text_differs(const struct world *w, size_t off, size_t len)
{
    return memcmp(w->text + off, w->image->bytes + off, len) != 0;
}

/* ---- one at a time ---- */

static void single_put(struct world *w, struct pun_batch *batch)
{
    for (size_t i = 0; i < batch->evicted_count; i++)
        world_write(w, &batch->evicted[i]);
    world_write(w, &batch->puns[0]);
}

static void single_restore(struct world *w, struct pun_batch *batch)
{
    for (size_t i = 0; i < batch->evicted_count; i++)
        world_restore(w, &batch->evicted[i]);
    world_restore(w, &batch->puns[0]);
}

static bool is_planned(const struct pun_batch *batch, uintptr_t addr)
{
    for (size_t i = 0; i < batch->evicted_count; i++) {
        if (batch->evicted[i].addr == addr)
            return true;
    }
    return batch->puns[0].addr == addr;
}

static void single_check(struct tally *t, const struct world *w,
                         const struct pun_batch *batch)
{
    const struct image *image = w->image;
    size_t start = batch->puns[0].addr - image->base;
    size_t end = start + PUN_AHEAD < image->len ? start + PUN_AHEAD : image->len;

    plan_check(t, w, &batch->puns[0]);
    for (size_t i = 0; i < batch->evicted_count; i++)
        plan_check(t, w, &batch->evicted[i]);
    for (size_t off = start; off < end; off++) {
        if (image->flags[off] & IMAGE_BOUNDARY && !is_planned(batch, image->base + off) &&
            off + image->lens[off] <= image->len &&
            text_differs(w, off, image->lens[off]))
            problem(t, &batch->puns[0], "another instruction is not what it was");
    }
}

static void single_plan(struct tally *t, struct world *w, size_t off, void *work)
{
    struct pun p = world_pun(w, off), evicted[EVICTED_MAX];
    struct pun_batch batch = { .env = &w->env,
                               .puns = &p,
                               .count = 1,
                               .evicted = evicted,
                               .evicted_max = EVICTED_MAX,
                               .work = work };
    double start = now();

    pun_plan(&batch);
    t->seconds += now() - start;
    count(t, &p);
    t->evicted += batch.evicted_count;
    single_put(w, &batch);
    single_check(t, w, &batch);
    single_restore(w, &batch);
}

static void singles_plan(struct tally *t, const struct image *image, size_t step)
{
    void *work = malloc(pun_work_len(1, EVICTED_MAX));
    struct world w;
    size_t nth = 0;

    world_init(&w, image);
    w.evicts = true;
    for (size_t off = 0; off < image->len; off++) {
        if (image->flags[off] & IMAGE_PROBED && nth++ % step == 0)
            single_plan(t, &w, off, work);
    }
    if (text_differs(&w, 0, image->len))
        t->problems++;
    world_free(&w);
    free(work);
}

/* ---- all at once ---- */

static struct pun *all_ask(const struct world *w)
{
    struct pun *puns = calloc(w->image->probed + 1, sizeof(*puns));
    size_t n = 0;

    if (!puns)
        abort();
    for (size_t off = 0; off < w->image->len; off++) {
        if (w->image->flags[off] & IMAGE_PROBED)
            puns[n++] = world_pun(w, off);
    }
    return puns;
}

static int pads_compare(const void *a, const void *b)
{
    uintptr_t x = (*(const struct pun *const *)a)->pad;
    uintptr_t y = (*(const struct pun *const *)b)->pad;

    return x < y ? -1 : x > y;
}

static void pads_check(struct tally *t, const struct pun *puns, size_t count)
{
    const struct pun **sorted = calloc(count + 1, sizeof(struct pun *));
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (puns[i].rung != PUN_NONE && puns[i].pad)
            sorted[n++] = &puns[i];
    }
    qsort(sorted, n, sizeof(sorted[0]), pads_compare);
    for (size_t i = 1; i < n; i++) {
        if (sorted[i]->pad - sorted[i - 1]->pad < PUN_PAD_LEN)
            problem(t, sorted[i], "its pad overlaps another one");
    }
    free(sorted);
}

static void pads_try(struct tally *t, const struct world *w, const struct pun *puns,
                     size_t count)
{
    struct pads_result r = pads_lay(&w->env, puns, count);

    printf(
        "# %zu pads on %zu pages, %zu frames, %zu page tables; %zu bytes of frames and "
        "%zu of heap for each probe; %.2f us each\n",
        r.pads, r.pages, r.frames, r.tables, r.frames * 4096 / count, r.heap / count,
        1e6 * r.seconds / (double)count);
    t->problems += r.problems;
}

/* others_check - check that the instructions without a probe have not changed. */
static void others_check(struct tally *t, const struct world *w)
{
    const struct image *image = w->image;

    for (size_t off = 0; off < image->len; off++) {
        if (image->flags[off] & IMAGE_BOUNDARY && !(image->flags[off] & IMAGE_PROBED) &&
            text_differs(w, off, image->lens[off])) {
            printf("# %#lx: changed\n", image->base + off);
            t->problems++;
        }
    }
}

/* ---- rows of one byte ---- */

static bool is_one_byte(const struct image *image, size_t off)
{
    return off < image->len && image->flags[off] & IMAGE_PROBED && image->lens[off] == 1;
}

/* is_in_full_row - is the instruction at @off in a row where one instruction has to stay
 * an int3? If six instructions of one byte are jumps, the first two have the same
 * displacement, made of four opcodes of jumps. So have the first two of five, if a jump
 * of five bytes is behind them.
 */
static bool is_in_full_row(const struct image *image, size_t off)
{
    size_t start = off, end = off;

    while (start > 0 && is_one_byte(image, start - 1))
        start--;
    while (is_one_byte(image, end))
        end++;
    if (end == off)
        return false;
    return end - start >= 6 ||
           (end - start == 5 && end < image->len && image->flags[end] & IMAGE_PROBED &&
            image->lens[end] == 5);
}

static void all_plan(struct tally *t, const struct image *image)
{
    struct world w;
    struct pun_batch batch = { .env = &w.env, .count = image->probed };
    double start;

    world_init(&w, image);
    batch.puns = all_ask(&w);
    batch.work = malloc(pun_work_len(batch.count, 0));
    start = now();
    pun_plan(&batch);
    t->seconds = now() - start;
    for (size_t i = 0; i < batch.count; i++)
        world_write(&w, &batch.puns[i]);
    for (size_t i = 0; i < batch.count; i++) {
        count(t, &batch.puns[i]);
        plan_check(t, &w, &batch.puns[i]);
        t->explained += batch.puns[i].rung == PUN_NONE &&
                        is_in_full_row(image, batch.puns[i].addr - image->base);
        if (getenv("VERBOSE") && batch.puns[i].rung == PUN_NONE)
            printf("# %#lx: %u bytes, %s: %s\n", batch.puns[i].addr, batch.puns[i].len,
                   is_in_full_row(image, batch.puns[i].addr - image->base)
                       ? "in a full row"
                       : "alone",
                   pun_why_name(batch.puns[i].why));
    }
    pads_check(t, batch.puns, batch.count);
    pads_try(t, &w, batch.puns, batch.count);
    others_check(t, &w);
    free(batch.work);
    free(batch.puns);
    world_free(&w);
}

/* ---- tables ---- */

/* tally_print - print a line for each length: the number of instructions, and for each
 * rung the percentage of them that it serves.
 */
static void tally_print(const struct tally *t, const char *title)
{
    static const char *const lengths[LENGTHS] = { "", "1", "2", "3", "4", ">=5" };

    printf("# %s: %zu of %zu (%.4f %%), %zu evicted, %.2f us each\n", title,
           t->asked - t->failed, t->asked,
           100.0 * (double)(t->asked - t->failed) / (double)t->asked, t->evicted,
           1e6 * t->seconds / (double)t->asked);
    printf("#   %-7s %8s", "bytes", "count");
    for (unsigned rung = 0; rung < PUN_RUNGS; rung++)
        printf(" %8s", pun_rung_name(rung));
    printf("\n");
    for (unsigned len = 1; len < LENGTHS; len++) {
        size_t all = 0;

        for (unsigned rung = 0; rung < PUN_RUNGS; rung++)
            all += t->by[len][rung];
        printf("#   %-7s %8zu", lengths[len], all);
        for (unsigned rung = 0; rung < PUN_RUNGS; rung++)
            printf(" %7.2f%%", all ? 100.0 * (double)t->by[len][rung] / (double)all : 0);
        printf("\n");
    }
}

/* is_enough - have all but @per_million of a million instructions a plan? One more may have
 * none: a sample of a few thousand may contain one of the few in the image.
 */
static bool is_enough(const struct tally *t, size_t per_million)
{
    return (t->failed - !!t->failed) * 1000000 <= t->asked * per_million;
}

/* ---- in random order ---- */

static void churn_check(const struct image *image, size_t step, size_t at_once)
{
    struct churn_result r = churn_run(image, step, at_once);

    printf("# 1 of %zu, %zu at a time: %zu of %zu (%.4f %%), %zu evicted; batches of "
           "%.1f, at most %zu; %zu lost\n",
           step, at_once, r.jumps, r.armed, 100.0 * (double)r.jumps / (double)r.armed,
           r.evicted, (double)r.members / (double)r.changes, r.most, r.lost);
    test_report(r.problems == 0, "in and out in random order, nothing is left behind",
                image);
    /* If probes come one after the other, the later ones find more places taken than in a
     * plan for all at once. */
    test_report((r.armed - r.jumps) * 5000 <= r.armed, "99.98 % are jumps meanwhile",
                image);
}

static void image_check(const struct image *image, size_t step)
{
    struct tally single = { 0 }, all = { 0 };

    singles_plan(&single, image, step);
    tally_print(&single, "one at a time");
    test_report(single.problems == 0, "single plans are what they say", image);
    test_report(is_enough(&single, 20), "99.998 % have a plan of their own", image);
    all_plan(&all, image);
    tally_print(&all, "all at once");
    test_report(all.problems == 0, "plans for all are what they say", image);
    printf("# %zu without a plan are in rows of one byte, %zu are not\n", all.explained,
           all.failed - all.explained);
    test_report(is_enough(&all, 100), "99.99 % have a plan with all others", image);
    churn_check(image, 100, 1);
    churn_check(image, 10, 1);
    if (image->probed > CHURN_MAX)
        return;
    if (step == 1)
        churn_check(image, 1, 1);
    churn_check(image, 1, 25);
}

int main(int argc, char **argv)
{
    size_t step = 1;
    int opt;

    while ((opt = getopt(argc, argv, "q")) != -1) {
        if (opt != 'q')
            return 2;
        step = 64;
    }
    for (int i = optind; i < argc; i++) {
        struct image image;

        if (!image_load(&image, argv[i])) {
            test_report(false, "could be read", &image);
            continue;
        }
        printf("# %s: %zu bytes of text, %zu instructions that may carry a probe\n",
               image.path, image.len, image.probed);
        image_check(&image, step);
        image_free(&image);
    }
    printf("1..%d\n", tests);
    return failures != 0;
}
