/* alone.c - lets the kernel be linked with the core of the engine alone. Here are the
 * functions of the other rooms that the kernel calls; most of them do nothing.
 */
#include "kernel/base/compiler.h"
#include "kernel/mm/exec.h"
#include "probes/core/platform.h"
#include "probes/gdb/gdb_stub.h"
#include "probes/jump/optimize.h"
#include "probes/marker/marker.h"
#include "probes/port/port.h"
#include "probes/trace/files/files.h"

/* Without regions and exchanges, copies are the only code that may be freed. */
static bool inside_copy(uintptr_t ip)
{
    return exec_contains(ip);
}

INIT int probes_init(void)
{
    return port_core_init(inside_copy);
}

int trace_init(void)
{
    return 0;
}

void marker_init(void)
{
}

int marker_add_command(void)
{
    return 0;
}

/* Without jumps no code asks for the targets in a module. */
void port_module_targets(uintptr_t addr UNUSED, struct plat_targets *out UNUSED)
{
}

void gdb_init(void)
{
}

void gdb_poll(void)
{
}

void gdb_wait(void)
{
}

void gdb_exit(unsigned status UNUSED)
{
}

void optimize_kick(void)
{
}

void probes_add_listed(char *list UNUSED)
{
}

void port_unprobe_at_panic(void)
{
}

int port_choose_jump(const char *word UNUSED)
{
    return 0;
}

int port_choose_text_engine(const char *word UNUSED)
{
    return 0;
}

void plat_given_up(const struct kprobe *p UNUSED, uintptr_t sp UNUSED)
{
}
