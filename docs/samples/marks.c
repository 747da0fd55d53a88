/* marks.c - a sample with a marker: counts how many files could be opened, and
 * how many not.
 *
 *     ./sonde module docs/samples/marks.c 'run vfs' 'run marks' 'module del marks'
 */
#include "kernel/module/module.h"
#include "kernel/work/work.h"
#include "probes/marker/marker.h"

static unsigned long opened, failed;

/* The marker calls this function at the end of vfs_open(). */
static void opening(void *private UNUSED, struct marker_call *call)
{
    const char *path = va_arg(call->args, const char *);
    unsigned flags = va_arg(call->args, unsigned);
    int result = va_arg(call->args, int);

    (void)path;
    (void)flags;
    __atomic_fetch_add(result ? &failed : &opened, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void marks_init(void)
{
    int err = marker_connect("vfs_open", "path %s flags 0x%x result %d", opening, NULL);

    if (err)
        module_refuse(err);
}

__attribute__((destructor)) static void marks_exit(void)
{
    marker_disconnect("vfs_open", opening, NULL);
}

static int marks_run(struct work *w)
{
    MARK(marks_run, "opened %lu", opened);
    seq_printf(w->out, "%lu opened, %lu failed\n", opened, failed);
    return 0;
}
WORKLOAD(marks, marks_run, "which files could be opened");
