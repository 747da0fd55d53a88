/* times.c - a sample with a return probe: how long opening a file takes, how
 * often it fails.
 *
 *     ./sonde module docs/samples/times.c 'run vfs' 'run times' 'module del times'
 */
#include "kernel/module/module.h"
#include "kernel/time/clock.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

struct call {
    uint64_t start_ns;
};

static unsigned long calls, failed, total_ns, longest_ns;

static int at_entry(struct kretprobe_instance *ri, struct pt_regs *regs UNUSED)
{
    ((struct call *)ri->data)->start_ns = clock_ns();
    return 0;
}

static int at_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
    uint64_t ns = clock_ns() - ((const struct call *)ri->data)->start_ns;

    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&total_ns, ns, __ATOMIC_RELAXED);
    if ((int)regs_return_value(regs) < 0)
        __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
    if (ns > READ_ONCE(longest_ns))
        WRITE_ONCE(longest_ns, ns);
    return 0;
}

static struct kretprobe probe = {
    .kp.symbol_name = "vfs_open",
    .entry_handler = at_entry,
    .handler = at_return,
    .data_size = sizeof(struct call),
};

__attribute__((constructor)) static void times_init(void)
{
    int err = register_kretprobe(&probe);

    if (err)
        module_refuse(err);
}

__attribute__((destructor)) static void times_exit(void)
{
    unregister_kretprobe(&probe);
}

static int times_run(struct work *w)
{
    seq_printf(w->out, "%lu opened, %lu failed, %lu ns each, %lu ns at most\n", calls,
               failed, calls ? total_ns / calls : 0, longest_ns);
    return 0;
}
WORKLOAD(times, times_run, "how long opening a file takes");
