/* names.c - a sample with a jprobe: its handler has the arguments of the probed function.
 *
 *     ./sonde module docs/samples/names.c 'run vfs' 'run names' 'module del names'
 */
#include "kernel/fs/vfs.h"
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

static unsigned long opened, below_tmp;

/* Has the same parameters as vfs_open(). */
static int open_seen(const char *path, struct file *file UNUSED)
{
    __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
    if (path[0] == '/' && path[1] == 't')
        __atomic_add_fetch(&below_tmp, 1, __ATOMIC_RELAXED);
    jprobe_return();
}

static struct jprobe probe = {
    .kp.symbol_name = "vfs_open",
    .entry = (void *)open_seen,
};

__attribute__((constructor)) static void names_init(void)
{
    int err = register_jprobe(&probe);

    if (err)
        module_refuse(err);
}

__attribute__((destructor)) static void names_exit(void)
{
    unregister_jprobe(&probe);
}

static int names_run(struct work *w)
{
    seq_printf(w->out, "%lu opened, %lu of them below /tmp\n", opened, below_tmp);
    return 0;
}
WORKLOAD(names, names_run, "which files were opened");
