/* census.c - checks for each instruction of kernel text whether it could carry a probe. */
#include "probes/many/census.h"

#include "kernel/base/err.h"
#include "kernel/sync/mutex.h"
#include "probes/core/life.h"
#include "probes/many/walk.h"

/* ---- instructions ---- */

static struct mutex lock = MUTEX_INIT(lock);
static struct census census; /* under lock until is_done; then it never changes */
static bool is_done;

#define LOOK_STEP 16 /* functions between two calls of @stop */

struct counting {
    bool (*stop)(void *arg); /* of census_get() */
    void *arg;
    uintptr_t done; /* @done of walk_boundaries() */
    int err;
};

static void count_insn(const struct insn *insn, void *arg UNUSED)
{
    struct probe_reject why = { .reason = PROBE_OK };
    struct insn checked;

    kprobe_check(insn->addr, &checked, &why);
    census.boundaries++;
    census.refused[why.reason]++;
}

/* If a function cannot be decoded to its end, its instructions are counted up to there. */
static bool count_function(const struct plat_symbol *function, void *arg)
{
    struct counting *c = arg;

    if (census.functions++ % LOOK_STEP == 0 && c->stop(c->arg))
        c->err = -EINTR;
    else if (walk_boundaries(function, &c->done, count_insn, NULL) == -ENOMEM)
        c->err = -ENOMEM;
    return !c->err;
}

static int count_text(bool (*stop)(void *arg), void *arg)
{
    struct counting c = { .stop = stop, .arg = arg };

    census = (struct census){ 0 };
    walk_functions(NULL, count_function, &c);
    plat_lock(PLAT_PROBES);
    boundary_forget();
    plat_unlock(PLAT_PROBES);
    return census.refused[PROBE_NO_MEMORY] ? -ENOMEM : c.err;
}

int census_get(bool (*stop)(void *arg), void *arg, const struct census **out)
{
    int err = 0;

    mutex_lock(&lock);
    if (!is_done)
        err = count_text(stop, arg);
    if (!err)
        is_done = true;
    mutex_unlock(&lock);
    *out = &census;
    return err;
}

/* ---- functions ---- */

struct blacklist {
    census_range_t fn;
    void *arg;
};

static bool pass_refused(const struct plat_symbol *function, void *arg)
{
    const struct blacklist *b = arg;
    uintptr_t at = function->start, end = at + function->size;
    struct nokprobe_range r = { at, end, probe_reason_text(PROBE_ENTRY_CODE) };

    if (plat_is_entry(at)) {
        b->fn(function, &r, b->arg);
        return true;
    }
    for (; at < end && !blacklist_next(at, &r) && r.start < end; at = r.end) {
        if (r.start < at)
            r.start = at; /* a section is one range for all of its functions */
        if (r.end > end)
            r.end = end;
        b->fn(function, &r, b->arg);
    }
    return true;
}

void census_blacklist(census_range_t fn, void *arg)
{
    struct blacklist b = { fn, arg };

    walk_functions(NULL, pass_refused, &b);
}

static bool add_size(const struct plat_symbol *function, void *arg)
{
    size_t *bytes = arg;

    *bytes += function->size;
    return true;
}

size_t census_text_bytes(void)
{
    size_t bytes = 0;

    walk_functions(NULL, add_size, &bytes);
    return bytes;
}
