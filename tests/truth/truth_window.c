/* truth_window.c - an interval of time with sharp ends on all CPUs.
 *
 * A hit counts twice: in the plugin, when the CPU executes the int3, and a moment later in
 * the engine. An end of the window must not fall in between, on any CPU. So all CPUs meet:
 *
 *   1. each of the others comes, in an interrupt, which no hit can have been interrupted
 *      by, and waits in code without probes
 *   2. one of them, likewise in code without probes, reads the engine's counters and tells
 *      the plugin
 *   3. it lets the others go
 *
 * Nobody may send NMIs meanwhile.
 */
#include "tests/truth/truth_window.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"

struct meeting {
    struct kprobe *const *probes;
    struct truth_record *records;
    size_t count;
    bool opens;
    unsigned expected; /* CPUs that have to come, the acting one left out */
    unsigned waiting;  /* that have come */
    bool is_over;
};

/* The plugin watches where truth_tell() loads from: these mean what they are called. */
extern const uint8_t truth_opened, truth_closed;
const uint8_t truth_opened, truth_closed;

void truth_tell(const volatile uint8_t *what);
NOINLINE void truth_tell(const volatile uint8_t *what)
{
    (void)*what;
}
NOKPROBE(truth_tell);

/* What is counted is the difference between two readings. */
NOKPROBE_INLINE void add(uint64_t *sum, uint64_t counter, bool opens)
{
    *sum += opens ? -counter : counter;
}

NOKPROBE_INLINE void read(struct truth_record *r, const struct kprobe *p, bool opens)
{
    r->addr = p->addr;
    add(&r->hits, READ_ONCE(p->hits), opens);
    for (unsigned cause = 0; cause < MISS_CAUSES; cause++)
        add(&r->missed[cause], READ_ONCE(p->missed[cause]), opens);
}

NOKPROBE_INLINE void act(const struct meeting *m)
{
    if (!m->opens)
        truth_tell(&truth_closed);
    for (size_t i = 0; i < m->count; i++) {
        if (m->opens)
            truth_tell((const uint8_t *)m->probes[i]->addr);
        read(&m->records[i], m->probes[i], m->opens);
    }
    if (m->opens)
        truth_tell(&truth_opened);
}

static void meet(void *arg)
{
    struct meeting *m = arg;

    if (smp_call_regs()) {
        __atomic_add_fetch(&m->waiting, 1, __ATOMIC_RELEASE); /* 1 */
        while (!__atomic_load_n(&m->is_over, __ATOMIC_ACQUIRE))
            pause();
        return;
    }
    while (__atomic_load_n(&m->waiting, __ATOMIC_ACQUIRE) < m->expected)
        pause();
    act(m);                                                /* 2 */
    __atomic_store_n(&m->is_over, true, __ATOMIC_RELEASE); /* 3 */
}
NOKPROBE(meet);

static void hold(struct kprobe *const *probes, struct truth_record *records, size_t count,
                 bool opens)
{
    struct meeting m = { .probes = probes,
                         .records = records,
                         .count = count,
                         .opens = opens,
                         .expected = cpu_count() - 1 };

    smp_call_all(meet, &m);
}

void truth_open(struct kprobe *const *probes, struct truth_record *records, size_t count)
{
    hold(probes, records, count, true);
}

void truth_close(struct kprobe *const *probes, struct truth_record *records, size_t count)
{
    hold(probes, records, count, false);
}
