/* console_probe.h - the probes that people set: single ones, sets that are one entry, return
 * probes, and watches. They have no handlers but such that count; the engine counts the hits.
 */
#pragma once

#include "kernel/base/list.h"
#include "probes/console/place.h"
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

/* What the handlers of a return probe have seen; by hits of all CPUs. */
struct console_returns {
    uint64_t count, total_ns;     /* added to */
    uint64_t last_value, last_ns; /* each of some latest return */
};

/* What the handler of a watch has seen last, on any CPU. */
struct console_accesses {
    uintptr_t last_ip;   /* 0: nothing yet */
    uint64_t last_value; /* behind it, of watches for writes */
};

/* Locks:  C console_probe_lock()   I immutable while in the list */
struct console_probe {
    struct list link;              /* [C] in order of creation */
    char name[CONSOLE_PROBE_NAME]; /* [I] */
    enum console_probe_kind kind;  /* [I] */
    struct place place;            /* [I] CONSOLE_ONE, CONSOLE_RETURN: where */
    char pattern[PLACE_MAX];       /* [I] else: of which functions */
    struct kprobe one, *one_ptr;   /* CONSOLE_ONE; CONSOLE_RETURN: that of ret */
    struct kretprobe ret;          /* CONSOLE_RETURN */
    struct console_returns returns;
    struct watch watch; /* CONSOLE_WATCH; nothing below */
    struct console_accesses accesses;
    struct kprobe *probes; /* [I] else: @room of them */
    struct kprobe **ps;    /* [C] those that are registered come first */
    size_t count;          /* [C] registered */
    size_t room;           /* [I] */
    uint64_t posts;        /* post-handler calls, added to by hits */
};

/* console_probe_lock, _unlock - around everything below; a sleeping lock. */
void console_probe_lock(void);
void console_probe_unlock(void);

/* console_probe_new - one that is not in the list yet.
 * @name: NULL: console_probe_add() makes one up
 * @room: kprobes to make room for, when it is to be a set; 0: a single one
 *
 * Return: 0; -ENAMETOOLONG; -EEXIST the name is taken; -ENOMEM.
 */
int console_probe_new(struct console_probe **out, const char *name, size_t room);
/* console_probe_add - into the list, now that it is registered. Without a name it gets one:
 * p1, p2 ... */
void console_probe_add(struct console_probe *cp);
/* console_probe_name_watch - give a watch that is not in the list yet its name: w1, w2 ... */
void console_probe_name_watch(struct console_probe *cp);
/* console_probe_free - @cp is not registered, and not in the list. */
void console_probe_free(struct console_probe *cp);

/* console_probe_next - the list, one after the other; NULL begins and ends. */
struct console_probe *console_probe_next(struct console_probe *cp);
/* console_probe_find - NULL when there is none. */
struct console_probe *console_probe_find(const char *name);

/* console_probe_del - take it out of the kernel and of the list.
 * console_probe_on, console_probe_off - all of its handlers.
 * console_probe_disabled - how many of its kprobes are off.
 * @sh: whose Ctrl-C stops it. Switching on is one step and cannot be stopped.
 * Return: 0; -EINTR: it is still in the list; of a set, some are off, or out already and no
 *         longer counted; what the engine says.
 */
int console_probe_del(struct shell *sh, struct console_probe *cp);
int console_probe_on(struct shell *sh, struct console_probe *cp);
int console_probe_off(struct shell *sh, struct console_probe *cp);
size_t console_probe_disabled(const struct console_probe *cp);

/* console_probe_count_post - let a single one, not registered yet, have a post-handler. */
void console_probe_count_post(struct console_probe *cp);

/* console_probe_follow - let a single one, not registered yet, be a return probe. */
void console_probe_follow(struct console_probe *cp);

/* console_probe_sums - hits and misses of all of its kprobes. */
void console_probe_sums(const struct console_probe *cp, uint64_t *hits, uint64_t *missed);
