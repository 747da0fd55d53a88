/* port_rooms.c - starts all rooms of the engine in the kernel. `make core` builds the core
 * alone, without this file: tests/alone/alone.c.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/mm/exec.h"
#include "probes/jump/platform_jump.h"
#include "probes/port/port.h"
#include "probes/port/port_held.h"
#include "probes/program/program_code.h"
#include "probes/region/region.h"
#include "probes/xmc/xmc.h"

/* inside_copy - is a thread at @ip inside code that may be freed? If preemption is on, the
 * ip alone tells: handlers run with preemption off, and copies call no functions. Text that
 * is about to be overwritten counts, too: the bytes under the new jump of a region, and
 * text that is being exchanged.
 */
static bool inside_copy(uintptr_t ip)
{
    return exec_contains(ip) || plat_is_detour(ip) || region_is_watched(ip) ||
           xmc_is_inside(ip);
}

/* New counters need frames and page tables, of which the reserve has none. */
int plat_counters_map(size_t count)
{
    size_t bytes = count * sizeof(uint64_t) * cpu_count();

    if (port_uses_reserve() && bytes > percpu_counters_bytes())
        return -ENOMEM;
    return percpu_counters_map(count);
}

INIT int probes_init(void)
{
    int err = port_core_init(inside_copy);

    if (err)
        return err;
    trap_fault_handler = program_load_fails;
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
