/* bench.h - the console's `bench`: measures what probes cost, in groups of figures.
 *
 * A figure is one line, `sonde.NAME VALUE UNIT`. If the figure has a goal, `goal LIMIT`
 * follows in the line, and MISSED if the value is above the limit. docs/bench.md has a
 * list of the names; a name never changes its meaning.
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
    /* run - measure and print the figures. @only: the part to measure; NULL: all parts.
     * Context: thread, one CPU.
     * Return: 0; -ENOENT no such part; -EINTR the user has stopped it, and all its probes
     * are unregistered; another negative errno, which is printed already. */
    int (*run)(struct shell *sh, const char *only);
    bool keeps_jumps; /* probes of other parts of the kernel may be jumps meanwhile */
};

/* bench_module - runs the command; NULL: the module is not there. The module sets it.
 * bench_complete - offer the names of the groups. Context: thread.
 */
extern int (*bench_module)(struct shell *sh, int argc, char **argv);
void bench_complete(struct shell_completion *c, int index);

extern const struct bench_group bench_group_hit, bench_group_scale, bench_group_cache,
    bench_group_counted, bench_group_starve, bench_group_marker, bench_group_events,
    bench_group_text;

/* bench_print - print a figure. @name: a format of printf, with its arguments */
void bench_print(struct shell *sh, uint64_t value, const char *unit, const char *name,
                 ...) PRINTF(4, 5);
/* bench_print_hundredths - the same; @value is in hundredths, and printed as 0 if < 0. */
void bench_print_hundredths(struct shell *sh, int64_t value, const char *unit,
                            const char *name, ...) PRINTF(4, 5);

/* How many figures had a goal, and how many of these were above their goal. */
struct bench_verdict {
    unsigned goals, missed;
};

/* bench_goals_begin - begin a run of `bench`: forget all figures.
 * bench_goal - note the value of a figure, and find its limit.
 * @hundredths: the value, in hundredths of the figure's unit
 * Return: the limit, in hundredths of the figure's unit; 0: the figure has no goal, or
 *         the goal is relative to a figure that was not measured.
 * bench_goals_end - count the goals of this run, and those that were missed.
 *
 * Context: thread. One run of `bench` at a time.
 */
void bench_goals_begin(void);
uint64_t bench_goal(const char *figure, uint64_t hundredths);
struct bench_verdict bench_goals_end(void);

/* A function to probe, and a loop that calls it: probes/bench/targets.asm. */
struct bench_target {
    void (*loop)(uint64_t count); /* calls the function @count times */
    uintptr_t addr;               /* its first instruction */
};

#define BENCH_PLACEMENTS 8 /* copies of each target, at different addresses */
extern const struct bench_target bench_targets_lea[], bench_targets_shift[],
    bench_targets_jmp[], bench_targets_long[];

/* What one call of a target costs, in hundredths of a cycle of the time stamp counter. */
struct bench_cost {
    int64_t median, min; /* of the rounds */
};

/* bench_measure - measure several rounds of @count calls of the target. */
struct bench_cost bench_measure(const struct bench_target *target, uint64_t count);
/* bench_measured_calls - return how many calls bench_measure(@count) makes in all. */
uint64_t bench_measured_calls(uint64_t count);

/* bench_free_bytes - return how many bytes of memory are free. The counters of the CPUs
 * count as free memory, because they have figures of their own. */
size_t bench_free_bytes(void);

/* bench_jumps - let armed probes become jumps (@on), or make all probes breakpoints.
 * `bench` begins with breakpoints, except for groups with keeps_jumps.
 * Return: as optimize_set_method(). */
int bench_jumps(bool on);

/* A kind of hit that `bench hit` measures. */
struct bench_kind {
    const char *name;
    const struct bench_target *targets;
    unsigned probes; /* kprobes at the address, BENCH_PROBES_MAX at most */
    kprobe_post_handler_t post;
    enum step_engine engine; /* used if there is a post-handler */
    bool returns, jprobe;    /* there is also a return probe, a jprobe */
    bool jump;               /* hits must come by a jump; false: by a trap */
    bool silent;             /* the probes have no handlers: they count their hits */
    const struct kprobe_program *program; /* of the probes, which are silent; or NULL */
    bool no_image; /* the code of the pre-handlers shows that they need no image */
    bool light;    /* the kprobes have light handlers, no pre-handlers */
    kretprobe_handler_t entry;
    const char *event;   /* in place of probes: a tracer event with these arguments */
    const char *trigger; /* of the event: a histogram in place of records; or NULL */
};
extern const struct bench_kind bench_kinds[];
extern const size_t bench_kind_count;

/* bench_handled - counts the calls of these handlers and of the handlers of a set. */
extern uint64_t bench_handled;
/* bench_fill_pre - give @p a pre-handler that counts, and that gets an image or not. */
void bench_fill_pre(struct kprobe *p, bool with_image);
void bench_count_light(struct kprobe *p, uintptr_t ip);

#define BENCH_PROBES_MAX 2

/* All probes of one kind at one address. */
struct bench_set {
    const struct bench_kind *kind;
    struct kprobe probes[BENCH_PROBES_MAX], *ps[BENCH_PROBES_MAX];
    struct kprobe_program program;
    struct kretprobe ret;
    struct jprobe jprobe;
    struct live_event *event; /* or NULL */
    uint64_t before;          /* hits that were counted before it was registered */
};

/* bench_set_register - register the probes of @kind at @addr, and make them jumps if
 * jumps are allowed. The caller must call bench_set_unregister() afterwards, also after
 * an error.
 * Return: 0; -EIO hits do not come by a jump or by a trap as @kind says; an errno of
 *         registering a probe or an event.
 * bench_set_hits - return how many hits all handlers together have counted since then. */
int bench_set_register(struct bench_set *set, const struct bench_kind *kind,
                       uintptr_t addr);
void bench_set_unregister(struct bench_set *set);
uint64_t bench_set_hits(const struct bench_set *set);

/* Very many functions, and a loop that calls them in turn: probes/bench/crowd.asm. Only
 * `make bench` links that file; otherwise bench.c has an empty table.
 */
struct bench_among {
    void (*loop)(uint64_t count);
    uintptr_t first; /* the address of the first one; the next is @stride bytes farther */
    size_t stride, count;
};
/* bench_among_called - the loop calls the functions between these two addresses. */
extern const struct bench_among bench_among_all;
extern uintptr_t bench_among_called[2];

/* A kind of hit that `bench hit` measures with a probe at each of these functions.
 * @in_turn: the loop calls all functions in turn; false: only the last one
 */
struct bench_crowd_kind {
    const char *name;
    bool light, in_turn;
};
extern const struct bench_crowd_kind bench_crowd_kinds[];
extern const size_t bench_crowd_kind_count;

struct bench_crowd_cost {
    struct bench_cost hit;
    size_t specialized, specialized_bytes; /* specialized detours: number, memory */
};

/* bench_among_is_there - are these functions linked?
 * bench_among - measure a hit of that kind. The functions must be linked.
 * Return: 0; -EIO not all sites became jumps, or not every call was counted; -ENOMEM; an
 *         errno of register_kprobes().
 */
bool bench_among_is_there(void);
int bench_among(const struct bench_crowd_kind *kind, struct bench_crowd_cost *cost);

/* bench_hit_boosted - measure `hit.int3_boostable` while the caller's probes are armed.
 * Return: 0; -EINTR; -EIO not every call was counted; an errno of register_kprobe(). */
int bench_hit_boosted(struct shell *sh, struct bench_cost *cost);

/* bench_measure_probed - measure what probes of @kind add to the cost of a call of @target,
 * in rounds of @hits calls. Return: 0; -EIO not every call was counted; as
 * bench_set_register().
 */
int bench_measure_probed(const struct bench_kind *kind, const struct bench_target *target,
                         uint64_t hits, struct bench_cost *cost);

/* bench_hit_like - measure the kind @name in a short time, at one placement only. The
 * settings for jumps and steps stay as they are.
 * Return: 0; -ENOENT no such kind; -EIO with these settings hits of this kind come in
 *         another way, or not every call was counted; -EBUSY the function is probed
 *         already; an errno of registering a probe.
 */
int bench_hit_like(const char *name, struct bench_cost *cost);

/* Very many probes. */
struct bench_crowd {
    uintptr_t *addrs; /* @spared that get no probe, then @room that get one */
    size_t spared, room;
    bool is_generated;     /* the addresses are in text that is never executed */
    struct kprobe *probes; /* @room of them */
    struct kprobe **ps;
};

/* bench_crowd_make - find all instructions that accept a probe: in the generated text if
 * it is linked, otherwise in the kernel's own text. They are shuffled, always into the
 * same order.
 * bench_crowd_make_entries - find the entries of all functions, except those of the
 * benchmark. Not every entry accepts a probe.
 * bench_crowd_make_instructions - find the instructions of these functions that accept a
 * probe.
 * Return: 0; -ENOMEM.
 */
int bench_crowd_make(struct bench_crowd *crowd);
int bench_crowd_make_entries(struct bench_crowd *crowd);
int bench_crowd_make_instructions(struct bench_crowd *crowd);
/* bench_crowd_free - free the memory of @crowd. None of its probes is registered. */
void bench_crowd_free(struct bench_crowd *crowd);

/* bench_crowd_place - make the first @count probes ready to be registered. */
void bench_crowd_place(struct bench_crowd *crowd, size_t count);
/* bench_ignore_refused - for register_kprobes_some(): leave refused places out. */
void bench_ignore_refused(struct kprobe *p, const struct probe_reject *why, void *arg);
