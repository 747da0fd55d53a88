/* acts.c - a module whose constructor and destructor do what a test
 * tells them, see acts.h.
 */
#include "tests/kernel/modules/acts.h"
#include "kernel/base/err.h"
#include "kernel/module/module.h"
#include "kernel/thread/thread.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"
#include "tests/kernel/loaded.h"

int acts_sleeper(void *unused);
long acts_call(long (*fn)(long), long arg);
void acts_fault(void);

NOINLINE int acts_sleeper(void *unused UNUSED)
{
    WRITE_ONCE(acts_sleeps, true);
    while (!READ_ONCE(acts_go_on))
        thread_sleep_ns(1000000);
    WRITE_ONCE(acts_sleeps, false);
    return 0;
}

NOINLINE long acts_call(long (*fn)(long), long arg)
{
    long result = fn(arg);

    __asm__ volatile("" : "+r"(result)); /* it returns here */
    return result;
}

static volatile int *volatile nowhere = (volatile int *)8;

NOINLINE void acts_fault(void)
{
    *nowhere = 1;
}

static int before(struct kprobe *p UNUSED, struct pt_regs *regs UNUSED)
{
    return 0;
}

static struct kprobe probe = { .symbol_name = "vfs_stat", .pre_handler = before };

static void act(enum acts what)
{
    switch (what) {
    case ACTS_NOT:
        return;
    case ACTS_FAULT:
        acts_fault();
        return;
    case ACTS_SLEEP:
        acts_result = acts_sleeper(NULL);
        return;
    case ACTS_LOAD:
        acts_result = LOAD(plain);
        return;
    case ACTS_LOAD_REFUSED:
        acts_result = LOAD(refuses);
        return;
    case ACTS_LOAD_ITSELF:
        acts_result = LOAD(acts);
        return;
    case ACTS_UNLOAD:
        acts_result = module_unload("plain", loaded_why);
        return;
    case ACTS_UNLOAD_ITSELF:
        acts_result = module_unload("acts", loaded_why);
        return;
    case ACTS_PROBE:
        acts_result = register_kprobe(&probe);
        module_refuse(-ENODEV);
        return;
    case ACTS_THREAD:
        acts_result =
            kernel_clone(&(struct clone_args){ .fn = acts_sleeper, .name = "acts" });
        module_refuse(-ENODEV);
        return;
    }
}

__attribute__((constructor)) static void acts_init(void)
{
    act(acts_at_load);
}

__attribute__((destructor)) static void acts_exit(void)
{
    act(acts_at_unload);
}

static int acts_run(struct work *w)
{
    w->function = "acts_init";
    return 0;
}
WORKLOAD(acts, acts_run, "is there");
