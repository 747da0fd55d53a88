/* show.c - prints records as text, in the way that the options say. */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/ksyms.h"
#include "kernel/thread/thread.h"
#include "probes/trace/buffer/buffer.h"
#include "probes/trace/buffer/clocks.h"
#include "probes/trace/files/files.h"
#include "probes/trace/files/files_parts.h"

#include <stdio.h>

COLD char *trace_room(struct seq *s, size_t len)
{
    if (!s->err)
        s->err = seq_resize(s, s->len + len);
    return s->err ? NULL : s->text + s->len - len;
}

static void write_seq(void *to, const char *text, size_t len)
{
    seq_write(to, text, len);
}

void trace_printer(struct print *p, struct seq *s)
{
    *p = (struct print){
        .write = write_seq,
        .to = s,
        .symbol = ksyms_text,
        .comm = comm_find,
        .cycles = trace_clock_is_cycles(),
        .brief = !trace_option_is(OPTION_CONTEXT_INFO),
        .no_irq_info = !trace_option_is(OPTION_IRQ_INFO),
        .offsets = trace_option_is(OPTION_SYM_OFFSET),
        .addresses = trace_option_is(OPTION_SYM_ADDR),
        .classic = trace_option_is(OPTION_CLASSIC),
    };
}

static void print_merged(struct seq *s, struct merge *m)
{
    struct merged one;
    struct print p;
    bool was_own;

    /* Else the records of events within this loop could be more than the loop prints. */
    was_own = thread_set_own_work(true);
    trace_printer(&p, s);
    while (!s->err && buffer_merge_next(m, &one)) {
        const void *record = one.event.data;

        print_lost(&p, one.ring, one.missed);
        print_record(&p, event_of(record, one.event.len, one.event.time), one.ring,
                     one.event.time, record, one.event.len);
    }
    thread_set_own_work(was_own);
    if (m->how == MERGE_TAKE)
        return; /* the next record that is read reports these losses */
    trace_printer(&p, s);
    for (unsigned i = 0; i < m->count / 2; i++)
        print_lost(&p, i, buffer_lost_behind(m, i));
}

/* print_head - print the header. As on Linux, it counts the events of all CPUs, even if
 * the events of only one CPU follow.
 */
static void print_head(struct seq *s, enum buffer_set set)
{
    uint64_t entries = 0, written = 0;
    struct print p;

    for (unsigned i = 0; i < cpu_count(); i++) {
        struct ring_stats stats;

        buffer_stats(i, set, &stats);
        entries += stats.entries;
        written += stats.entries + stats.overwritten;
    }
    trace_printer(&p, s);
    print_header(&p, "nop", entries, written, cpu_count());
}

static int show_locked(struct seq *s, int cpu, enum buffer_set set, enum merge_how how)
{
    struct merge m;
    int err = buffer_merge(&m, cpu, set, how);

    if (err)
        return err;
    if (how == MERGE_LOOK)
        print_head(s, set);
    print_merged(s, &m);
    buffer_merge_end(&m);
    return 0;
}

int trace_show_cpu(struct seq *s, int cpu, enum merge_how how)
{
    bool pause = how == MERGE_LOOK && trace_option_is(OPTION_PAUSE_ON_TRACE);
    int err;

    trace_lock();
    if (pause)
        buffer_stop(BUFFER_PAUSED, true);
    err = show_locked(s, cpu, BUFFER_LIVE, how);
    if (pause)
        buffer_stop(BUFFER_PAUSED, false);
    trace_unlock();
    return err;
}

int trace_show_snapshot(struct seq *s)
{
    return show_locked(s, -1, BUFFER_SNAPSHOT, MERGE_LOOK);
}
