/* console_probe.h - the probes that users set at the console: single probes, sets of
 * probes that are one entry, return probes, and watches. Their handlers only count; the
 * engine counts the hits.
 */
#pragma once

#include "kernel/base/list.h"
#include "kernel/sync/mutex.h"
#include "probes/console/place.h"
#include "probes/console/program_line.h"
#include "probes/kprobe.h"
#include "probes/watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONSOLE_PROBE_NAME 32 /* bytes, NUL included */

enum console_probe_kind {
    CONSOLE_ONE,
    CONSOLE_INSTRUCTIONS,
    CONSOLE_ENTRIES,
    CONSOLE_RETURN,
    CONSOLE_WATCH,
};

/* What the handlers of a return probe have noted. Hits of all CPUs write here. */
struct console_returns {
    uint64_t count, total_ns;     /* sums over all returns */
    uint64_t last_value, last_ns; /* of a recent return, not always the same one */
};

/* What the handler of a watch noted at its latest call, on any CPU. */
struct console_accesses {
    uintptr_t last_ip;   /* 0: there was no access yet */
    uint64_t last_value; /* the bytes after the access; only for watches of writes */
};

/* Locks:  C console_probe_lock()   I immutable while in the list */
struct console_probe {
    struct list link;              /* [C] in the order in which the probes were added */
    char name[CONSOLE_PROBE_NAME]; /* [I] */
    enum console_probe_kind kind;  /* [I] */
    struct place place;            /* [I] CONSOLE_ONE, CONSOLE_RETURN: its place */
    char pattern[PLACE_MAX];       /* [I] sets: the pattern of the functions' names */
    struct kprobe one, *one_ptr;   /* @one: CONSOLE_ONE. @one_ptr: its kprobe, or that of
                                    * @ret */
    bool hides;                    /* [I] its programs ask for hidden threads */
    bool takes;                    /* [I] the user has given conditions, or `every` */
    struct kprobe_program program; /* [I] CONSOLE_ONE: what @one does beside counting */
    struct kprobe_op ops[PROGRAM_LINE_OPS]; /* [I] of @program and @programs */
    struct kretprobe ret;                   /* CONSOLE_RETURN */
    struct console_returns returns;
    struct watch watch; /* CONSOLE_WATCH; @count and @room are 0 then */
    struct console_accesses accesses;
    struct kprobe *probes;           /* [I] sets: @room kprobes */
    struct kprobe_program *programs; /* [I] sets that hide: those of @probes */
    struct kprobe **ps;              /* [C] the registered kprobes come first */
    size_t count;                    /* [C] registered kprobes */
    size_t room;                     /* [I] 0: not a set */
    uint64_t posts;                  /* calls of the post-handler; hits add to it */
};

/* console_probe_lock, _unlock - take and release the lock that callers hold around all
 * functions below. The lock is a mutex.
 */
extern struct mutex console_mutex;
static inline void console_probe_lock(void)
{
    mutex_lock(&console_mutex);
}
static inline void console_probe_unlock(void)
{
    mutex_unlock(&console_mutex);
}

/* console_changes - how often the console has changed its probes or a setting of the engine.
 * A page that shows them reads it in the guest's memory.
 * console_note_change - the console is about to change one of these. Context: thread.
 */
extern unsigned console_changes;
void console_note_change(void);

/* console_probe_new - make a console probe that is not in the list yet.
 * @name: its name; NULL: console_probe_add() makes one up
 * @room: for a set, how many kprobes it needs; 0: a single probe
 *
 * Return: 0; -ENAMETOOLONG; -EEXIST the name is taken; -ENOMEM.
 */
int console_probe_new(struct console_probe **out, const char *name, size_t room);
/* console_probe_add - put @cp, which is registered now, into the list. A probe without a
 * name gets the name p1, p2 ...
 */
void console_probe_add(struct console_probe *cp);
/* console_probe_name_watch - give a watch that is not in the list yet a name: w1, w2 ...
 */
void console_probe_name_watch(struct console_probe *cp);
/* console_probe_free - free @cp, which is neither registered nor in the list. */
void console_probe_free(struct console_probe *cp);

/* console_probe_next - return the probe after @cp in the list. NULL as @cp gives the
 * first one; the result is NULL after the last one.
 */
struct console_probe *console_probe_next(struct console_probe *cp);
/* console_probe_find - find the probe called @name. Return: NULL: there is none. */
struct console_probe *console_probe_find(const char *name);

/* console_probe_del - unregister @cp, take it out of the list and free it.
 * console_probe_on, console_probe_off - enable or disable all of its handlers.
 * console_probe_disabled - return how many of its kprobes are disabled.
 * @sh: its Ctrl-C stops the operation; console_probe_on() is one step and cannot be
 *      stopped
 * Return: 0; an errno of the engine; -EINTR: @cp is still in the list. If it is a set,
 *         some of its kprobes may be disabled already, or unregistered: @count does not
 *         count these any more.
 */
int console_probe_del(struct shell *sh, struct console_probe *cp);
int console_probe_on(struct shell *sh, struct console_probe *cp);
int console_probe_off(struct shell *sh, struct console_probe *cp);
size_t console_probe_disabled(const struct console_probe *cp);

/* console_probe_count_post - let a single probe that is not registered yet count in a
 * post-handler.
 */
void console_probe_count_post(struct console_probe *cp);

/* console_probe_follow - make a single probe that is not registered yet a return probe.
 */
void console_probe_follow(struct console_probe *cp);

/* console_probe_hide - from now on the calling thread is hidden: what it executes is no hit,
 * but a miss, of a probe that is made later, by console_probe_new(), and neither in a trace.
 * It stays so. Probes with a post-handler, return probes and watches count all. Locks: the
 * trace lock held.
 * console_probe_program - let a single probe that is not registered yet run @line; and ask
 * for hidden threads, if there are any.
 * Context: thread.
 */
void console_probe_hide(void);
void console_probe_program(struct console_probe *cp, const struct program_line *line);

/* console_probe_hits - the hits of @p, a kprobe of @cp.
 * console_probe_hidden - how often hidden threads have executed its instruction.
 * Context: thread or held.
 */
uint64_t console_probe_hits(const struct console_probe *cp, const struct kprobe *p);
uint64_t console_probe_hidden(const struct console_probe *cp, const struct kprobe *p);

/* console_probe_sums - sum up the hits and the misses of all kprobes of @cp. */
void console_probe_sums(const struct console_probe *cp, uint64_t *hits, uint64_t *missed);
