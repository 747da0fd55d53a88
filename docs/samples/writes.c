/* writes.c - a sample with a watchpoint: finds out which function writes to an object,
 * from its allocation to its release.
 *
 *     ./sonde module docs/samples/writes.c 'run writes' 'module del writes'
 */
#include "kernel/base/err.h"
#include "kernel/debug/ksyms.h"
#include "kernel/mm/heap.h"
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/watch/watch.h"

struct account {
    unsigned long owner, balance;
};

static uintptr_t last_ip; /* the address behind the instruction of the latest write */

static void after_write(struct watch *w UNUSED, struct pt_regs *regs)
{
    last_ip = regs->ip;
}

static struct watch watch = {
    .name = "balance",
    .kind = WATCH_WRITE,
    .len = 8,
    .handler = after_write,
};

NOINLINE void deposit(struct account *a, unsigned long amount)
{
    a->balance += amount;
}

NOINLINE void rename_to(struct account *a, unsigned long owner)
{
    a->owner = owner;
}

static int use(struct work *w, struct account *a)
{
    struct ksym by = { .name = "?" };
    int err;

    watch.addr = (uintptr_t)&a->balance;
    err = register_watch(&watch);
    if (err)
        return err;
    for (unsigned i = 0; i < 10; i++)
        deposit(a, i);
    rename_to(a, 7);
    unregister_watch(&watch);
    ksyms_at(last_ip, &by);
    w->function = "deposit";
    w->calls = 10;
    seq_printf(w->out, "%lu writes, the last one in %s\n", watch_hits(&watch), by.name);
    return 0;
}

static int writes_run(struct work *w)
{
    struct account *a = kzalloc(sizeof(*a));
    int err = a ? use(w, a) : -ENOMEM;

    kfree(a);
    return err;
}
WORKLOAD(writes, writes_run, "which function writes to an object");
