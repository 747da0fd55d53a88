/* live.h - events that exist: what lines of kprobe_events have made, and what is attached to
 * them.
 *
 * A line is one probe. Probes of one name are one event, which is what records, filters and
 * triggers belong to. The life of an event is the table in probes/trace/README.md.
 *
 * Hits take no lock. What they read is exchanged as a whole (struct live_attached), and the
 * old one is freed when no thread can be in a hit any more; probes are freed when the engine
 * has said the same of them.
 *
 * Context: thread, all but what is marked.  Locks: the trace lock held, for all of it.
 * Fields: T the trace lock   I immutable   a any context, atomically
 */
#pragma once

#include "kernel/base/list.h"
#include "probes/kprobe.h"
#include "probes/trace/def.h"
#include "probes/trace/event.h"
#include "probes/trace/filter.h"
#include "probes/trace/hist.h"
#include "probes/trace/trigger.h"
#include "probes/watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_event;

/* One line. */
struct live_probe {
    struct kretprobe rp;         /* of a kprobe only its first field, rp.kp */
    struct kprobe_stores stores; /* [I] that rp.kp.stores may point to */
    struct watch watch;          /* def->is_watch: nothing of the above */
    uint64_t hits, misses;       /* [T] of the watch, when it had a register before */
    bool is_set;                 /* [a] a trigger lets the watch watch something */
    struct live_event *event;    /* [I] */
    struct def *def;             /* [I] */
    char *mark;                  /* [I] the format, of a marker; else NULL */
    bool is_registered;  /* [T] not while its module is missing; of a watch: not while its
                         * event is not armed, since there are few registers */
    struct list all;     /* [T] lines in the order in which they were written */
    struct list sibling; /* [T] probes of the event */
};

struct live_trigger {
    struct trigger *line;      /* [I] but for its count */
    struct filter *filter;     /* [I] or NULL */
    struct hist *hist;         /* [I] of TRIGGER_HIST */
    struct live_event *other;  /* [I] the event that is switched, or NULL */
    struct filter_field field; /* [I] of TRIGGER_SET_WATCH and TRIGGER_CLEAR_WATCH */
};

/* What a hit finds at an event. Immutable as a whole. */
struct live_attached {
    struct filter *filter; /* or NULL: each hit is recorded */
    bool needs_record;     /* something looks at the record before it is kept */
    unsigned count;
    struct live_trigger *trigger[]; /* the newest first */
};

/* Why a hit left no whole record behind. */
enum live_loss {
    LIVE_LOST_RING,   /* the ring had no room */
    LIVE_LOST_LONG,   /* its arguments are longer than a page */
    LIVE_LOST_NESTED, /* more hits on top of each other than filters have room for */
    LIVE_FAULT,       /* not lost: values that could not be read */
    LIVE_CUT,         /* not lost: strings that did not fit */
    LIVE_NOT_SET,     /* not lost: addresses that a trigger could not let it watch */
    LIVE_LOSSES,
};

/* live_loss_name - "ring", "long", ... Context: any. */
const char *live_loss_name(enum live_loss cause);

struct live_event {
    struct event event;
    const struct live_attached *attached; /* [a] NULL: neither filter nor trigger */
    bool soft_disabled;                   /* [a] hits are not recorded */
    bool armed;                           /* [T] its probes are enabled */
    unsigned setters;                     /* [T] triggers that say what is watched */
    unsigned
        soft_users;   /* [T] triggers that want it armed: its own and those of others */
    unsigned fixed;   /* [I] bytes of a record without its strings */
    bool has_strings; /* [I] */
    uint64_t lost[LIVE_LOSSES]; /* [a] */
    struct list probes;         /* [T] of struct live_probe, one at least */
    struct list link;           /* [T] the newest first */
    char *filter_block;         /* [T] what is wrong with the filter that was refused */
    void *files;                /* [T] of files/events.c */
    struct live_event *next;    /* [T] another whose name has a hash that ends alike */
    char group[DEF_NAME_MAX], name[DEF_NAME_MAX]; /* [I] */
};

extern const struct def_host live_host;
extern struct error_log live_errors;

/* live_error - note a refusal in the log of errors. */
void live_error(const char *subsystem, const char *text, const char *command,
                unsigned column);

/* live_set_files - a socket: how the files of an event come and go.
 * @add:    returns 0; -EEXIST; -ENOMEM
 * @remove: returns 0; -EBUSY one of them is open
 * Context: boot.
 */
void live_set_files(int (*add)(struct live_event *e),
                    int (*remove)(struct live_event *e));

/* ---- lines ---- */

/* live_command - a line of kprobe_events: a definition or a deletion.
 * Return: 0; a negative errno, noted in the log as Linux does.
 */
int live_command(const char *line);
/* live_clear - delete all. Return: 0; -EBUSY one is enabled or in use, and all are there. */
int live_clear(void);

/* live_add_marks - make an event of each marker of the kernel, and of each marker of a
 * module while the module is loaded. Takes the trace lock.
 * live_add_mark - make the event of one marker. Return: 0; -EEXIST an event has that name
 * already; -EINVAL, -ENOMEM.
 * live_remove_mark - the last marker of that name is gone: delete its event. An event
 * that is in use stays, without hits, until a marker of that name is loaded again.
 */
void live_add_marks(void);
int live_add_mark(const char *name, const char *format);
void live_remove_mark(const char *name);
/* live_mark_wish - what connects the marker @p. Context: any. */
struct marker_wish live_mark_wish(struct live_probe *p);

/* live_probe_next - lines in the order in which they were written; NULL: first, or end. */
struct live_probe *live_probe_next(const struct live_probe *p);
/* live_event_next - events, the newest first; NULL: first, or end. */
struct live_event *live_event_next(const struct live_event *e);
/* live_event_find - NULL: there is none. */
struct live_event *live_event_find(const char *group, const char *name);
/* live_probe_misses - hits that no handler saw, of a return probe also calls that were not
 * followed. Context: any.
 */
uint64_t live_probe_misses(const struct live_probe *p);
/* live_probe_hits - those that a handler saw. Context: any. */
uint64_t live_probe_hits(const struct live_probe *p);
/* live_event_probe - the first probe of @e; a watch is the only one. Context: any. */
static inline struct live_probe *live_event_probe(const struct live_event *e)
{
    return list_first(&e->probes, struct live_probe, sibling);
}
/* live_mark - the only probe of @e, if that is a marker; else NULL. Context: any. */
static inline struct live_probe *live_mark(const struct live_event *e)
{
    struct live_probe *p = live_event_probe(e);

    return p->mark ? p : NULL;
}
/* live_watch_find - the event of a watch that triggers call @name. Return: NULL; the one in
 * Linux's group before others.
 */
struct live_event *live_watch_find(const char *name);

/* ---- switching ---- */

/* live_switch - record the hits of @count events, or no longer. With one round of
 * synchronisation.  Return: 0; -ENOMEM.
 */
int live_switch(struct live_event *const *events, size_t count, bool on);
/* live_hold, live_release - a trigger wants @e armed, whether it is recorded or not.
 * Return: 0; -ENOMEM.
 */
int live_hold(struct live_event *e);
void live_release(struct live_event *e);
/* live_is_soft - is it armed for a trigger? */
static inline bool live_is_soft(const struct live_event *e)
{
    return e->soft_users > 0;
}

/* ---- filters and triggers ---- */

/* live_set_filter - @text: "0" takes the filter away. A filter that is refused takes the one
 * before it away, too, and leaves its block, as on Linux.
 * @of_group: it is meant for all events of the group: a refusal says only that it does not
 *            suit this one
 * Return: 0; a negative errno, noted in the log.
 */
int live_set_filter(struct live_event *e, const char *text, bool of_group);
/* live_trigger_write - a line of the file `trigger`. Return: 0; a negative errno. */
int live_trigger_write(struct live_event *e, const char *text);
/* live_clear_hists - what Linux does when `trigger` is opened with truncation. */
void live_clear_hists(struct live_event *e);

/* ---- hits ---- */

/* live_probe_fill - set the handlers of @p by its definition. */
void live_probe_fill(struct live_probe *p);
/* live_mark_hit - the marker @private was passed, a struct live_probe. Context: any. */
struct marker_call;
void live_mark_hit(void *private, struct marker_call *call);
/* live_direct_fill - and what its own code may store without them, if anything.
 * live_direct_allow - may the probes of @e do so from now on? Not while anything is attached.
 */
void live_direct_fill(struct live_probe *p);
void live_direct_allow(const struct live_event *e, bool allowed);
/* live_scratch_init - room for records that are looked at before they are kept.
 * Return: 0; -ENOMEM.
 */
int live_scratch_init(void);
