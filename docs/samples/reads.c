/* reads.c - a sample with a handler: counts the reads of files, and the bytes asked for.
 *
 *     ./sonde module docs/samples/reads.c 'run vfs' 'run reads' 'module del reads'
 */
#include "kernel/fs/vfs.h"
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/kprobe.h"

static unsigned long bytes;

/* Before the first instruction of vfs_read(file, buf, count, pos). */
static int before_read(struct kprobe *p UNUSED, struct pt_regs *regs)
{
    __atomic_add_fetch(&bytes, regs->dx, __ATOMIC_RELAXED);
    return 0;
}

static struct kprobe probe = {
    .symbol_name = "vfs_read",
    .pre_handler = before_read,
};

__attribute__((constructor)) static void reads_init(void)
{
    int err = register_kprobe(&probe);

    if (err)
        module_refuse(err);
}

__attribute__((destructor)) static void reads_exit(void)
{
    unregister_kprobe(&probe);
}

/* Reads a file itself, so that there is a hit even if nothing else has read a file. */
static int reads_run(struct work *w)
{
    struct file file = { .flags = VFS_READ };
    uint64_t pos = 0;
    char piece[16];
    int err = vfs_open("/proc/version", &file);

    if (err)
        return err;
    w->function = "vfs_read";
    for (w->calls = 1; vfs_read(&file, piece, sizeof(piece), &pos) > 0; w->calls++)
        ;
    vfs_close(&file);
    seq_printf(w->out, "%lu reads of %lu bytes, %lu missed\n", kprobe_hits(&probe), bytes,
               probe.nmissed);
    return 0;
}
WORKLOAD(reads, reads_run, "how often files were read");
