/* census.c - every instruction of the image is asked whether it would take a probe. */
#include "probes/port/census.h"

#include "kernel/sync/mutex.h"
#include "probes/life.h"
#include "probes/port/walk.h"

/* ---- instructions ---- */

static struct mutex lock = MUTEX_INIT(lock);
static struct census census; /* under lock until it is done; then it never changes */
static bool is_done;

static void count_insn(const struct insn *insn, void *arg UNUSED)
{
    struct probe_reject why = { .reason = PROBE_OK };
    struct insn checked;

    kprobe_check(insn->addr, &checked, &why);
    census.boundaries++;
    census.refused[why.reason]++;
}

static bool count_function(const struct plat_symbol *function, void *arg)
{
    census.functions++;
    walk_boundaries(function, arg, count_insn, NULL);
    return true;
}

const struct census *census_get(void)
{
    uintptr_t done = 0;

    mutex_lock(&lock);
    if (!is_done)
        walk_functions(NULL, count_function, &done);
    is_done = true;
    mutex_unlock(&lock);
    return &census;
}

/* ---- functions ---- */

struct blacklist {
    void (*fn)(const struct plat_symbol *function, enum probe_reason reason, void *arg);
    void *arg;
};

static bool pass_on(const struct plat_symbol *function, void *arg)
{
    const struct blacklist *b = arg;

    if (plat_is_entry(function->start))
        b->fn(function, PROBE_ENTRY_CODE, b->arg);
    else if (blacklist_contains(function->start))
        b->fn(function, PROBE_BLACKLISTED, b->arg);
    return true;
}

void census_blacklist(void (*fn)(const struct plat_symbol *function,
                                 enum probe_reason reason, void *arg),
                      void *arg)
{
    struct blacklist b = { fn, arg };

    walk_functions(NULL, pass_on, &b);
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
