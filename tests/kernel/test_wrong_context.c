/* test_wrong_context.c - each public function that waits is called in each context where
 * it could not wait. It returns EDEADLK, and the text, the probes and their counts are as
 * they were. This is so on any number of CPUs, and whether or not a mutex is free.
 */
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/trap.h"
#include "kernel/sync/spinlock.h"
#include "probes/core/registry.h"
#include "probes/film/film.h"
#include "probes/jump/optimize.h"
#include "probes/marker/static_key.h"
#include "probes/text/text_part.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/buffer/snapshot.h"
#include "probes/trace/live/live.h"
#include "probes/xmc/xmc.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/loaded.h"
#include "tests/kernel/logged.h"
#include "tests/kernel/marked.h"
#include "tests/kernel/nmi_send.h"
#include "tests/kernel/text_sum.h"
#include "tests/kernel/watched.h"

KTEST_TARGET(target, a, a * 7 + 3)

KTEST_TARGET(other, a, a * 9 + 3)

KTEST_TARGET(passed, a, a * 11 + 3)

static void touched(struct watch *w UNUSED, struct pt_regs *regs UNUSED)
{
}

extern struct static_key wrong_context_key;
STATIC_KEY(wrong_context_key);

/* ---- the functions ---- */

static struct kprobe in, out;          /* registered, and not registered */
static struct kretprobe rp_in, rp_out; /* likewise */
static struct jprobe jp_out;
static struct watch w_in, w_out;
static struct text_part part;
static uint8_t byte;
static int joinable; /* the tid of a thread that may be joined */

static int nothing(void *arg UNUSED)
{
    return 0;
}

static long jprobe_handler(long a UNUSED)
{
    jprobe_return();
}

/* Some functions have no registered object here: a wrong context is found first. */
#define VERBS(X)                                                                         \
    X(register_kprobe(&out))                                                             \
    X(register_kprobes_some(&(struct kprobe *){ &out }, 1, NULL, NULL))                  \
    X(unregister_kprobe(&in))                                                            \
    X(unregister_kprobes(&(struct kprobe *){ &in }, 1))                                  \
    X(disable_kprobe(&in))                                                               \
    X(disable_kprobes(&(struct kprobe *){ &in }, 1))                                     \
    X(enable_kprobe(&in))                                                                \
    X(kprobe_exchange(NULL, 0))                                                          \
    X(kprobes_switch(false))                                                             \
    X(optimize_switch(true))                                                             \
    X(optimize_set_method(OPTIMIZE_OFF))                                                 \
    X(register_kretprobe(&rp_out))                                                       \
    X(unregister_kretprobe(&rp_in))                                                      \
    X(register_jprobe(&jp_out))                                                          \
    X(unregister_jprobe(&jp_out))                                                        \
    X(register_watch(&w_out))                                                            \
    X(unregister_watch(&w_in))                                                           \
    X(disable_watch(&w_in))                                                              \
    X(enable_watch(&w_in))                                                               \
    X(xmc((uintptr_t)other, &byte, 1))                                                   \
    X(xmc_why((uintptr_t)other, &byte, 1, XMC_STORE, NULL))                              \
    X(look_connect(1))                                                                   \
    X(look_disconnect(1))                                                                \
    X(static_key_switch(&wrong_context_key, true))                                       \
    X(static_keys_come(&(struct static_key_part){ 0 }))                                  \
    X(marker_comes(&(struct marker_part){ 0 }))                                          \
    X(marker_connect_all(NULL, 0))                                                       \
    X(marker_disconnect_all(NULL, 0))                                                    \
    X(xmc_batch(NULL, 0, NULL))                                                          \
    X(text_comes(&part))                                                                 \
    X(film_start((uintptr_t)other, 0))                                                   \
    X(film_stop())                                                                       \
    X(LOAD(guest))                                                                       \
    X(module_unload("guest", loaded_why))                                                \
    X(thread_join(joinable, NULL))                                                       \
    X(thread_set_affinity(UINT64_MAX))                                                   \
    X(live_command("p:wrong/context vfs_read"))                                          \
    X(live_clear())                                                                      \
    X(live_switch(NULL, 0, true))                                                        \
    X(live_set_filter(NULL, "0", false))                                                 \
    X(live_trigger_write(NULL, "traceoff"))                                              \
    X(live_clear_hists(NULL))                                                            \
    X(buffer_reset(-1))                                                                  \
    X(buffer_set_size(-1, 64))                                                           \
    X(trace_set_clock("local", 5))                                                       \
    X(snapshot_prepare())

#define VERB_NAME(call) #call,
static const char *const verbs[] = { VERBS(VERB_NAME) };

static long answers[ARRAY_LEN(verbs)];
static unsigned asked;

#define VERB_CALL(call) answers[i++] = call;
static NOINLINE void ask_all(void)
{
    unsigned i = 0;

    VERBS(VERB_CALL)
    asked++;
}

/* ---- the contexts ---- */

static void with_interrupts_off(void)
{
    unsigned long flags = irq_save();

    ask_all();
    irq_restore(flags);
}

static void with_preemption_off(void)
{
    preempt_disable();
    ask_all();
    preempt_enable();
}

static void with_a_spinlock(void)
{
    static struct spinlock lock;

    spin_lock(&lock);
    ask_all();
    spin_unlock(&lock);
}

/* While the field is set, this CPU is in the context in which the stub for gdb runs. */
static void while_held(void)
{
    unsigned long flags = irq_save();

    this_cpu()->held = 1;
    ask_all();
    this_cpu()->held = 0;
    irq_restore(flags);
}

#define VECTOR_ASK VECTOR_ISA(15)

static void irq(struct pt_regs *regs UNUSED)
{
    ask_all();
    lapic_eoi();
}

static bool nmi_is_ours;

static bool nmi(struct pt_regs *regs UNUSED)
{
    if (!nmi_is_ours)
        return false;
    nmi_is_ours = false;
    ask_all();
    return true;
}

static void wait_asked(unsigned before)
{
    while (READ_ONCE(asked) == before)
        pause();
}

static void in_interrupt(void)
{
    unsigned before = asked;

    if (!irq_name(VECTOR_ASK))
        irq_set_handler(VECTOR_ASK, "wrong context", irq);
    lapic_send(this_cpu()->apic_id, LAPIC_IPI | VECTOR_ASK);
    wait_asked(before);
}

static void in_nmi(void)
{
    unsigned before = asked;

    nmi_take(nmi);
    nmi_is_ours = true;
    preempt_disable();
    lapic_send(this_cpu()->apic_id, LAPIC_NMI);
    wait_asked(before);
    preempt_enable();
}

static int pre(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    ask_all();
    return 0;
}

static void light_handler(struct kprobe *p UNUSED, uintptr_t ip UNUSED)
{
    ask_all();
}

static void post(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED,
                 unsigned long flags UNUSED)
{
    ask_all();
}

static void hit(struct kprobe *p)
{
    p->addr = (uintptr_t)passed;
    passed(register_kprobe(p));
    unregister_kprobe(p);
}

static void in_a_pre_handler(void)
{
    hit(&(struct kprobe){ .pre_handler = pre });
}

static void in_a_light_handler(void)
{
    hit(&(struct kprobe){ .light_handler = light_handler });
}

static void in_a_post_handler(void)
{
    hit(&(struct kprobe){ .post_handler = post });
}

static int returned(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    ask_all();
    return 0;
}

static void in_a_return_handler(void)
{
    struct kretprobe rp = { .kp.addr = (uintptr_t)passed, .handler = returned };

    passed(register_kretprobe(&rp));
    unregister_kretprobe(&rp);
}

static void watch_handler(struct watch *w UNUSED, struct pt_regs *regs UNUSED)
{
    ask_all();
}

static void in_a_watch_handler(void)
{
    struct watch w = watch_of(&watched.target, WATCH_WRITE, 8, watch_handler);

    register_watch(&w);
    watched_store(1);
    unregister_watch(&w);
}

static void marker_function(void *private UNUSED, struct marker_call *call UNUSED)
{
    ask_all();
}

static void in_a_marker_function(void)
{
    marker_connect("ktest_marked", MARKED_FORMAT, marker_function, NULL);
    marked(1);
    marker_disconnect("ktest_marked", marker_function, NULL);
}

static const struct wrong_context {
    const char *name;
    void (*run)(void);
} contexts[] = {
    { "interrupts off", with_interrupts_off },
    { "preemption off", with_preemption_off },
    { "a spinlock taken", with_a_spinlock },
    { "held by a debugger", while_held },
    { "an interrupt", in_interrupt },
    { "an NMI", in_nmi },
    { "a pre-handler", in_a_pre_handler },
    { "a light handler", in_a_light_handler },
    { "a post-handler", in_a_post_handler },
    { "a handler of returns", in_a_return_handler },
    { "a handler of a watch", in_a_watch_handler },
    { "a function of a marker", in_a_marker_function },
};

/* ---- all pairs ---- */

static bool all_refused(void)
{
    bool all = true;

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        all &= answers[i] == -EDEADLK;
        if (answers[i] != -EDEADLK)
            ktest_note("%s: %ld", verbs[i], answers[i]);
    }
    return all;
}

static void set_up(void)
{
    in = (struct kprobe){ .addr = (uintptr_t)target };
    rp_in = (struct kretprobe){ .kp.addr = (uintptr_t)target };
    w_in = watch_of(&watched.neighbour, WATCH_WRITE, 8, touched);
    ktest_report(!register_kprobe(&in) && !register_kretprobe(&rp_in) &&
                     !register_watch(&w_in),
                 "a probe, a return probe, a watch");
}

/* fill_in - set what the functions would register. */
static void fill_in(void)
{
    out = (struct kprobe){ .addr = (uintptr_t)other };
    rp_out = (struct kretprobe){ .kp.addr = (uintptr_t)other };
    jp_out = (struct jprobe){ .kp.addr = (uintptr_t)other,
                              .entry = (void *)(uintptr_t)jprobe_handler };
    w_out = watch_of(&watched.target, WATCH_WRITE, 8, touched);
    byte = *(const uint8_t *)(uintptr_t)other;
    memset(answers, 0, sizeof(answers));
}

static void each_in(const struct wrong_context *context)
{
    uint64_t text = text_sum(), hits = kprobe_hits(&in), calls = asked;
    size_t sites = registry_count();

    fill_in();
    context->run();
    ktest_report(asked == calls + 1 && all_refused(), "%s: all are refused",
                 context->name);
    ktest_report(text_sum() == text && registry_count() == sites &&
                     kprobe_hits(&in) == hits && kprobes_are_on() && !out.site &&
                     in.site && !in.flags,
                 "%s: nothing has changed", context->name);
}

KTEST(wrong_context, each_function_in_each)
{
    bool on = optimize_is_on();

    optimize_switch(false); /* no jump is made meanwhile */
    joinable = ktest_thread(nothing, NULL, 0);
    set_up();
    for (size_t i = 0; i < ARRAY_LEN(contexts); i++)
        each_in(&contexts[i]);
    ktest_report(!unregister_watch(&w_in) && !unregister_kretprobe(&rp_in) &&
                     !unregister_kprobe(&in),
                 "outside, a thread takes them away");
    ktest_report(!thread_join(joinable, NULL), "and joins");
    optimize_switch(on);
}

KTEST(wrong_context, the_log_has_the_name_and_the_reason)
{
    unsigned held = logged("live_clear() is refused with EDEADLK", "a debugger"),
             off = logged("live_clear() is refused with EDEADLK", "interrupts are off");

    fill_in();
    with_interrupts_off();
    while_held();
    ktest_report(logged("live_clear() is refused with EDEADLK", "interrupts are off") ==
                     off + 1,
                 "with interrupts off");
    ktest_report(logged("live_clear() is refused with EDEADLK", "a debugger") == held,
                 "not while the machine is held: the log's lock may be taken");
}
