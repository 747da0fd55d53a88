/* live.h - owns the events that exist: the probes that lines of kprobe_events have made,
 * and the filters and triggers that are attached to the events.
 *
 * A line makes one probe. Probes with the same name form one event. Records, filters and
 * triggers belong to an event. The table in probes/trace/README.md shows the life of an
 * event.
 *
 * Hits take no lock. They read a struct live_attached, which is never changed but
 * replaced by a new one. The old one is freed after quiescence, when no hit can use it
 * any more. A probe is freed after the engine has unregistered it: then no handler of it
 * runs any more.
 *
 * Context of all: thread. A function may say otherwise.
 * Locks of all:   the trace lock held.
 * Fields:  T the trace lock   I immutable   a any context, atomically
 */
#pragma once

#include "kernel/base/list.h"
#include "probes/kprobe.h"
#include "probes/trace/language/def.h"
#include "probes/trace/language/event.h"
#include "probes/trace/language/filter.h"
#include "probes/trace/language/hist.h"
#include "probes/trace/language/trigger.h"
#include "probes/watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_event;
struct live_program;

/* Has a watch an address? */
enum live_claim { LIVE_WITHOUT, LIVE_CLAIMED /* a hit changes it */, LIVE_WITH };

/* A probe, which one line has made. */
struct live_probe {
    struct kretprobe rp;               /* a kprobe uses only its first field, rp.kp */
    struct live_program *program;      /* [T] or NULL: see live_program.c */
    const struct kprobe_program *in_c; /* [a] of it, unless the engine runs it */
    struct watch watch;       /* def->is_watch: used in place of the fields above */
    uint64_t hits, misses;    /* [T] of the watch, before it got its present register */
    uint64_t own;             /* [a] see live_own(); of programs that have gone */
    enum live_claim claim;    /* [a] of the watch: see live_watch.c */
    struct live_event *event; /* [I] */
    struct def *def;          /* [I] */
    char *mark;               /* [I] of a marker: its format; else NULL */
    bool is_registered;  /* [T] false if there is no code at its address. A watch is only
                         * registered while its event is armed: registers are few. */
    struct list all;     /* [T] all lines, in the order in which they were written */
    struct list sibling; /* [T] the probes of the same event */
};

struct live_trigger {
    struct trigger *line;      /* [I] except its count */
    struct filter *filter;     /* [I] or NULL */
    struct hist *hist;         /* [I] of TRIGGER_HIST */
    struct live_event *other;  /* [I] the event that is switched, or NULL */
    struct filter_field field; /* [I] of TRIGGER_SET_WATCH and TRIGGER_CLEAR_WATCH */
};

/* The filter and the triggers of an event, for its hits. All of it is immutable. */
struct live_attached {
    struct filter *filter; /* NULL: each hit is recorded */
    bool needs_record; /* the filter or a trigger reads the record before it is kept */
    unsigned count;
    struct live_trigger *trigger[]; /* the newest first; histograms last */
};

/* Why the record of a hit is missing or incomplete. */
enum live_loss {
    LIVE_LOST_RING,   /* the ring had no room */
    LIVE_LOST_LONG,   /* the arguments are longer than a page */
    LIVE_LOST_NESTED, /* more nested hits than there is scratch room for */
    LIVE_FAULT,       /* not lost: values that could not be read */
    LIVE_CUT,         /* not lost: strings that did not fit */
    LIVE_NOT_SET,     /* not lost: a trigger could not give the watch an address */
    LIVE_LOSSES,
};

/* live_loss_name - return the name of a cause, "ring", "long", ... Context: any. */
const char *live_loss_name(enum live_loss cause);

struct live_event {
    struct event event;
    const struct live_attached *attached; /* [a] NULL: neither filter nor trigger */
    bool soft_disabled;                   /* [a] hits are not recorded */
    bool armed;                           /* [T] its probes are enabled */
    unsigned setters;           /* [T] triggers that give the watch an address */
    unsigned soft_users;        /* [T] triggers, of any event, that need it armed */
    unsigned fixed;             /* [I] bytes of a record without its strings */
    bool has_strings;           /* [I] */
    uint64_t lost[LIVE_LOSSES]; /* [a] */
    struct list probes;         /* [T] of struct live_probe, at least one */
    struct list link;           /* [T] all events, the newest first */
    char *filter_block;         /* [T] the filter_block() of a refused filter, or NULL */
    void *files;                /* [T] for files/events.c */
    struct live_event *next;    /* [T] the next event in the same bucket of names */
    char group[DEF_NAME_MAX], name[DEF_NAME_MAX]; /* [I] */
};

extern const struct def_host live_host;
extern struct error_log live_errors;

/* live_error - note a refusal in the log of errors. */
void live_error(const char *subsystem, const char *text, const char *command,
                unsigned column);

/* live_set_files - set the functions that add and remove the files of an event.
 * @add:    returns 0; -EEXIST; -ENOMEM
 * @remove: returns 0; -EBUSY a file is open
 * Context: boot.
 */
void live_set_files(int (*add)(struct live_event *e),
                    int (*remove)(struct live_event *e));

/* The functions below that return an errno return -EDEADLK where they cannot wait:
 * kernel/sync/wait_check.h.
 */

/* ---- lines ---- */

/* live_command - carry out a line of kprobe_events, which defines or deletes probes.
 * Return: 0; a negative errno, noted in the log as Linux does.
 */
int live_command(const char *line);
/* live_clear - delete the probes of all lines. Return: 0; a negative errno: all are left;
 * -EBUSY: an event is enabled or in use.
 */
int live_clear(void);

/* live_add_marks - make an event of each marker of the kernel, and of each marker of a
 * module while the module is loaded. Takes the trace lock.
 * live_add_mark - make the event of one marker. Return: 0; -EEXIST an event has that name
 * already; -EINVAL, -ENOMEM.
 */
void live_add_marks(void);
int live_add_mark(const char *name, const char *format);
/* live_publish - make the event of @p, which no line of kprobe_events has made. Return: 0;
 * -EEXIST, -ENOMEM, -ENOSPC.
 * live_withdraw - delete the event of such a probe, and @p. Return: 0; -EBUSY it is in use.
 */
int live_publish(struct live_probe *p);
int live_withdraw(struct live_probe *p);
/* live_synth_command - carry out a line of synthetic_events.
 * Return: 0; -EINVAL, -EEXIST, noted in the log; -ENOENT, -EBUSY, -ENOMEM.
 * live_synth_clear - delete all synthetic events. Return: 0; -EBUSY one is in use.
 * live_synth_next - return the one after @p; with NULL: the first. NULL at the end.
 * live_synth_find - find one by its name. Return: NULL: there is none.
 * live_synth_probe - return the probe of one. Context: any.
 */
int live_synth_command(const char *line);
int live_synth_clear(void);
struct live_probe *live_synth_next(const struct live_probe *p);
struct hist_synth *live_synth_find(const char *name, size_t len);
struct live_probe *live_synth_probe(const struct hist_synth *synth);
/* live_mark_wish - return the request that connects or disconnects the marker @p.
 * Context: any.
 */
struct marker_wish live_mark_wish(struct live_probe *p);

/* live_count_loss - count @n hits whose record is missing or incomplete. Context: any. */
static inline void live_count_loss(struct live_event *e, enum live_loss cause, uint64_t n)
{
    __atomic_add_fetch(&e->lost[cause], n, __ATOMIC_RELAXED);
}

/* live_watch_set, live_watch_clear - carry out a trigger of a hit: the watch of t->other has
 * from now on the address of the record, or none.
 * Context: any.
 */
void live_watch_set(struct live_trigger *t, const uint8_t *record);
void live_watch_clear(struct live_trigger *t, const uint8_t *record);

/* live_probe_next - return the line after @p, in the order in which lines were written.
 * With NULL: the first line. Return: NULL at the end.
 */
struct live_probe *live_probe_next(const struct live_probe *p);
/* live_event_next - return the event after @e; the newest is the first. With NULL: the
 * first event. Return: NULL at the end.
 * Context: any. The trace lock is held, perhaps by a thread that calls this CPU.
 */
struct live_event *live_event_next(const struct live_event *e);
/* live_event_find - find an event by its group and name. Return: NULL: there is none. */
struct live_event *live_event_find(const char *group, const char *name);
/* live_probe_misses - return how many hits ran no handler. For a return probe it adds the
 * calls that were not followed to their return. Context: any.
 */
uint64_t live_probe_misses(const struct live_probe *p);
/* live_probe_hits - return how many hits ran a handler. Context: any. */
uint64_t live_probe_hits(const struct live_probe *p);
/* live_event_probe - return the first probe of @e. A watch has no other. Context: any. */
static inline struct live_probe *live_event_probe(const struct live_event *e)
{
    return list_first(&e->probes, struct live_probe, sibling);
}
/* live_mark - return the only probe of @e if @e is a marker; else NULL. Context: any. */
static inline struct live_probe *live_mark(const struct live_event *e)
{
    struct live_probe *p = live_event_probe(e);

    return p->mark ? p : NULL;
}
/* live_watch_find - find the watch that a trigger calls @name. If several groups have an
 * event of that name, Linux's group comes first. Return: its event; NULL: there is no
 * such watch.
 */
struct live_event *live_watch_find(const char *name);

/* ---- switching ---- */

/* live_switch - start or stop recording the hits of @count events, with one round of
 * synchronisation for all of them.
 * Return: 0; a negative errno: -ENOMEM, or that of a watch or marker that was refused.
 */
int live_switch(struct live_event *const *events, size_t count, bool on);
/* live_hold, live_release - keep @e armed for a trigger, and end that. Whether the hits
 * are recorded is another matter.
 * Return: as live_switch().
 */
int live_hold(struct live_event *e);
void live_release(struct live_event *e);
/* live_is_soft - tell whether a trigger keeps @e armed. */
static inline bool live_is_soft(const struct live_event *e)
{
    return e->soft_users > 0;
}

/* ---- filters and triggers ---- */

/* live_set_filter - set the filter of @e. As on Linux, a refused filter removes the
 * present filter as well, and the file `filter` then shows the filter_block() of the
 * refused one.
 * @text:     the filter; "0" removes the filter
 * @of_group: the filter was written for all events of the group: if it is refused, the
 *            log says only that it does not suit an event of the group
 *
 * Return: 0; a negative errno, noted in the log.
 */
int live_set_filter(struct live_event *e, const char *text, bool of_group);
/* live_trigger_write - carry out a line of the file `trigger`.
 * Return: 0; a negative errno.
 */
int live_trigger_write(struct live_event *e, const char *text);
/* live_clear_hists - remove the histograms of @e, and the triggers that switch
 * histograms. Linux does this when `trigger` is opened with truncation.
 * Context: thread.  Locks: the trace lock held.  Return: 0; -EDEADLK.
 */
int live_clear_hists(struct live_event *e);

/* ---- hits ---- */

/* live_probe_fill - set the handlers of @p according to its definition. */
void live_probe_fill(struct live_probe *p);
/* live_mark_hit - handle a hit of a marker: a CPU has passed it. @private is its struct
 * live_probe. Context: any.
 */
struct marker_call;
void live_mark_hit(void *private, struct marker_call *call);
/* live_hit_probe - the handler of a hit of a probe for which no program can be made.
 * live_preempt_count - the preemption count that the program had at the hit, whose handler
 * runs. Context: any, preemption off. It is called as in a handler.
 */
int live_hit_probe(struct kprobe *kp, struct pt_regs *regs);
uint8_t live_preempt_count(void);
/* live_is_plain - is @p a probe at an instruction? Context: any. */
static inline bool live_is_plain(const struct live_probe *p)
{
    return !p->def->is_return && !p->def->is_watch && !p->mark;
}
/* live_scratch_init - allocate room for records that are read before they are kept.
 * Return: 0; -ENOMEM.
 */
int live_scratch_init(void);

/* ---- programs ---- */

/* live_program_update - give the probes of @count events programs for what is attached to the
 * events and recorded now. If an event is not armed, and not @arming either, its probes lose
 * their programs. It cannot fail: without memory there are no programs.
 * Context: thread. It waits for quiescence.
 */
void live_program_update(struct live_event *const *events, size_t count, bool arming);
/* live_program_drop - let live_hit.c do what the hits of @p do, which needs no memory. What
 * the program of @p has counted goes to the histograms. Context: as above.
 */
void live_program_drop(struct live_probe *p);
/* live_window_give - if the histogram begins paused, let programs ask whether it still is.
 * live_window_take - end that, when no hit runs a program of it.
 */
void live_window_give(struct hist *hist);
void live_window_take(const struct hist *hist);
/* live_program_init - let a panic add what programs have counted to the tables of histograms.
 * Context: boot.
 */
void live_program_init(void);
/* live_hist_pause - let the histogram pause, or count again.
 * live_hist_clear - remove all its entries.
 * live_hist_view - copy it, with what programs have counted so far. Return: NULL: no memory.
 * live_hist_view_free - free the copy; NULL: nothing is done.
 */
void live_hist_pause(struct hist *hist, bool pause);
void live_hist_clear(struct hist *hist);
struct hist *live_hist_view(struct hist *hist);
void live_hist_view_free(struct hist *view);
/* live_set_stacks - let each record of an event be followed by its stack, or no longer.
 * live_stacks - are they? To read only.
 */
void live_set_stacks(bool on);
extern bool live_stacks;
/* live_own - how many hits of @p were the tracer's own work. */
uint64_t live_own(const struct live_probe *p);
/* live_lost - how many hits of @e were lost, or incomplete, for @cause. */
uint64_t live_lost(const struct live_event *e, enum live_loss cause);
