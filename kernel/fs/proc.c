/* proc.c - /proc: version, boot arguments, time, memory, symbols. For each file a
 * function prints its text; the files about CPUs are in proc_cpu.c.
 */
#include "kernel/fs/proc.h"

#include "kernel/base/compiler.h"
#include "kernel/debug/ksyms.h"
#include "kernel/fs/proc_cpu.h"
#include "kernel/fs/vfs.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/time/clock.h"

#define SONDE_VERSION "0.1"
#define READ_ONLY 0444

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Tools for Linux expect the builder and the compiler in parentheses, then the number of
 * the build. Each build is the first one, so that equal sources make equal images.
 */
const char linux_proc_banner[] =
    "sonde version " SONDE_VERSION " (make@sonde) (" COMPILER ") #1 SMP x86-64";

static int version_show(struct seq *s, void *priv UNUSED)
{
    seq_printf(s, "%s\n", linux_proc_banner);
    return 0;
}

static int cmdline_show(struct seq *s, void *priv)
{
    seq_printf(s, "%s\n", (const char *)priv);
    return 0;
}

static int uptime_show(struct seq *s, void *priv UNUSED)
{
    uint64_t ms = clock_ns() / 1000000;

    seq_printf(s, "%lu.%03lu\n", ms / 1000, ms % 1000);
    return 0;
}

static int meminfo_show(struct seq *s, void *priv UNUSED)
{
    struct frame_stats stats;

    frame_stats_get(&stats);
    seq_printf(s, "MemTotal:   %10zu kB\n", stats.total * 4);
    seq_printf(s, "MemFree:    %10zu kB\n", stats.free * 4);
    seq_printf(s, "HeapInUse:  %10zu B\n", heap_in_use());
    seq_printf(s, "HeapBlocks: %10zu\n", heap_block_count());
    return 0;
}

static int kallsyms_show(struct seq *s, void *priv UNUSED)
{
    struct ksym sym;

    for (size_t i = 0; ksyms_get(i, &sym); i++)
        seq_printf(s, sym.module ? "%016lx %c %s\t[%s]\n" : "%016lx %c %s\n", sym.start,
                   sym.type, sym.name, sym.module);
    return 0;
}

static struct vfs_file proc_files[] = {
    { .name = "cmdline", .mode = READ_ONLY, .show = cmdline_show },
    { .name = "cpuinfo", .mode = READ_ONLY, .show = proc_cpuinfo_show },
    { .name = "interrupts", .mode = READ_ONLY, .show = proc_interrupts_show },
    { .name = "kallsyms", .mode = READ_ONLY, .show = kallsyms_show },
    { .name = "meminfo", .mode = READ_ONLY, .show = meminfo_show },
    { .name = "uptime", .mode = READ_ONLY, .show = uptime_show },
    { .name = "version", .mode = READ_ONLY, .show = version_show },
};

INIT int proc_init(const char *cmdline)
{
    static char none[] = "";

    /* show only reads the text; priv is not const because other files write to it. */
    proc_files[0].priv = cmdline ? (void *)(uintptr_t)cmdline : none;
    return vfs_add_tree("/proc", proc_files, ARRAY_LEN(proc_files));
}
