/* port_rooms.c - all rooms of the engine in the kernel. The core alone, without this file, is
 * `make core`: tests/alone/alone.c.
 */
#include "kernel/base/compiler.h"
#include "kernel/cpu/percpu.h"
#include "kernel/mm/exec.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"
#include "probes/region/region.h"
#include "probes/xmc/xmc.h"

/* A thread with preemption on is inside removable code only where its ip says so: handlers
 * run with preemption off, and copies call no function. Text that is about to be written
 * over counts, too: where a region's jump goes, and what is exchanged.
 */
static bool inside_copy(uintptr_t ip)
{
    return exec_contains(ip) || plat_is_detour(ip) || region_is_watched(ip) ||
           xmc_is_inside(ip);
}

int plat_counters_map(size_t count)
{
    return percpu_counters_map(count);
}

INIT int probes_init(void)
{
    int err = port_core_init(inside_copy);

    if (err)
        return err;
    port_shadow_init();
    report_init();
    port_watch_init();
    err = port_module_init();
    if (!err)
        err = port_optimizer_start();
    if (!err)
        err = probes_add_files();
    if (!err)
        err = probes_add_commands();
    if (!err)
        err = film_add_command();
    return err ? err : probes_add_bench();
}
