/* one_event.c - an event of the tracer with a histogram, and its hits. */
#include "tests/explore/one_event.h"

#include "kernel/base/err.h"

static struct live_probe probe;
struct live_event one_event;
bool one_event_refuses;

static int symbol(const char *module UNUSED, size_t module_len UNUSED,
                  const char *name UNUSED, size_t len UNUSED, uintptr_t *addr)
{
    *addr = 0x1000;
    return 1;
}

static bool is_entry(uintptr_t addr)
{
    return addr;
}

static bool function(uintptr_t addr, uintptr_t *start, uintptr_t *end)
{
    *start = addr;
    *end = addr + 64;
    return true;
}

static unsigned cpus(void)
{
    return MACHINE_CPUS;
}

const struct def_host live_host = {
    .symbol = symbol,
    .is_entry = is_entry,
    .function = function,
    .cpus = cpus,
    .alloc = explore_alloc,
    .free = explore_free,
};

/* No probe has a program. */
struct live_probe *live_probe_next(const struct live_probe *p UNUSED)
{
    return NULL;
}

int kprobe_exchange(const struct kprobe_exchange *x UNUSED, size_t count UNUSED)
{
    return 0;
}

void smp_call_all(void (*fn)(void *arg), void *arg)
{
    fn(arg);
}

struct live_event *live_event_next(const struct live_event *e)
{
    return e ? NULL : &one_event;
}

int live_scratch_init(void)
{
    return 0;
}

int live_hold(struct live_event *e)
{
    if (one_event_refuses)
        return -ENOMEM;
    e->armed = true;
    e->soft_users++;
    return 0;
}

void live_release(struct live_event *e)
{
    e->armed = --e->soft_users;
}

void one_event_start_as(const char *line)
{
    struct trace_error error;

    list_init(&one_event.probes);
    list_append(&one_event.probes, &probe.sibling);
    explore_check(!def_parse(&live_host, line, &probe.def, &error), "a line");
    probe.event = &one_event;
    one_event.armed = true;
    explore_check(!live_trigger_write(&one_event, ONE_HIST), "a histogram");
}

void one_event_start(void)
{
    one_event_start_as("p f a=%di:u64");
}

bool one_event_hit(void)
{
    struct {
        struct record_probe head;
        uint64_t a;
    } record = { .a = 7 };
    struct hist_hit hit = { &record, sizeof(record), explore_cpu(), "t", NULL, 0, NULL };
    const struct live_attached *attached;

    machine_enter();
    attached = READ_ONCE(one_event.attached);
    if (attached && attached->count)
        hist_add(attached->trigger[0]->hist, &hit);
    machine_leave();
    return attached;
}
