/* film_scene.c - notes what happens besides the work of the patcher: traps and copies.
 * Also lets CPUs run the fixture, so that something happens.
 *
 *   1. film_bp() gets each #BP before the engine does, and notes a trap. If the engine
 *      sends the thread into a copy, film_bp() notes that, too. Then it lets a thread of
 *      the fixture execute the copy in single steps (TF), so that the film shows when the
 *      thread leaves the copy.
 *   2. A CPU that comes to a detour by a jump takes no trap. So between two steps of the
 *      patcher each CPU is asked again and again at which address it is. If its thread
 *      of the fixture is in a copy or a detour, that is noted, and later, that it has
 *      left.
 *
 * The threads of the fixture are bound to their CPUs, and no other code sets TF for them.
 * So for each CPU one flag tells whether its thread executes single steps.
 */
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/msr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/smp.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/backtrace.h"
#include "kernel/memmap.h"
#include "kernel/thread/thread.h"
#include "probes/core/life.h"
#include "probes/film/film.h"
#include "probes/jump/platform_jump.h"
#include "probes/watch/watch_parts.h"

/* Locks: c owning CPU, in its traps and looks, interrupts off   i immutable while the
 * scene is open
 */
static struct {
    bool stepping;         /* [c] step_on() has set TF for its thread */
    bool inside;           /* [c] it was noted in a copy, and not noted back yet */
    uintptr_t copy_of;     /* [c] the instruction that the copy is of */
    int tid;               /* [i] of its thread of the fixture; 0: there is none */
    struct thread *thread; /* [c] this thread, set by itself */
} cpus[MAX_CPUS];

static bool is_open;

/* is_copy - is @ip in memory for copies and detours? Inline, because it is used where no
 * probe may be hit.
 */
static inline bool is_copy(uintptr_t ip)
{
    return ip - ARENA_LOW_START < ARENA_LEN || ip - arena_high_start() < ARENA_LEN;
}

static inline bool is_fixture(unsigned cpu)
{
    return percpu_current() == cpus[cpu].thread && cpu_context() == CTX_THREAD;
}

/* ---- 1. traps -------------------------------------------------------------------------- */

static ALWAYS_INLINE void step_on(struct pt_regs *regs, unsigned cpu)
{
    if (!is_fixture(cpu) || regs->flags & FLAGS_TF)
        return;
    regs->flags |= FLAGS_TF;
    cpus[cpu].stepping = true;
}

static void note_way(struct pt_regs *regs, unsigned cpu)
{
    if (is_copy(regs->ip)) {
        film_note(FILM_COPY, cpu, cpus[cpu].copy_of);
        cpus[cpu].inside = true;
        step_on(regs, cpu);
    } else {
        film_note(FILM_BACK, cpu, regs->ip);
        cpus[cpu].inside = false;
    }
}
NOKPROBE(note_way);

/* film_bp - note a #BP, and let the engine handle it. The int3 may also be the engine's
 * own, at the end of a copy that has a post-handler; then the single steps through the
 * copy end here. TF is cleared first, so that the engine and its handlers do not see it.
 */
bool film_bp(struct pt_regs *regs, void *probe);
bool film_bp(struct pt_regs *regs, void *probe)
{
    unsigned cpu = cpu_id();
    uintptr_t at = regs->ip - 1;
    bool ends_step = cpus[cpu].stepping && is_fixture(cpu) && is_copy(at);
    bool noted = ends_step || (film_has_int3(at) && film_may_note(cpu));
    bool done;

    if (ends_step) {
        regs->flags &= ~FLAGS_TF;
        cpus[cpu].stepping = false;
        at = cpus[cpu].copy_of;
    }
    if (noted) {
        film_note(FILM_TRAP, cpu, at);
        cpus[cpu].copy_of = at;
    }
    done = kprobe_int3_handler(regs, probe);
    if (noted && done)
        note_way(regs, cpu);
    return done;
}
NOKPROBE(film_bp);

/* step_off - end the single steps if the thread has left the copy. */
NOKPROBE_INLINE void step_off(struct pt_regs *regs, unsigned cpu)
{
    if (is_copy(regs->ip))
        return;
    regs->flags &= ~FLAGS_TF;
    cpus[cpu].stepping = false;
    cpus[cpu].inside = false;
    film_note(FILM_BACK, cpu, regs->ip);
}

bool film_db(struct pt_regs *regs, void *probe);
bool film_db(struct pt_regs *regs, void *probe)
{
    unsigned cpu = cpu_id();

    /* A debug register may be hit as well. Without a step, cpus[] may be what was hit. */
    if (regs->dr6 & DR6_BS && cpus[cpu].stepping && is_fixture(cpu)) {
        step_off(regs, cpu);
        regs->dr6 &= ~(unsigned long)DR6_BS;
    }
    return watch_debug_handler(regs, probe);
}
NOKPROBE(film_db);

/* ---- 2. looks -------------------------------------------------------------------------- */

static void look_here(void *unused UNUSED)
{
    const struct pt_regs *regs = smp_call_regs();
    unsigned cpu = cpu_id();
    uintptr_t at;
    bool inside;

    if (!regs || percpu_current() != cpus[cpu].thread || cpus[cpu].stepping)
        return;
    inside = is_copy(regs->ip) || plat_is_detour(regs->ip);
    if (inside == cpus[cpu].inside || (inside && !film_may_note(cpu)))
        return;
    cpus[cpu].inside = inside;
    if (!backtrace_collect(regs, &at, 1))
        at = regs->ip;
    film_note(inside ? FILM_COPY : FILM_BACK, cpu, at);
}

void scene_look(void)
{
    smp_call_all(look_here, NULL);
}

/* ---- the fixture ----------------------------------------------------------------------- */

static int run_fixture(void *unused UNUSED)
{
    uint64_t x = 1;

    cpus[cpu_id()].thread = percpu_current();
    while (READ_ONCE(is_open)) {
        x = film_fixture(x);
        if (cpu_count() == 1)
            thread_yield();
    }
    cpus[cpu_id()].thread = NULL;
    return 0;
}

static int start_fixture(void)
{
    for (unsigned cpu = cpu_count() > 1; cpu < cpu_count(); cpu++) {
        struct clone_args args = { .fn = run_fixture,
                                   .name = "film",
                                   .cpus = UINT64_C(1) << cpu };

        cpus[cpu].tid = kernel_clone(&args);
        if (cpus[cpu].tid < 0)
            return cpus[cpu].tid;
    }
    return 0;
}

static void stop_fixture(void)
{
    WRITE_ONCE(is_open, false);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        if (cpus[cpu].tid > 0)
            thread_join(cpus[cpu].tid, NULL);
        cpus[cpu].tid = 0;
        cpus[cpu].inside = false;
    }
}

int scene_open(uintptr_t addr)
{
    is_open = true;
    trap_set_direct(TRAP_BP, film_bp);
    trap_set_direct(TRAP_DB, film_db);
    if (addr - (uintptr_t)film_fixture >= (uintptr_t)film_fixture_len)
        return 0;
    return start_fixture();
}

void scene_close(void)
{
    stop_fixture();
    trap_set_direct(TRAP_BP, (trap_direct_t)kprobe_int3_handler);
    trap_set_direct(TRAP_DB, (trap_direct_t)watch_debug_handler);
}
