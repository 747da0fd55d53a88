/* bench.h - the console's `bench`: what probes cost, in groups of figures.
 *
 * A figure is one line, `sonde.NAME VALUE UNIT`, with `goal LIMIT` behind it where it has a
 * goal, and MISSED where it is above. The names are listed in docs/bench.md and keep their
 * meaning.
 */
#pragma once

#include "kernel/console/shell.h"
#include "probes/core/life.h"
#include "probes/kprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_group {
    const char *name;
    const char *help; /* one line */
    /* run - measure and print. @only: NULL, or the one part of the group that is wanted.
     * Context: thread, on one CPU.
     * Return: 0; -ENOENT no such part; -EINTR, none of its probes is left; another negative
     * errno, told already. */
    int (*run)(struct shell *sh, const char *only);
    bool keeps_jumps; /* it measures no probes: those of others stay as they are */
};

extern const struct bench_group bench_group_hit, bench_group_scale, bench_group_cache,
    bench_group_counted, bench_group_starve, bench_group_marker, bench_group_events;

/* bench_print - a figure. @name: printf's, with its arguments behind @unit */
void bench_print(struct shell *sh, uint64_t value, const char *unit, const char *name,
                 ...) PRINTF(4, 5);
/* bench_print_hundredths - the same; @value counts hundredths, less than none is none. */
void bench_print_hundredths(struct shell *sh, int64_t value, const char *unit,
                            const char *name, ...) PRINTF(4, 5);

/* Figures that had a goal, and those of them that were above it. */
struct bench_verdict {
    unsigned goals, missed;
};

/* bench_goals_begin - no figure has been measured yet.
 * bench_goal - a figure has been measured: what should it be at most?
 * @hundredths, and what is returned: of its unit; 0: it has no goal, or its goal is
 *                                    relative to a figure that was not measured
 * bench_goals_end - how did it go?
 *
 * Context: thread; one run of `bench` at a time.
 */
void bench_goals_begin(void);
uint64_t bench_goal(const char *figure, uint64_t hundredths);
struct bench_verdict bench_goals_end(void);

/* bench_counts_instructions - is a cycle an instruction (QEMU's -icount shift=0)? */
bool bench_counts_instructions(void);

/* What is probed: tests/bench/targets.asm. */
struct bench_target {
    void (*loop)(uint64_t count); /* calls the function @count times */
    uintptr_t addr;               /* its first instruction */
};

#define BENCH_PLACEMENTS 8
extern const struct bench_target bench_targets_lea[], bench_targets_shift[],
    bench_targets_jmp[], bench_targets_long[];

/* Hundredths of a cycle of the time stamp counter, for each call of a target. */
struct bench_cost {
    int64_t median, min; /* of the rounds */
};

/* bench_measure - call it @count times in each of some rounds. */
struct bench_cost bench_measure(const struct bench_target *target, uint64_t count);
/* bench_measured_calls - how many calls that makes in all. */
uint64_t bench_measured_calls(uint64_t count);

/* bench_free_bytes - how much memory is free, or is counters of the CPUs, which are figures
 * of their own. */
size_t bench_free_bytes(void);

/* bench_jumps - may armed probes become jumps? `bench` begins with no.
 * Return: 0; what optimize_set_method() says. */
int bench_jumps(bool on);

/* What `bench hit` measures. */
struct bench_kind {
    const char *name;
    const struct bench_target *targets;
    unsigned probes; /* at the address, BENCH_PROBES_MAX at most */
    kprobe_post_handler_t post;
    enum step_engine engine; /* with a post-handler */
    bool returns, jprobe;    /* beside them a return probe, a jprobe */
    bool jump;               /* they must be jumps; else they must not */
    bool silent;             /* no handler at all: the one probe counts */
    bool light;              /* light handlers in place of pre-handlers */
    kretprobe_handler_t entry;
    const char
        *event; /* in the place of probes an event of the tracer, with these arguments */
};
extern const struct bench_kind bench_kinds[];
extern const size_t bench_kind_count;

/* bench_handled - how often handlers were called: these two, and all handlers of a set. */
extern uint64_t bench_handled;
int bench_count_pre(struct kprobe *p, struct pt_regs *regs);
void bench_count_light(struct kprobe *p, uintptr_t ip);

#define BENCH_PROBES_MAX 2

/* All that one kind has at one address. */
struct bench_set {
    const struct bench_kind *kind;
    struct kprobe probes[BENCH_PROBES_MAX], *ps[BENCH_PROBES_MAX];
    struct kretprobe ret;
    struct jprobe jprobe;
    struct live_event *event; /* or NULL */
    uint64_t before;          /* hits counted when it was registered */
};

/* bench_set_register - On return they are jumps, if they may be.
 * Return: 0; -EIO they are not reached as @kind says; what registering says. All need
 *         bench_set_unregister().
 * bench_set_hits - counted since then, by all handlers together. */
int bench_set_register(struct bench_set *set, const struct bench_kind *kind,
                       uintptr_t addr);
void bench_set_unregister(struct bench_set *set);
uint64_t bench_set_hits(const struct bench_set *set);

/* Functions that are called in turn: tests/bench/crowd.asm, which `make bench` links, in the
 * place of the empty ones of bench_among.c.
 */
struct bench_among {
    void (*loop)(uint64_t count);
    uintptr_t first; /* the others are @stride bytes apart */
    size_t stride, count;
};
extern const struct bench_among bench_among_all;
extern uintptr_t bench_among_called[2];

/* What `bench hit` measures with a probe at each of them. */
struct bench_crowd_kind {
    const char *name;
    bool light, in_turn;
};
extern const struct bench_crowd_kind bench_crowd_kinds[];
extern const size_t bench_crowd_kind_count;

struct bench_crowd_cost {
    struct bench_cost hit;
    size_t specialized,
        specialized_bytes; /* sites with code of their own, and its size */
};

/* bench_among_is_there - are these functions linked?
 * bench_among - measure a hit of that kind; they are.
 * Return: 0; -EIO not all became jumps, or not every call was counted; -ENOMEM; what
 *         registering says.
 */
bool bench_among_is_there(void);
int bench_among(const struct bench_crowd_kind *kind, struct bench_crowd_cost *cost);

/* bench_hit_boosted - `hit.int3_boostable`, now. Return: 0; -EINTR; what register_kprobe()
 * says. */
int bench_hit_boosted(struct shell *sh, struct bench_cost *cost);

/* bench_hit_like - one placement of the kind @name, in a moment, with jumps and steps as they
 * are now.
 * Return: 0; -EIO probes of this kind are run otherwise now, or not all were counted;
 *         -EBUSY the function is probed; what registering says.
 */
int bench_hit_like(const char *name, struct bench_cost *cost);

/* Very many probes. */
struct bench_crowd {
    uintptr_t *addrs; /* @spared, then @room to put probes at, in no order */
    size_t spared, room;
    bool is_generated;     /* in text that is never executed */
    struct kprobe *probes; /* @room of them */
    struct kprobe **ps;
};

/* bench_crowd_make - find all places that accept a probe, in the generated text where there
 * is one; always in the same order.
 * bench_crowd_make_entries - the entries of all functions, accepting or not.
 * bench_crowd_make_instructions - the same of all of the kernel's own instructions.
 * Return: 0; -ENOMEM.
 */
int bench_crowd_make(struct bench_crowd *crowd);
int bench_crowd_make_entries(struct bench_crowd *crowd);
int bench_crowd_make_instructions(struct bench_crowd *crowd);
/* bench_crowd_free - none of the probes is registered. */
void bench_crowd_free(struct bench_crowd *crowd);

/* bench_crowd_place - make the first @count probes ready to be registered. */
void bench_crowd_place(struct bench_crowd *crowd, size_t count);
/* bench_ignore_refused - for register_kprobes_some(): the places it refuses are left out. */
void bench_ignore_refused(struct kprobe *p, const struct probe_reject *why, void *arg);
