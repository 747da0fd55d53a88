/* bench_crowd.c - finds places for very many probes.
 *
 * `make bench` links a large text that is never called, so that only the registration is
 * measured. Without that text the places are in the kernel's own text. Its first 4 of 15
 * parts are left out, because the engine lies there, and the code that the engine uses.
 */
#include "kernel/base/err.h"
#include "kernel/mm/heap.h"
#include "kernel/work/work.h"
#include "probes/bench/bench.h"
#include "probes/core/life.h"
#include "probes/many/walk.h"

#include <string.h>

#define GENERATED                                                                        \
    "bench_text_*"   /* the functions that probes/bench/host/gen_text.py makes */
#define OWN "bench_" /* functions of the benchmark begin with this */

/* A walk over text. The first walk has no room, and only counts. */
struct crowd_walk {
    uintptr_t *addrs;
    size_t room, count;
    uintptr_t done; /* for walk_boundaries() */
    bool entries;   /* take only the entries of functions */
    bool all;       /* take functions of the benchmark, too */
};

static void crowd_take(struct crowd_walk *walk, uintptr_t addr)
{
    if (walk->count < walk->room)
        walk->addrs[walk->count] = addr;
    walk->count++;
}

static void crowd_take_insn(const struct insn *insn, void *arg)
{
    struct insn same;

    if (!kprobe_check(insn->addr, &same, NULL))
        crowd_take(arg, insn->addr);
}

static bool crowd_take_function(const struct plat_symbol *function, void *arg)
{
    struct crowd_walk *walk = arg;

    if (!walk->all && strncmp(function->name, OWN, strlen(OWN)) == 0)
        return true;
    if (walk->entries)
        crowd_take(walk, function->start);
    else
        walk_boundaries(function, &walk->done, crowd_take_insn, walk);
    return true;
}

static size_t collect_crowd(struct bench_crowd *crowd, const char *pattern, bool entries)
{
    struct crowd_walk walk = {
        .addrs = crowd->addrs,
        .room = crowd->room,
        .entries = entries,
        .all = crowd->is_generated,
    };

    walk_functions(pattern, crowd_take_function, &walk);
    return walk.count;
}

static void shuffle(uintptr_t *addrs, size_t count)
{
    uint64_t state = 1;

    for (size_t i = count; i > 1; i--) {
        size_t j = work_next(&state) % i;
        uintptr_t addr = addrs[i - 1];

        addrs[i - 1] = addrs[j];
        addrs[j] = addr;
    }
}

static int crowd_make(struct bench_crowd *crowd, const char *pattern, bool entries)
{
    crowd->room = 0;
    crowd->room = collect_crowd(crowd, pattern, entries);
    crowd->addrs = kzalloc(crowd->room * sizeof(crowd->addrs[0]));
    crowd->probes = kzalloc(crowd->room * sizeof(crowd->probes[0]));
    crowd->ps = kzalloc(crowd->room * sizeof(crowd->ps[0]));
    if (!crowd->addrs || !crowd->probes || !crowd->ps) {
        bench_crowd_free(crowd);
        return -ENOMEM;
    }
    collect_crowd(crowd, pattern, entries);
    return 0;
}

int bench_crowd_make(struct bench_crowd *crowd)
{
    int err;

    *crowd = (struct bench_crowd){ .is_generated = true };
    err = crowd_make(crowd, GENERATED, false);
    if (!err && !crowd->room) {
        bench_crowd_free(crowd);
        crowd->is_generated = false;
        err = crowd_make(crowd, NULL, false);
        crowd->spared = crowd->room * 4 / 15;
    }
    if (err)
        return err;
    crowd->room -= crowd->spared;
    shuffle(crowd->addrs + crowd->spared, crowd->room);
    return 0;
}

int bench_crowd_make_entries(struct bench_crowd *crowd)
{
    *crowd = (struct bench_crowd){ 0 };
    return crowd_make(crowd, NULL, true);
}

int bench_crowd_make_instructions(struct bench_crowd *crowd)
{
    *crowd = (struct bench_crowd){ 0 };
    return crowd_make(crowd, NULL, false);
}

void bench_crowd_free(struct bench_crowd *crowd)
{
    kfree(crowd->addrs);
    kfree(crowd->probes);
    kfree(crowd->ps);
}

void bench_ignore_refused(struct kprobe *p UNUSED, const struct probe_reject *why UNUSED,
                          void *arg UNUSED)
{
}

void bench_crowd_place(struct bench_crowd *crowd, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        crowd->probes[i] = (struct kprobe){ .addr = crowd->addrs[crowd->spared + i] };
        crowd->ps[i] = &crowd->probes[i];
    }
}
