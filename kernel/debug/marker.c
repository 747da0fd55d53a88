/* marker.c - calls the functions that are connected to a marker that is on.
 *
 * Preemption is off from before the list of functions is read until the last function has
 * returned. So after a list was taken out of use, and quiesce() has returned, no CPU uses
 * the list any more.
 */
#include "kernel/debug/marker.h"

#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"

#define NEST_MAX 8 /* thread, interrupt, trap, NMI; and markers in functions of markers */

/* The markers that are running on a CPU; the latest is the last. */
static struct {
    unsigned depth;
    struct running {
        const struct marker_site *site;
        uintptr_t sp; /* of the code that passed it */
    } running[NEST_MAX];
} stacks[MAX_CPUS]; /* owning CPU only; an interrupt leaves its stack as it was */

static bool is_running(unsigned cpu, const struct marker_site *site)
{
    for (unsigned i = 0; i < stacks[cpu].depth; i++)
        if (READ_ONCE(stacks[cpu].running[i].site) == site)
            return true;
    return stacks[cpu].depth == NEST_MAX;
}

/* enter - put @site on the stack of running markers. The depth is raised first: so an NMI
 * that comes before the entry is written uses the entries above it.
 * Return: false: the marker is running already, or the stack is full.
 */
static bool enter(unsigned cpu, struct marker_site *site, uintptr_t sp)
{
    unsigned depth = stacks[cpu].depth;

    if (is_running(cpu, site)) {
        __atomic_fetch_add(&site->missed, 1, __ATOMIC_RELAXED);
        return false;
    }
    WRITE_ONCE(stacks[cpu].depth, depth + 1);
    WRITE_ONCE(stacks[cpu].running[depth].sp, sp);
    WRITE_ONCE(stacks[cpu].running[depth].site, site);
    return true;
}

static void marker_leave(unsigned cpu)
{
    unsigned depth = stacks[cpu].depth - 1;

    WRITE_ONCE(stacks[cpu].running[depth].site, NULL);
    WRITE_ONCE(stacks[cpu].depth, depth);
}

/* An entry without a site is not written yet, because an NMI has come first. It belongs to
 * the interrupted code, and its sp is left over from an earlier marker.
 */
void marker_given_up(uintptr_t low, uintptr_t high)
{
    unsigned cpu = cpu_id();

    while (stacks[cpu].depth) {
        const struct running *last = &stacks[cpu].running[stacks[cpu].depth - 1];

        if (!last->site || last->sp < low || last->sp >= high)
            return;
        marker_leave(cpu);
    }
}

bool marker_is_running(void)
{
    bool is_running;

    preempt_disable();
    is_running = stacks[cpu_id()].depth != 0;
    preempt_enable();
    return is_running;
}

/* args_begin - make @args read the @words. They lie in memory, as the arguments of a call
 * do from the seventh on.
 */
static void args_begin(va_list args, const uint64_t *words)
{
    args[0].gp_offset = 6 * sizeof(uint64_t);
    args[0].fp_offset = args[0].gp_offset + 8 * 16;
    args[0].overflow_arg_area = (void *)(uintptr_t)words;
    args[0].reg_save_area = NULL;
}

/* irqs_as - switch interrupts back on or off, if a function has changed that. */
static void irqs_as(bool were_on)
{
    if (irqs_enabled() == were_on)
        return;
    if (were_on)
        sti();
    else
        cli();
}

void marker_run(const uint64_t *words, const uintptr_t *frame)
{
    struct marker_site *site = (struct marker_site *)words[0];
    struct marker_call call = {
        .name = site->name,
        .format = site->format,
        .ip = site->ip,
        .cold_ip = frame[1],
        .sp = (uintptr_t)(frame + 2),
        .bp = frame[0],
    };
    bool were_on = irqs_enabled();
    const struct marker_hooks *hooks;
    unsigned cpu;

    preempt_disable();
    cpu = cpu_id();
    hooks = __atomic_load_n(&site->hooks, __ATOMIC_ACQUIRE);
    if (hooks && enter(cpu, site, call.sp)) {
        for (size_t i = 0; i < hooks->count; i++) {
            args_begin(call.args, words + 1);
            hooks->hook[i].fn(hooks->hook[i].private, &call);
            irqs_as(were_on);
        }
        marker_leave(cpu);
    }
    preempt_enable();
}
