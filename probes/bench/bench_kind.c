/* bench_kind.c - registers the probes for each kind of hit that `bench hit` measures. */
#include "kernel/base/err.h"
#include "probes/bench/bench.h"
#include "probes/jump/optimize.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/live/live.h"

#include <stdio.h>

uint64_t bench_handled;

static int count_pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    bench_handled++;
    return 0;
}

/* Its code shows that it wants an image, in which the error code is 0. */
static int count_with_image(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    bench_handled++;
    return (int)regs->orig_ax;
}

void bench_fill_pre(struct kprobe *p, bool with_image)
{
    p->pre_handler = with_image ? count_with_image : count_pre;
}

void bench_count_light(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    bench_handled++;
}

static void do_nothing_post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                            unsigned long flags UNUSED)
{
}

static int count_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    bench_handled++;
    return 0;
}

static int do_nothing_entry(struct kretprobe_instance *ri UNUSED,
                            struct pt_regs *regs UNUSED)
{
    return 0;
}

static long count_jprobe(long x UNUSED)
{
    bench_handled++;
    jprobe_return();
}

/* Programs. The conditions are about rsp's neighbour rbp, of which it is known that it is not
 * 0: the loops have frames.
 */
#define PROGRAM(name, words_count, ...)                                                  \
    static const struct kprobe_op name##_ops[] = { __VA_ARGS__ };                        \
    static const struct kprobe_program name = { .ops = name##_ops,                       \
                                                .count = ARRAY_LEN(name##_ops),          \
                                                .words = words_count }

PROGRAM(if_true, 1, KPROBE_IF(KPROBE_REG_BP, KPROBE_NE, 0, 1), KPROBE_COUNT(0));
PROGRAM(if_false, 1, KPROBE_IF(KPROBE_REG_BP, KPROBE_E, 0, 1), KPROBE_COUNT(0));
PROGRAM(every_10, 2, KPROBE_EVERY(0, 10, 1), KPROBE_COUNT(1));
PROGRAM(log2_hist, 65, KPROBE_KEY_LOG2(KPROBE_REG_BP), KPROBE_COUNT_KEYED(0));
PROGRAM(sum, 1, KPROBE_SUM(0, KPROBE_REG_BP, 0));
PROGRAM(least, 1, KPROBE_MIN(0, KPROBE_REG_BP, 0));
PROGRAM(memory, 1, KPROBE_GET(KPROBE_REG_SP), KPROBE_LOAD(8, 0),
        KPROBE_SUM(0, KPROBE_VALUE, 0));

/* An instruction is stepped only if it has a post-handler. The instruction of
 * bench_targets_long has seven bytes and becomes a jump to its detour. That of
 * bench_targets_lea has four bytes and becomes a jump to a pad that leads to the detour.
 */
/* A question is a histogram of an event that is not recorded. */
#define QUESTION(kind_name, spec)                                                        \
    {                                                                                    \
        kind_name, bench_targets_long, .jump = true, .event = "a=%bp",                   \
                                       .trigger = "hist:" spec                           \
    }

const struct bench_kind bench_kinds[] = {
    { "int3_boostable", bench_targets_lea, .probes = 1 },
    { "int3_emulated", bench_targets_jmp, .probes = 1 },
    { "int3_unboostable", bench_targets_shift, .probes = 1, .post = do_nothing_post },
    { "int3_tf", bench_targets_shift, .probes = 1, .post = do_nothing_post,
      .engine = STEP_TF },
    { "int3_posthandler", bench_targets_lea, .probes = 1, .post = do_nothing_post },
    { "int3_emulated_posthandler", bench_targets_jmp, .probes = 1,
      .post = do_nothing_post },
    { "int3_two_probes", bench_targets_lea, .probes = 2 },
    { "kret_int3", bench_targets_lea, .returns = true },
    { "kret_int3_entryh", bench_targets_lea, .returns = true, .entry = do_nothing_entry },
    { "kret_int3_unboostable", bench_targets_shift, .probes = 1, .post = do_nothing_post,
      .returns = true },
    { "kprobe_kret_int3", bench_targets_lea, .probes = 1, .returns = true },
    { "jprobe_int3_unboostable", bench_targets_shift, .probes = 1,
      .post = do_nothing_post, .jprobe = true },
    { "jprobe_int3", bench_targets_lea, .jprobe = true },
    { "jprobe_kret_int3_unboostable", bench_targets_shift, .probes = 1,
      .post = do_nothing_post, .returns = true, .jprobe = true },
    { "jprobe_kret_int3", bench_targets_lea, .returns = true, .jprobe = true },
    { "opt", bench_targets_long, .probes = 1, .jump = true },
    { "opt_no_image", bench_targets_long, .probes = 1, .jump = true, .no_image = true },
    { "opt_pad", bench_targets_lea, .probes = 1, .jump = true },
    { "opt_count", bench_targets_long, .probes = 1, .jump = true, .silent = true },
    { "opt_two_counts", bench_targets_long, .probes = 2, .jump = true, .silent = true },
    { "program_if", bench_targets_long, .probes = 1, .jump = true, .program = &if_true },
    { "program_if_false", bench_targets_long, .probes = 1, .jump = true,
      .program = &if_false },
    { "program_every", bench_targets_long, .probes = 1, .jump = true,
      .program = &every_10 },
    { "program_log2", bench_targets_long, .probes = 1, .jump = true,
      .program = &log2_hist },
    { "program_sum", bench_targets_long, .probes = 1, .jump = true, .program = &sum },
    { "program_min", bench_targets_long, .probes = 1, .jump = true, .program = &least },
    { "program_memory", bench_targets_long, .probes = 1, .jump = true,
      .program = &memory },
    { "program_int3", bench_targets_lea, .probes = 1, .program = &if_true },
    { "opt_light", bench_targets_long, .probes = 1, .jump = true, .light = true },
    { "opt_posthandler", bench_targets_long, .probes = 1, .post = do_nothing_post,
      .jump = true },
    { "opt_two_probes", bench_targets_long, .probes = 2, .jump = true },
    { "kret_opt", bench_targets_long, .returns = true, .jump = true },
    { "kret_opt_entryh", bench_targets_long, .returns = true, .entry = do_nothing_entry,
      .jump = true },
    { "kprobe_kret_opt", bench_targets_long, .probes = 1, .returns = true, .jump = true },
    { "kret_opt_posthandler", bench_targets_long, .probes = 1, .post = do_nothing_post,
      .returns = true, .jump = true },
    { "jprobe_opt", bench_targets_long, .jprobe = true, .jump = true },
    { "jprobe_opt_posthandler", bench_targets_long, .probes = 1, .post = do_nothing_post,
      .jprobe = true, .jump = true },
    { "jprobe_kret_opt", bench_targets_long, .returns = true, .jprobe = true,
      .jump = true },
    { "event_int3_0args", bench_targets_lea, .event = "" },
    { "event_int3_3regs", bench_targets_lea, .event = "a=%di b=%si c=%dx" },
    { "event_opt_0args", bench_targets_long, .jump = true, .event = "" },
    { "event_opt_3regs", bench_targets_long, .jump = true, .event = "a=%di b=%si c=%dx" },
    { "event_opt_3mem", bench_targets_long, .jump = true,
      .event = "a=+0(%sp) b=+8(%sp) c=+16(%sp)" },
    QUESTION("question_count", "keys=common_cpu"),
    QUESTION("question_sum", "keys=common_cpu:vals=a"),
    QUESTION("question_hist", "keys=a.log2"),
    QUESTION("question_by", "keys=__probe_ip,common_cpu"),
    QUESTION("question_by_arg", "keys=a"),
    QUESTION("question_if_false", "keys=common_cpu if a == 1"),
    QUESTION("question_if_true", "keys=common_cpu if a > 1"),
    QUESTION("question_stack", "keys=stacktrace"),
};
const size_t bench_kind_count = ARRAY_LEN(bench_kinds);

/* ---- the probes of one kind, at one address ---- */

static void set_fill(struct bench_set *set, const struct bench_kind *kind, uintptr_t addr)
{
    *set = (struct bench_set){ .kind = kind };
    set->ret.kp.addr = addr;
    set->ret.handler = count_return;
    set->ret.entry_handler = kind->entry;
    set->jprobe.kp.addr = addr;
    set->jprobe.entry = (void *)count_jprobe;
    for (unsigned i = 0; i < kind->probes; i++) {
        set->probes[i].addr = addr;
        if (kind->program) {
            set->program = *kind->program;
            set->probes[i].program = &set->program;
        } else if (kind->light) {
            set->probes[i].light_handler = bench_count_light;
        } else if (!kind->silent) {
            bench_fill_pre(&set->probes[i], !kind->no_image);
        }
        set->probes[i].post_handler = kind->post;
        set->ps[i] = &set->probes[i];
    }
}

/* event_probe - return the only probe of the event of @set. */
static struct kprobe *event_probe(const struct bench_set *set)
{
    return &CONTAINER_OF(set->event->probes.next, struct live_probe, sibling)->rp.kp;
}

static int event_register(struct bench_set *set, uintptr_t addr)
{
    char line[80];
    int err;

    snprintf(line, sizeof(line), "p:bench/hit 0x%lx %s", (unsigned long)addr,
             set->kind->event);
    trace_lock();
    err = live_command(line);
    if (!err)
        set->event = live_event_find("bench", "hit");
    if (set->event && set->kind->trigger)
        err = live_trigger_write(set->event, set->kind->trigger);
    else if (set->event)
        err = live_switch(&set->event, 1, true);
    trace_unlock();
    return err;
}

static void event_unregister(struct bench_set *set)
{
    trace_lock();
    live_clear_hists(set->event);
    live_switch(&set->event, 1, false);
    live_command("-:bench/hit");
    buffer_reset(-1);
    trace_unlock();
}

/* runs_as_told - check that each probe is reached as its kind says: by a jump, or not. */
static bool runs_as_told(const struct bench_set *set)
{
    const struct bench_kind *kind = set->kind;
    uint32_t wanted = kind->jump ? KPROBE_FLAG_OPTIMIZED : 0, differ = 0;

    for (unsigned i = 0; i < kind->probes; i++)
        differ |= set->probes[i].flags ^ wanted;
    if (kind->returns)
        differ |= set->ret.kp.flags ^ wanted;
    if (kind->jprobe)
        differ |= set->jprobe.kp.flags ^ wanted;
    if (kind->event)
        differ |= event_probe(set)->flags ^ wanted;
    return !(differ & KPROBE_FLAG_OPTIMIZED);
}

int bench_set_register(struct bench_set *set, const struct bench_kind *kind,
                       uintptr_t addr)
{
    int err;

    set_fill(set, kind, addr);
    err = register_kprobes(set->ps, kind->probes);
    if (!err && kind->returns)
        err = register_kretprobe(&set->ret);
    if (!err && kind->jprobe)
        err = register_jprobe(&set->jprobe);
    if (!err && kind->event)
        err = event_register(set, addr);
    if (err)
        return err;
    optimize_run();
    set->before = bench_set_hits(set);
    return runs_as_told(set) ? 0 : -EIO;
}

void bench_set_unregister(struct bench_set *set)
{
    if (set->event)
        event_unregister(set);
    if (set->kind->jprobe)
        unregister_jprobe(&set->jprobe);
    if (set->kind->returns)
        unregister_kretprobe(&set->ret);
    unregister_kprobes(set->ps, set->kind->probes);
}

uint64_t bench_set_hits(const struct bench_set *set)
{
    bool silent = set->kind->silent || set->kind->program;
    uint64_t hits = silent ? 0 : bench_handled;

    for (unsigned i = 0; silent && i < set->kind->probes; i++)
        hits += kprobe_hits(&set->probes[i]);

    if (set->event)
        hits = kprobe_hits(event_probe(set));
    return hits - set->before;
}
