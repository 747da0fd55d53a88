/* test_marker_misuse.c - functions of a marker do what they must not do, and the
 * code that a marker runs has probes. Either the marker works as before, or a panic
 * names the function.
 */
#include "probes/marker/marker.h"

#include "kernel/sync/spinlock.h"
#include "tests/kernel/ktest.h"
#include "tests/kernel/marked.h"
#include "tests/kernel/own_steps.h"
#include "tests/kernel/return_targets.h"

/* ---- functions that misbehave ---- */

/* look_again - a function of ktest_marked that passes this marker itself. */
static void look_again(void *private, struct marker_call *call)
{
    look(private, call);
    marked(1);
}

KTEST(marker_misuse, a_function_that_passes_its_marker_is_not_called_again)
{
    const struct marker_site *site = insn_of((uintptr_t)marked)->site;
    uint64_t missed = site->missed;

    look_begin();
    marker_connect("ktest_marked", MARKED_FORMAT, look_again, &looked.calls[0]);
    marked(1);
    marker_disconnect("ktest_marked", look_again, &looked.calls[0]);
    ktest_report(looked.calls[0] == 1, "called once");
    ktest_report(site->missed == missed + 1, "and the other time is counted");
}

static int answers[3];

/* switch_it - a function that switches its own marker; each switch would wait for the end
 * of this function.
 */
static void switch_it(void *private, struct marker_call *call)
{
    look(private, call);
    answers[0] = look_connect(1);
    answers[1] = look_disconnect(0);
    answers[2] = marker_disconnect("ktest_marked", switch_it, private);
}

KTEST(marker_misuse, a_function_may_not_switch_markers)
{
    look_begin();
    marker_connect("ktest_marked", MARKED_FORMAT, switch_it, &looked.calls[0]);
    marked(1);
    ktest_report(looked.calls[0] == 1 && answers[0] == -EDEADLK &&
                     answers[1] == -EDEADLK && answers[2] == -EDEADLK,
                 "its own least of all: %d %d %d", answers[0], answers[1], answers[2]);
    ktest_report(!marker_disconnect("ktest_marked", switch_it, &looked.calls[0]),
                 "behind it, it may");
    marked(1);
    ktest_report(looked.calls[0] == 1, "and then it is off");
}

static uint64_t pass_marked(uint64_t x UNUSED)
{
    marked(1);
    return 0;
}

static int pass_marker(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    marked(1);
    return 0;
}

static void fault_once(void *private, struct marker_call *call)
{
    look(private, call);
    if (looked.calls[0] == 1)
        __asm__ volatile("ud2");
}

/* A handler passes the marker, whose function faults: so the engine gives the handler up
 * while the marker runs.
 */
KTEST(marker_misuse, a_handler_that_is_given_up_inside_of_it)
{
    const struct marker_site *site = insn_of((uintptr_t)marked)->site;
    uint64_t missed = site->missed;
    struct kprobe p = { .addr = (uintptr_t)marked_again, .pre_handler = pass_marker };
    int preempt = preempt_count();

    look_begin();
    marker_connect("ktest_marked", MARKED_FORMAT, fault_once, &looked.calls[0]);
    register_kprobe(&p);
    for (unsigned i = 0; i < 3; i++)
        marked_again(1);
    marked(1);
    ktest_report(p.flags & KPROBE_FLAG_TRIPPED, "its handler is given up");
    ktest_report(!marker_is_running() && preempt_count() == preempt,
                 "the marker runs no longer");
    ktest_report(looked.calls[0] == 5 && site->missed == missed,
                 "and is passed as before: %lu", looked.calls[0]);
    unregister_kprobe(&p);
    ktest_report(!marker_disconnect("ktest_marked", fault_once, &looked.calls[0]),
                 "its function may go");
}

static uintptr_t latest_sp, earlier_sp;

static void note_sp(void *private, struct marker_call *call)
{
    look(private, call);
    latest_sp = call->sp;
}

static void give_up_earlier(struct pt_regs *regs UNUSED)
{
    marker_given_up(earlier_sp, earlier_sp + 1);
}

static NOINLINE uint64_t pass_deeper(void)
{
    volatile uint64_t room[32];

    room[0] = marked(1);
    return room[0];
}

/* Between any two instructions a handler of an NMI is given up, whose stack lies where the
 * marker was passed before.
 */
KTEST(marker_misuse, a_handler_given_up_on_top_ends_only_its_own)
{
    unsigned long irqs;

    look_begin();
    marker_connect("ktest_marked", MARKED_FORMAT, look, &looked.calls[0]);
    marker_connect("ktest_marked", MARKED_FORMAT, note_sp, &looked.calls[1]);
    irqs = irq_save();
    pass_deeper();
    earlier_sp = latest_sp;
    own_steps_watch(give_up_earlier);
    return_stepped(pass_marked, 1);
    own_steps_unwatch();
    irq_restore(irqs);
    ktest_report(!marker_is_running() && latest_sp != earlier_sp,
                 "the marker has been left");
    ktest_report(looked.calls[0] == 2 && looked.calls[1] == 2,
                 "its functions were called");
    marker_disconnect("ktest_marked", look, &looked.calls[0]);
    marker_disconnect("ktest_marked", note_sp, &looked.calls[1]);
}

static bool turn_on;

static void leave_interrupts(void *private, struct marker_call *call)
{
    look(private, call);
    if (turn_on)
        sti();
    else
        cli();
}

KTEST(marker_misuse, what_a_function_does_to_interrupts_ends_with_it)
{
    unsigned long flags;
    bool on, off;

    look_begin();
    marker_connect("ktest_marked", MARKED_FORMAT, leave_interrupts, &looked.calls[0]);
    turn_on = false;
    marked(1);
    on = irqs_enabled();
    sti();
    turn_on = true;
    flags = irq_save();
    marked(1);
    off = !irqs_enabled();
    irq_restore(flags);
    marker_disconnect("ktest_marked", leave_interrupts, &looked.calls[0]);
    ktest_report(on && off && looked.calls[0] == 2, "on stays on, off stays off: %d %d",
                 on, off);
}

static bool is_inside, may_end;

static void take_long(void *private, struct marker_call *call)
{
    uint64_t end = clock_ns() + 30 * 1000000;

    look(private, call);
    WRITE_ONCE(is_inside, true);
    while (clock_ns() < end)
        pause();
    WRITE_ONCE(may_end, true);
    WRITE_ONCE(is_inside, false);
}

static int pass_once(void *unused UNUSED)
{
    marked(1);
    return 0;
}

static void takes_long(const char *which)
{
    unsigned cpu = cpu_count() - 1;
    int tid, err;

    is_inside = may_end = false;
    marker_connect("ktest_marked", MARKED_FORMAT, take_long, &looked.calls[0]);
    tid = ktest_thread(pass_once, NULL, BIT(cpu));
    while (!READ_ONCE(is_inside) && !READ_ONCE(may_end))
        thread_yield();
    err = marker_disconnect("ktest_marked", take_long, &looked.calls[0]);
    ktest_report(!err && READ_ONCE(may_end) && !READ_ONCE(is_inside),
                 "%s: it has ended when it is disconnected", which);
    thread_join(tid, NULL);
}

/* When a function is disconnected and another one stays, no text is changed. Then there
 * is no change of text that would wait for the CPUs, so disconnecting must wait itself.
 */
KTEST(marker_misuse, one_that_takes_long_is_waited_for)
{
    look_begin();
    takes_long("the only one");
    look_connect(1);
    takes_long("beside another one");
    ktest_report(looked.calls[0] == 2 && looked.calls[1] == 1, "both were called");
    marked(1);
    ktest_report(looked.calls[0] == 2 && looked.calls[1] == 2, "the other one still is");
    look_disconnect(1);
}

/* ---- probes on what a marker runs ---- */

static uint64_t handler_calls;

static int pass_again(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    handler_calls++;
    marked(2);
    return 0;
}

static int count_return(struct kretprobe_instance *ri UNUSED, struct pt_regs *regs UNUSED)
{
    handler_calls++;
    return 0;
}

KTEST(marker_misuse, a_handler_on_it_may_pass_it)
{
    struct kprobe p = { .addr = insn_of((uintptr_t)marked)->insn,
                        .pre_handler = pass_again };
    uint64_t hits;

    look_begin();
    handler_calls = 0;
    look_connect(0);
    register_kprobe(&p);
    for (unsigned i = 0; i < 5; i++)
        marked(1);
    hits = kprobe_hits(&p);
    unregister_kprobe(&p);
    look_disconnect(0);
    ktest_report(handler_calls == 5 && hits == 5 && p.nmissed == 5,
                 "%lu hits, %lu missed", hits, p.nmissed);
    ktest_report(looked.calls[0] == 10 && !looked.wrong,
                 "its function is called in either place: %lu", looked.calls[0]);
}

KTEST(marker_misuse, its_functions_may_have_probes)
{
    static const struct {
        void *fn;
        uint64_t hits;
    } on[] = { { (void *)look, 10 },
               { (void *)marker_run, 10 },
               { (void *)marked_twice, 10 } };
    struct kretprobe rp = { .handler = count_return, .kp.addr = (uintptr_t)marked };
    unsigned failed = 0;

    look_connect(0);
    for (size_t i = 0; i < ARRAY_LEN(on); i++) {
        struct kprobe p = { .addr = (uintptr_t)on[i].fn, .pre_handler = pass_marker };

        look_begin();
        failed += register_kprobe(&p) != 0;
        for (unsigned n = 0; n < 10; n++)
            marked(1);
        failed += kprobe_hits(&p) < on[i].hits || looked.calls[0] < 10 || looked.wrong;
        failed += unregister_kprobe(&p) != 0;
    }
    ktest_report(!failed, "whose handlers pass the marker: %u", failed);
    look_begin();
    handler_calls = 0;
    failed = register_kretprobe(&rp) != 0;
    for (unsigned n = 0; n < 10; n++)
        failed += marked(n) != n + 3;
    unregister_kretprobe(&rp);
    look_disconnect(0);
    ktest_report(!failed && handler_calls == 10 && looked.calls[0] == 10 && !looked.wrong,
                 "and it may be in a function with a return probe: %lu returns",
                 handler_calls);
}

/* ---- what ends in a panic ---- */

static void fault_always(void *private UNUSED, struct marker_call *call UNUSED)
{
    __asm__ volatile("ud2");
}

static void sleep_inside(void *private UNUSED, struct marker_call *call UNUSED)
{
    thread_sleep_ns(1000);
    barrier(); /* prevents a tail call, so that the report shows this function */
}

static struct spinlock its_lock = SPINLOCK_INIT;

static void take_lock(void *private UNUSED, struct marker_call *call UNUSED)
{
    spin_lock(&its_lock);
    spin_unlock(&its_lock);
}

KTEST_FATAL(marker_misuse, a_function_that_faults_is_named)
{
    marker_connect("ktest_marked", MARKED_FORMAT, fault_always, NULL);
    marked(1);
}

KTEST_FATAL(marker_misuse, a_function_that_sleeps_is_named)
{
    marker_connect("ktest_marked", MARKED_FORMAT, sleep_inside, NULL);
    marked(1);
}

KTEST_FATAL(marker_misuse, a_function_that_takes_the_lock_around_it_is_named)
{
    marker_connect("ktest_marked", MARKED_FORMAT, take_lock, NULL);
    spin_lock(&its_lock);
    marked(1);
}
