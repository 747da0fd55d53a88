/* truth_window.c - a window, that is, an interval of time whose ends are
 * exact on all CPUs.
 *
 * A hit is counted twice: by the plugin, when the CPU executes the int3 or the jump, and
 * a moment later by the engine. On no CPU may an end of the window fall between the two.
 * So all CPUs meet:
 *
 *   1. One CPU calls all other CPUs. Each of them comes in an interrupt, and waits in
 *      code without probes. This interrupt cannot have come during a hit by an int3, but
 *      it can have come during a hit by a jump. A thread that does not run may also have
 *      been preempted during a hit, or at its end. Then the CPUs part, and meet again a
 *      millisecond later. Within this time an idle thread goes on, too.
 *   2. The calling CPU, also in code without probes, reads the counters of the engine and
 *      tells the plugin.
 *   3. It lets the other CPUs go.
 *
 * No CPU may send NMIs meanwhile.
 */
#include "tests/truth/truth_window.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/thread/sched.h"
#include "kernel/thread/thread.h"
#include "probes/jump/platform_jump.h"
#include "probes/trace/live/live.h"

uint8_t *truth_pause;

struct meeting {
    struct kprobe *const *probes;
    const uintptr_t *past;
    struct truth_record *records;
    size_t count;
    enum { OPENS, TELLS, CLOSES } what;
    unsigned expected; /* CPUs that have to come: all but the calling one */
    unsigned waiting;  /* CPUs that have come */
    bool in_a_hit;     /* a CPU or thread is in a hit, perhaps counted by one side only */
    bool is_over;
    const uint64_t *counters[MAX_CPUS]; /* of each CPU, of hits without handlers */
};

/* The plugin sees from which address truth_tell() loads. A load from one of these is an
 * order, see exec_count.c.
 */
extern const uint8_t truth_opened, truth_unlinked, truth_closed;
const uint8_t truth_opened, truth_unlinked, truth_closed;

void truth_tell(const volatile uint8_t *what);
NOINLINE void truth_tell(const volatile uint8_t *what)
{
    (void)*what;
}
NOKPROBE(truth_tell); /* a question about all functions is about those of modules, too */

/* add - subtract @counter from *@sum when the window opens, and add it when the window
 * closes. So *@sum gets the difference.
 */
static inline void add(uint64_t *sum, uint64_t counter, bool opens)
{
    *sum += opens ? -counter : counter;
}

static inline void read(const struct meeting *m, struct truth_record *r,
                        const struct kprobe *p)
{
    bool opens = m->what == OPENS;

    if (opens)
        r->addr = p->addr;
    add(&r->hits, READ_ONCE(p->hits), opens);
    for (unsigned cpu = 0; p->counter && cpu <= m->expected; cpu++)
        add(&r->hits, READ_ONCE(m->counters[cpu][p->counter]), opens);
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        add(&r->missed[cause], READ_ONCE(p->missed[cause]), opens);
    if (truth_pause) {
        uint64_t own = READ_ONCE(CONTAINER_OF(p, const struct live_probe, rp.kp)->own);

        add(&r->own, own, opens);
        add(&r->hits, -own, opens);
    }
}

static inline void act(const struct meeting *m)
{
    if (m->what == CLOSES)
        truth_tell(&truth_closed);
    if (m->what != TELLS && truth_pause)
        WRITE_ONCE(*truth_pause, m->what == CLOSES);
    for (size_t i = 0; i < m->count; i++) {
        if (m->what != CLOSES)
            truth_tell((const uint8_t *)m->probes[i]->addr);
        if (m->what != CLOSES && m->past[i])
            truth_tell((const uint8_t *)m->past[i]);
        if (m->what != TELLS)
            read(m, &m->records[i], m->probes[i]);
    }
    if (m->what == OPENS)
        truth_tell(&truth_opened);
}

/* ---- step 1: is a CPU or a thread in a hit? ---- */

static bool is_inside(uintptr_t ip)
{
    return plat_exec_contains(ip) || plat_is_detour(ip);
}

static void look_at_preempted(struct thread *t, void *arg)
{
    struct meeting *m = arg;

    if (t->state != THREAD_RUNNING && t->state != THREAD_DEAD &&
        t->left_by == SWITCH_IRQ && is_inside(t->preempted_regs->ip))
        m->in_a_hit = true;
}

/* look_at_interrupted - note a hit if @regs was interrupted in the code of a detour, or
 * with preemption off, as handlers run.
 */
static void look_at_interrupted(const struct pt_regs *regs, struct meeting *m)
{
    if (preempt_count() != 0 || is_inside(regs->ip))
        __atomic_store_n(&m->in_a_hit, true, __ATOMIC_RELAXED);
}

/* ---- the meeting ---- */

static void meet(void *arg)
{
    struct meeting *m = arg;

    if (smp_call_regs()) {
        look_at_interrupted(smp_call_regs(), m);
        __atomic_add_fetch(&m->waiting, 1, __ATOMIC_RELEASE); /* step 1 */
        while (!__atomic_load_n(&m->is_over, __ATOMIC_ACQUIRE))
            pause();
        return;
    }
    while (__atomic_load_n(&m->waiting, __ATOMIC_ACQUIRE) < m->expected)
        pause();
    thread_for_each(look_at_preempted, m);
    if (!__atomic_load_n(&m->in_a_hit, __ATOMIC_RELAXED))
        act(m);                                            /* step 2 */
    __atomic_store_n(&m->is_over, true, __ATOMIC_RELEASE); /* step 3 */
}

static void hold(struct meeting m)
{
    m.expected = cpu_count() - 1;
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        m.counters[cpu] = percpu_counter(cpu, 0);
    for (;;) {
        m.waiting = 0;
        m.in_a_hit = m.is_over = false;
        smp_call_all(meet, &m);
        if (!m.in_a_hit)
            return;
        thread_sleep_ns(1000000);
    }
}

void truth_open(struct kprobe *const *probes, const uintptr_t *past,
                struct truth_record *records, size_t count)
{
    hold((struct meeting){ .probes = probes,
                           .past = past,
                           .records = records,
                           .count = count,
                           .what = OPENS });
}

void truth_tell_links(struct kprobe *const *probes, const uintptr_t *past, size_t count)
{
    hold((struct meeting){
        .probes = probes, .past = past, .count = count, .what = TELLS });
}

void truth_forget_links(void)
{
    truth_tell(&truth_unlinked);
}

void truth_close(struct kprobe *const *probes, struct truth_record *records, size_t count)
{
    hold((struct meeting){
        .probes = probes, .records = records, .count = count, .what = CLOSES });
}
