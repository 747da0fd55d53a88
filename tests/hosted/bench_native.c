/* bench_native.c - `make bench-native`: measure the cost of a jump on the processor of
 * the host, with the engine in a process. Prints sonde.native.NAME VALUE UNIT, and the
 * goal if there is one; see docs/bench.md.
 *
 * A round measures a loop with the probe and the same loop without it; the difference is
 * the cost of the hits. It also measures a loop of calls, so that the cost can be given
 * in calls. Each figure is the median of all rounds.
 */
#include "probes/bench/bench_condition.h"
#include "probes/core/insn_slot.h"
#include "probes/core/life.h"
#include "probes/jump/jump_site.h"
#include "probes/jump/optimize.h"
#include "probes/jump/pad.h"
#include "probes/jump/platform_jump.h"
#include "probes/jump/pun.h"
#include "probes/program/program.h"
#include "probes/returns/returns.h"
#include "probes/trace/language/event.h"
#include "probes/trace/ring/ring.h"
#include "tests/hosted/bench_clock.h"
#include "tests/hosted/fixture.h"
#include "tests/hosted/posix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVICTED_MAX 64
#define PAGE_LEN 4096

static uint64_t handled;

static int count(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    handled++;
    return 0;
}

/* count_with_image - its code shows that it wants an image; the error code there is 0. */
static int count_with_image(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    handled++;
    return (int)regs->orig_ax;
}

static void count_after(struct kprobe *p, struct pt_regs *regs,
                        unsigned long flags UNUSED)
{
    count(p, regs);
}

static void count_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    handled++;
}

static NOINLINE void note(uintptr_t ip)
{
    __asm__ volatile("" ::"r"(ip));
    handled++;
}

/* count_light_by_call - as count_light(), but call a function. So the detour has to save
 * more registers of the program.
 */
static void count_light_by_call(struct kprobe *p UNUSED, uintptr_t ip)
{
    note(ip);
    __asm__ volatile("");
}

static const struct kind {
    const char *name;
    void (*fn)(void);
    unsigned offset; /* of the probed instruction */
    kprobe_pre_handler_t pre;
    kprobe_post_handler_t post;
    kprobe_light_handler_t light;
    double goal; /* the cost of a hit should be at most that of @goal calls; 0: no goal */
} kinds[] = {
    { "count", bench_dead, 0, NULL, NULL, NULL, 1.0 },
    { "count_flags", bench_live, 3, NULL, NULL, NULL, 1.0 },
    { "light", bench_dead, 0, NULL, NULL, count_light, 2.5 },
    { "light_flags", bench_live, 3, NULL, NULL, count_light, 2.5 },
    { "light_calls", bench_dead, 0, NULL, NULL, count_light_by_call, 0 },
    { "no_image", bench_dead, 0, count, NULL, NULL, 2.5 },
    { "image", bench_dead, 0, count_with_image, NULL, NULL, 6.0 },
    { "image_flags", bench_live, 3, count_with_image, NULL, NULL, 0 },
    { "image_posthandler", bench_dead, 0, count_with_image, count_after, NULL, 0 },
};
#define PLAN_GOAL 5.0 /* us */

static unsigned goals, missed;

/* figure_print - print a figure. @goal: it should be at most that; 0: there is no goal */
static void figure_print(const char *name, const char *part, double value,
                         const char *unit, double goal)
{
    printf("sonde.native.%s%s %.2f %s", name, part, value, unit);
    if (goal > 0) {
        printf("  goal %.2f%s", goal, value > goal ? "  MISSED" : "");
        goals++;
        missed += value > goal;
    }
    printf("\n");
}

/* processor_print - print the processor, because the figures of two processors cannot be
 * compared.
 */
static void processor_print(void)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256] = "";

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "model name", 10) == 0)
            break;
    if (file)
        fclose(file);
    if (strchr(line, ':'))
        printf("#%s", strchr(line, ':') + 1);
}

static void probe_set(struct kprobe *p, const struct kind *kind)
{
    *p = (struct kprobe){ .addr = (uintptr_t)kind->fn + kind->offset,
                          .pre_handler = kind->pre,
                          .light_handler = kind->light,
                          .post_handler = kind->post };
    if (register_kprobe(p))
        abort();
    optimize_run();
    if (!(p->flags & KPROBE_FLAG_OPTIMIZED))
        abort();
}

/* measure - print the cost of a hit, in nanoseconds and in calls. */
static void measure(const struct kind *kind)
{
    double ns[ROUNDS], ratio[ROUNDS];
    struct kprobe p;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t empty = loop_ns(bench_empty, bench_return);
        uint64_t call = loop_ns(bench_calls, bench_return);
        uint64_t without = loop_ns(bench_calls, kind->fn), with;

        probe_set(&p, kind);
        with = loop_ns(bench_calls, kind->fn);
        if (kprobe_hits(&p) != CALLS || unregister_kprobe(&p))
            abort();
        ns[i] = (double)(int64_t)(with - without) / CALLS;
        ratio[i] = (double)(int64_t)(with - without) / (double)(int64_t)(call - empty);
    }
    figure_print(kind->name, "", median(ns), "ns", 0);
    figure_print(kind->name, ".calls", median(ratio), "ratio", kind->goal);
}

/* measure_return - print the cost of a function that follows its own return as a return
 * probe would.
 */
static void measure_return(const char *name, void (*fn)(void))
{
    double ns[ROUNDS], ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t empty = loop_ns(bench_empty, bench_return);
        uint64_t call = loop_ns(bench_calls, bench_return);
        uint64_t with = loop_ns(bench_calls, fn);

        ns[i] = (double)(int64_t)(with - call) / CALLS;
        ratio[i] = (double)(int64_t)(with - call) / (double)(int64_t)(call - empty);
    }
    figure_print(name, "", median(ns), "ns", 0);
    figure_print(name, ".calls", median(ratio), "ratio", 0);
}

/* ---- conditions ---- */

void marker_enter(void);

/* marker_enter - never called, because no marker is on. */
void marker_enter(void)
{
    abort();
}

static const struct {
    const char *name;
    void (*loop)(uint64_t count);
} conditions[] = {
    { "marker_off.immediate", bench_condition_marker },
    { "marker_off.key", bench_condition_key },
    { "marker_off.load", bench_condition_load },
    { "marker_off.call", bench_condition_call },
};

static uint64_t passes_ns(void (*loop)(uint64_t count))
{
    uint64_t start = clock_ns();

    loop(CALLS);
    return clock_ns() - start;
}

/* measure_condition - print the cost of a false condition, in nanoseconds and in
 * calls.
 */
static void measure_condition(const char *name, void (*loop)(uint64_t count))
{
    double ns[ROUNDS], ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t none = passes_ns(bench_condition_none);
        uint64_t call = passes_ns(bench_condition_call);
        uint64_t with = passes_ns(loop);

        ns[i] = (double)(int64_t)(with - none) / CALLS;
        ratio[i] = (double)(int64_t)(with - none) / (double)(int64_t)(call - none);
    }
    figure_print(name, "", median(ns), "ns", 0);
    figure_print(name, ".calls", median(ratio), "ratio", 0);
}

/* ---- events ---- */

/* An event with three registers writes a record with a head into a ring. One `rdtsc`
 * gives the time of the record.
 */
#define EVENT_GOAL 10.0 /* calls, without the `rdtsc` */

static struct ring *ring;

static uint64_t tsc(void)
{
    return __builtin_ia32_rdtsc();
}

static struct ring_page *page_new(void)
{
    return aligned_alloc(RING_PAGE_LEN, RING_PAGE_LEN);
}

static void page_free(struct ring_page *page)
{
    free(page);
}

static void *zeroed(size_t len)
{
    return calloc(1, len);
}

static const struct ring_ops ring_ops = { .clock = tsc,
                                          .page_new = page_new,
                                          .page_free = page_free,
                                          .alloc = zeroed,
                                          .free = free };

struct event_record {
    struct record_probe probe;
    uint64_t args[3];
};

static struct kprobe_room event_begin(struct kprobe *p UNUSED, uintptr_t ip,
                                      const struct pt_regs *regs UNUSED)
{
    struct event_record *record = ring_write(ring, sizeof(*record));

    if (!record)
        return (struct kprobe_room){ 0 };
    record->probe.head = (struct record_head){ .type = 256, .pid = 1 };
    record->probe.ip = ip;
    return (struct kprobe_room){ record, ring };
}

static void event_end(void *token)
{
    ring_commit(token);
}

#define ARG(i, source) KPROBE_STORE(8, offsetof(struct event_record, args[i]), source, 0)

static const struct kprobe_op event_ops[] = {
    KPROBE_RESERVE(event_begin, 4), ARG(0, KPROBE_REG_DI),    ARG(1, KPROBE_REG_SI),
    ARG(2, KPROBE_REG_DX),          KPROBE_COMMIT(event_end),
};

static void tsc_loop(uint64_t calls, void (*unused)(void) UNUSED)
{
    for (uint64_t i = 0; i < calls; i++)
        __asm__ volatile("" ::"r"(tsc()));
}

static const struct kprobe_op if_false_ops[] = {
    KPROBE_IF(KPROBE_REG_DI, KPROBE_E, 99999999, 0), KPROBE_END
};

static const struct {
    const char *name;
    const struct kprobe_op *ops;
    uint16_t count;
    bool has_stamp; /* the time of one `rdtsc` is subtracted */
    double goal;
} programs[] = {
    { "if_false", if_false_ops, 2, false, 0 },
    { "event_3regs", event_ops, 5, true, EVENT_GOAL },
};

/* measure_program - print the cost of a hit that runs the program @n, in nanoseconds and in
 * calls.
 */
static void measure_program(size_t n)
{
    double ns[ROUNDS], ratio[ROUNDS];
    struct kprobe_program program;
    struct kprobe p;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t empty = loop_ns(bench_empty, bench_return);
        uint64_t call = loop_ns(bench_calls, bench_return);
        uint64_t stamp = programs[n].has_stamp ? loop_ns(tsc_loop, NULL) - empty : 0;
        uint64_t without = loop_ns(bench_calls, bench_dead), with;

        program =
            (struct kprobe_program){ .ops = programs[n].ops, .count = programs[n].count };
        p = (struct kprobe){ .addr = (uintptr_t)bench_dead, .program = &program };
        if (register_kprobe(&p))
            abort();
        optimize_run();
        with = loop_ns(bench_calls, bench_dead);
        if (kprobe_hits(&p) != CALLS || unregister_kprobe(&p))
            abort();
        ns[i] = (double)(int64_t)(with - without - stamp) / CALLS;
        ratio[i] =
            (double)(int64_t)(with - without - stamp) / (double)(int64_t)(call - empty);
    }
    figure_print(programs[n].name, "", median(ns), "ns", 0);
    figure_print(programs[n].name, ".calls", median(ratio), "ratio", programs[n].goal);
}

/* ---- entry and return ---- */

static int write_event(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs)
{
    struct record_probe *record = ring_write(ring, sizeof(*record));

    if (!record)
        return 0;
    record->head = (struct record_head){ .type = 256, .pid = 1 };
    record->ip = regs->ip;
    ring_commit(ring);
    return 0;
}

/* measure_both - print the cost of an event at the entry and one at the return of a
 * function, with their two clock reads, as uftrace has them.
 */
static void measure_both(void)
{
    double ns[ROUNDS], ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        struct kretprobe rp = { .kp.addr = (uintptr_t)bench_dead,
                                .entry_handler = write_event,
                                .handler = write_event };
        uint64_t empty = loop_ns(bench_empty, bench_return);
        uint64_t call = loop_ns(bench_calls, bench_return);
        uint64_t without = loop_ns(bench_calls, bench_dead), with;

        if (register_kretprobe(&rp))
            abort();
        optimize_run();
        if (!(rp.kp.flags & KPROBE_FLAG_OPTIMIZED))
            abort();
        with = loop_ns(bench_calls, bench_dead);
        if (kprobe_hits(&rp.kp) != CALLS || unregister_kretprobe(&rp))
            abort();
        ns[i] = (double)(int64_t)(with - without) / CALLS;
        ratio[i] = (double)(int64_t)(with - without) / (double)(int64_t)(call - empty);
    }
    figure_print("event_both", "", median(ns), "ns", 0);
    figure_print("event_both", ".calls", median(ratio), "ratio", 0);
}

/* ---- among many sites ---- */

/* probes/bench/crowd.asm */
extern const struct {
    void (*loop)(uint64_t calls);
    uintptr_t first;
    size_t stride, count;
} bench_among_all;
extern uintptr_t bench_among_called[2]; /* start of the first function, end of the last */

#define CROWD_MAX 10000u
#define CROWD_ROUNDS 21 /* each measures specialized detours, and shared code */
#define CROWD_CALLS 40000u

static struct kprobe crowd[CROWD_MAX];

/* crowd_ns - call the first @count functions in turn.
 * Return: the time of one call, in nanoseconds: the median of five measurements.
 */
static double crowd_ns(size_t count)
{
    double ns[5];

    bench_among_called[0] = bench_among_all.first;
    bench_among_called[1] = bench_among_all.first + count * bench_among_all.stride;
    for (size_t i = 0; i < 5; i++) {
        uint64_t start = clock_ns();

        bench_among_all.loop(CROWD_CALLS);
        ns[i] = (double)(clock_ns() - start) / CROWD_CALLS;
    }
    qsort(ns, 5, sizeof(ns[0]), by_value);
    return ns[2];
}

/* crowd_register - put a probe on each function.
 * @own: each has a specialized detour; false: all detours call shared code
 */
static void crowd_register(bool own, bool light)
{
    static struct kprobe *ps[CROWD_MAX];

    plat_lock(PLAT_PROBES);
    insn_slot_detour_limit(own ? INSN_SLOT_PAGES_MAX : 0);
    plat_unlock(PLAT_PROBES);
    for (size_t i = 0; i < CROWD_MAX; i++) {
        crowd[i] =
            (struct kprobe){ .addr = bench_among_all.first + i * bench_among_all.stride,
                             .pre_handler = light ? NULL : count_with_image,
                             .light_handler = light ? count_light : NULL };
        ps[i] = &crowd[i];
    }
    if (register_kprobes(ps, CROWD_MAX))
        abort();
    optimize_run();
    for (size_t i = 0; i < CROWD_MAX; i++)
        if (!(crowd[i].flags & KPROBE_FLAG_OPTIMIZED) ||
            jump_site(crowd[i].site)->specialized != own)
            abort();
}

static void crowd_unregister(void)
{
    static struct kprobe *ps[CROWD_MAX];

    for (size_t i = 0; i < CROWD_MAX; i++)
        ps[i] = &crowd[i];
    if (unregister_kprobes(ps, CROWD_MAX))
        abort();
}

static const size_t crowd_counts[] = { 1, 100, 1000, CROWD_MAX };
#define CROWD_COUNTS (sizeof(crowd_counts) / sizeof(crowd_counts[0]))

/* measure_crowd - print the cost of a hit when many sites are hit in turn, with
 * specialized detours and with shared code.
 */
static void measure_crowd(const char *name, bool light)
{
    static double ns[2][CROWD_COUNTS][ROUNDS], ratio[CROWD_COUNTS][ROUNDS];
    double without[CROWD_COUNTS];

    for (size_t i = 0; i < CROWD_COUNTS; i++)
        without[i] = crowd_ns(crowd_counts[i]);
    for (int round = 0; round < CROWD_ROUNDS; round++) {
        for (int own = 0; own < 2; own++) {
            crowd_register(own, light);
            for (size_t i = 0; i < CROWD_COUNTS; i++)
                ns[own][i][round] = crowd_ns(crowd_counts[i]) - without[i];
            crowd_unregister();
        }
        for (size_t i = 0; i < CROWD_COUNTS; i++)
            ratio[i][round] = ns[1][i][round] / ns[0][i][round];
    }
    for (size_t i = 0; i < CROWD_COUNTS; i++) {
        char part[64];

        snprintf(part, sizeof(part), "_of_%zu.own", crowd_counts[i]);
        figure_print(name, part, median_of(ns[1][i], CROWD_ROUNDS), "ns", 0);
        snprintf(part, sizeof(part), "_of_%zu.shared", crowd_counts[i]);
        figure_print(name, part, median_of(ns[0][i], CROWD_ROUNDS), "ns", 0);
        snprintf(part, sizeof(part), "_of_%zu.own_by_shared", crowd_counts[i]);
        figure_print(name, part, median_of(ratio[i], CROWD_ROUNDS), "ratio", 0);
    }
}

/* ---- planning ---- */

static bool byte_at(void *arg UNUSED, uintptr_t addr, uint8_t *byte)
{
    return plat_text_contains(addr, 1) && !plat_text_read(byte, addr, 1);
}

static bool pad_may_be(void *arg UNUSED, uintptr_t pad)
{
    return pad_is_free(pad);
}

static bool is_padding(void *arg UNUSED, uintptr_t addr)
{
    struct plat_symbol sym;

    return plat_text_contains(addr, 1) && plat_symbol_at(addr, &sym) &&
           !plat_is_entry(addr);
}

static bool ask(void *arg UNUSED, uintptr_t addr, struct pun *out)
{
    struct probe_reject why;
    struct insn insn;

    if (kprobe_check(addr, &insn, &why))
        return false;
    out->addr = addr;
    out->len = insn.len;
    out->is_call = insn.kind == INSN_CALL_REL;
    memcpy(out->bytes, insn.bytes, insn.len);
    return true;
}

/* plan - print the time to plan one jump: the mean over all instructions of the fixtures,
 * each planned alone.
 */
static void plan(void)
{
    static uintptr_t addrs[FIXTURES_TEXT_MAX];
    static double ns[ROUNDS];
    struct pun puns[1 + EVICTED_MAX];
    struct plat_pad_range range;
    struct pun_env env = { .pad_is_free = pad_may_be,
                           .byte_at = byte_at,
                           .is_padding = is_padding,
                           .neighbour = ask };
    struct fixture first;
    size_t count = fixture_get(0, &first) ? fixture_boundaries(addrs) : 0;
    struct pun_batch batch = { .puns = puns,
                               .count = 1,
                               .evicted = puns + 1,
                               .evicted_max = EVICTED_MAX,
                               .env = &env,
                               .work = malloc(pun_work_len(1, EVICTED_MAX)) };

    plat_pad_range(&range);
    env.pads_start = range.start;
    env.pads_end = range.end;
    env.hole_start = range.hole_start;
    env.hole_end = range.hole_end;
    plat_lock(PLAT_PROBES);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t spent = 0;

        for (size_t j = 0; j < count; j++) {
            uint64_t start;

            puns[0] = (struct pun){ .detour = range.hole_end - PAGE_LEN };
            if (!ask(NULL, addrs[j], puns))
                abort();
            start = clock_ns();
            pun_plan(&batch);
            spent += clock_ns() - start;
        }
        ns[i] = (double)spent / (double)count;
    }
    plat_unlock(PLAT_PROBES);
    free(batch.work);
    figure_print("plan", "", median(ns) / 1000, "us", PLAN_GOAL);
}

int main(void)
{
    processor_print();
    posix_init();
    optimize_set_method(OPTIMIZE_PUN);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        measure(&kinds[i]);
    measure_return("return_exchanged", bench_return_exchanged);
    measure_return("return_called", bench_return_called);
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
        measure_condition(conditions[i].name, conditions[i].loop);
    ring = ring_new(64, true, &ring_ops);
    if (!ring)
        abort();
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        measure_program(i);
    measure_both();
    measure_crowd("image", false);
    measure_crowd("light", true);
    plan();
    printf("# %u goals, %u missed\n", goals, missed);
    return 0;
}
