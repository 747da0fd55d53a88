/* report.c - tells the rest of the kernel of hits: backtraces show original addresses in
 * place of addresses in copies, panic reports show which handlers were running, and the
 * log has the handlers that were given up or take long.
 *
 * A hit cannot write to the log, because the interrupted code may hold the log's lock. So
 * the hit sends an interrupt to its own CPU. The CPU takes it when interrupts are on again,
 * and then the lock is free. The work for the log is own work, and is in no answer.
 */
#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/lapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/cpu/trap.h"
#include "kernel/debug/backtrace.h"
#include "kernel/debug/log.h"
#include "kernel/debug/marker.h"
#include "kernel/debug/panic.h"
#include "kernel/sync/held.h"
#include "kernel/thread/thread.h"
#include "kernel/time/clock.h"
#include "probes/core/aggr.h"
#include "probes/core/life.h"
#include "probes/core/registry.h"
#include "probes/insn/encode.h"
#include "probes/jump/counter.h"
#include "probes/jump/platform_jump.h"
#include "probes/many/place_text.h"
#include "probes/port/port.h"
#include "probes/returns/kretprobe.h"
#include "probes/returns/platform_returns.h"
#include "probes/returns/return_point.h"
#include "probes/returns/shadow.h"

#include <stdio.h>

extern const uintptr_t kretprobe_trampoline_known, kretprobe_trampoline_flags_pushed,
    kretprobe_trampoline_ret, kretprobe_trampoline_end;

#define LEFT_MAX 4 /* locks of one handler that are logged */

/* Each entry is used only by the CPU of that number. */
static uint64_t told[MAX_CPUS]; /* how many faults of handlers were logged */
static struct left {
    unsigned count;
    struct left_lock {
        const char *what;
        uintptr_t probe, taken_at;
    } locks[LEFT_MAX];
} left[MAX_CPUS]; /* locks that are not logged yet */

/* ---- backtraces ---- */

static bool is_in_trampoline(uintptr_t ip)
{
    return ip >= (uintptr_t)kretprobe_trampoline && ip < kretprobe_trampoline_end;
}

/* return_address - the real return address when a CPU is at @ip, in the trampoline. See
 * kretprobe_trampoline.asm.
 */
static uintptr_t return_address(uintptr_t ip, uintptr_t sp)
{
    const struct shadow *s;
    uint64_t ret;

    if (ip < kretprobe_trampoline_known) {
        sp -= sizeof(ret);
        s = port_shadow_of(sp);
        return s && shadow_find_above(s, sp, &ret) ? ret : ip;
    }
    if (ip == kretprobe_trampoline_flags_pushed)
        sp += sizeof(ret);
    if (ip != kretprobe_trampoline_ret)
        sp += offsetof(struct pt_regs, ip);
    return plat_read(&ret, sp) ? ip : ret;
}

/* is_about_to_call - is @ip the call in the cell of a return probe's detour? There the
 * function's return address is removed from the stack, and no other one is pushed yet:
 * rsp is as it will be after the function's return.
 */
static bool is_about_to_call(uintptr_t ip)
{
    return return_point_is(ip + INSN_CALL32_LEN);
}

/* original_address - the address in the program that a backtrace shows for @addr. If the
 * engine has exchanged a return address, the real one is in the shadow of the stack. An ip
 * in the trampoline stands for the real return address. An ip in a copy stands for the
 * instruction, or for the next one if the copy has been executed.
 */
static uintptr_t original_address(uintptr_t addr, const uintptr_t *slot, uintptr_t sp)
{
    const struct shadow *s;

    if (slot) {
        s = return_point_is(addr) ? port_shadow_of((uintptr_t)slot) : NULL;
        if (s)
            shadow_find(s, (uintptr_t)slot, &addr);
        return addr;
    }
    if (plat_is_detour(addr))
        return copy_original(port_detour_cell(addr, sp));
    if (is_about_to_call(addr))
        addr = (uintptr_t)kretprobe_trampoline;
    addr = copy_original(addr);
    return is_in_trampoline(addr) ? return_address(addr, sp) : addr;
}

/* ---- panics ---- */

static const char *stage_name(const struct probe_hit *hit)
{
    if (hit->is.faulting || hit->is.stage == HIT_FAULT)
        return "fault handler";
    if (hit->is.stage == HIT_RETURN)
        return "return handler";
    return hit->is.stage == HIT_PRE ? "pre-handler" : "post-handler";
}

static uintptr_t running_handler(const struct probe_hit *hit, const struct kprobe *p)
{
    if (hit->is.faulting || hit->is.stage == HIT_FAULT)
        return (uintptr_t)p->fault_handler;
    if (hit->is.stage == HIT_RETURN)
        return (uintptr_t)CONTAINER_OF(p, struct kretprobe, kp)->handler;
    if (hit->is.stage == HIT_POST)
        return (uintptr_t)p->post_handler;
    return p->pre_handler ? (uintptr_t)p->pre_handler : (uintptr_t)p->light_handler;
}

static void print_hit(unsigned cpu, const struct probe_hit *hit)
{
    const struct kprobe *p = hit->running;
    char text[PLACE_TEXT_MAX];

    panic_print("CPU %u: in a hit of %s", cpu, place_text(text, hit_site(hit)->addr));
    if (p)
        panic_print(", in its %s %s", stage_name(hit),
                    place_text(text, running_handler(hit, p)));
    panic_print("%s\n", hit->found.nmi ? ", inside an NMI" : "");
}

static void print_active_hits(void)
{
    for (unsigned i = 0; i < cpu_count(); i++) {
        const struct probe_cpu *cpu = plat_probe_cpu(i);

        for (unsigned level = 0; cpu && level < cpu->depth; level++)
            if (hit_site(&cpu->hits[level]))
                print_hit(i, &cpu->hits[level]);
            else if (level == 0 && light_frame(cpu))
                panic_print("CPU %u: in a light handler\n", i);
    }
}

/* ---- handlers that are given up ---- */

static void note_left(const char *what, struct held_lock **list, uintptr_t low,
                      uintptr_t high, uintptr_t probe)
{
    struct left *l = &left[cpu_id()];
    const struct held_lock *lock;

    while ((lock = held_leave(list, low, high, probe)) != NULL)
        if (l->count < LEFT_MAX)
            l->locks[l->count++] = (struct left_lock){ what, probe, lock->taken_at };
}

void plat_given_up(const struct kprobe *p, uintptr_t sp)
{
    struct percpu *cpu = this_cpu();
    uintptr_t low = cpu->nmi_depth ? cpu->nmi_stack_base : cpu->stack_base;

    note_left("spinlock", &cpu->locks, low, sp, p->addr);
    note_left("mutex", &thread_current()->mutexes, low, sp, p->addr);
    marker_given_up(low, sp);
}

static void tell_left(struct left *l)
{
    char probe[PLACE_TEXT_MAX], taker[PLACE_TEXT_MAX];

    for (unsigned i = 0; i < l->count; i++)
        log_warn(
            "kprobe: the handler of the probe at %s keeps a %s for ever, taken at %s",
            place_text(probe, l->locks[i].probe), l->locks[i].what,
            place_text(taker, l->locks[i].taken_at));
    l->count = 0;
}

/* A handler is about to sleep, which would also stop the code that the hit has interrupted.
 * The thread has not been switched yet. So a fault is made here, and the handler is given
 * up.
 */
static void handler_sleeps(void)
{
    if (fault_in_handler(plat_this_cpu()))
        ud2();
}

/* cause_text - say why the handler of the last hit of @cpu was given up. */
static const char *cause_text(char *buf, size_t size, const struct probe_cpu *cpu)
{
    char at[PLACE_TEXT_MAX];
    struct plat_symbol sym;

    if (!plat_symbol_at(cpu->given_up.ip, &sym) && sym.start == (uintptr_t)handler_sleeps)
        return "was about to sleep";
    snprintf(buf, size, "faulted, %s at %s", trap_name(cpu->given_up.vector),
             place_text(at, cpu->given_up.ip));
    return buf;
}

/* ---- handlers that take long ---- */

/* In each tick a CPU looks at its own hit, and at that of the next CPU, whose interrupts may
 * be off. A CPU that is alone finds out behind the hit that its tick came late.
 */
#define LONG_NS UINT64_C(100000000)
#define ALONE_NS (2 * LONG_NS)

/* Each entry is used only by the ticks of the CPU of that number. */
static struct look {
    const struct kprobe *running; /* in the last hit that is active; NULL: none is */
    uint64_t ended;               /* how many hits had ended, with those of @running */
    struct clock_wait wait;       /* since then */
} looks_at_own[MAX_CPUS], looks_at_next[MAX_CPUS];
static uint64_t tick_ns; /* of a CPU that is alone */

static void tell_long(struct site *site, uintptr_t handler)
{
    char at[PLACE_TEXT_MAX], name[PLACE_TEXT_MAX];

    if (__atomic_exchange_n(&site->told_long, true, __ATOMIC_RELAXED))
        return;
    own_work_begin();
    log_warn("kprobe: the handler %s of the probe at %s takes long",
             place_text(name, handler), place_text(at, site->addr));
    own_work_end();
}

static uint64_t hits_ended(unsigned n, const struct kprobe *p)
{
    const struct probe_cpu *cpu = plat_probe_cpu(n);
    uint64_t count = p->counter ? *counter_word(n, p->counter) : 0;

    for (unsigned way = 0; way < WAYS; way++)
        count += READ_ONCE(cpu->ran[way]);
    return count;
}

/* The stage in which a light handler runs, and any handler in front of a copy. */
static const struct probe_hit before = { .is.stage = HIT_PRE };

/* active_probe - return the probe whose handler @cpu runs; NULL: it runs none.
 * @hit: is set to its hit
 *
 * The hit may end meanwhile, and the probe be freed. So it is looked for in the registry,
 * from which nothing is freed before this tick ends.
 */
static const struct kprobe *active_probe(const struct probe_cpu *cpu,
                                         const struct probe_hit **hit)
{
    unsigned depth = READ_ONCE(cpu->depth);
    const struct plat_light *light = light_frame(cpu);
    const struct kprobe *p;
    const struct site *site;
    uint64_t running, addr;

    if (!depth)
        return NULL;
    *hit = &cpu->hits[depth - 1];
    running = (uintptr_t)READ_ONCE((*hit)->running);
    if (!running) {
        *hit = &before;
        if (!light || plat_read(&running, (uintptr_t)&light->probe))
            return NULL;
    }
    if (plat_read(&addr, running + offsetof(struct kprobe, addr)))
        return NULL;
    site = registry_find(addr);
    for (p = site ? site->probes : NULL; p && (uintptr_t)p != running; p = aggr_next(p))
        ;
    return p;
}

/* look_at_hit - has CPU @n run the same handler since an earlier look, for long? */
static void look_at_hit(struct look *l, unsigned n)
{
    const struct probe_cpu *cpu = plat_probe_cpu(n);
    const struct probe_hit *hit;
    const struct kprobe *p = cpu ? active_probe(cpu, &hit) : NULL;
    uint64_t ended = p ? hits_ended(n, p) : 0;

    if (!p || p != l->running || ended != l->ended)
        *l = (struct look){ .running = p, .ended = ended, .wait.last = clock_ns() };
    else if (clock_waited(&l->wait, LONG_NS))
        tell_long(p->site, running_handler(hit, p));
}

/* look_behind - is this tick late because of a hit? In a trap interrupts are off, and they
 * are on again in front of the copy.
 */
static void look_behind(const struct pt_regs *regs)
{
    uint64_t now = clock_ns(), late = now - tick_ns;
    uintptr_t addr = copy_original(regs->ip);
    struct site *site = addr == regs->ip ? NULL : registry_find(addr);
    const struct kprobe *p = site ? site->probes : NULL;

    tick_ns = now;
    if (p && late >= ALONE_NS)
        tell_long(site, running_handler(&before, p));
}

static void look_in_tick(const struct pt_regs *regs)
{
    unsigned own = cpu_id(), next = (own + 1) % cpu_count();

    look_at_hit(&looks_at_own[own], own);
    if (next != own)
        look_at_hit(&looks_at_next[own], next);
    else
        look_behind(regs);
}

/* ---- handlers that fault or sleep ---- */

/* This interrupt comes on the CPU of the fault, soon after it. Another handler may have
 * faulted before it comes: only the last fault is logged in full.
 */
static void tell_faults(struct pt_regs *regs)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    uint64_t count = READ_ONCE(cpu->handler_faults) - told[cpu_id()];
    char probe[PLACE_TEXT_MAX], cause[PLACE_TEXT_MAX + 40];

    (void)regs;
    lapic_eoi();
    if (!count)
        return;
    told[cpu_id()] += count;
    own_work_begin();
    log_warn("kprobe: probe at %s is off: its handler %s%s",
             place_text(probe, cpu->given_up.addr), cause_text(cause, sizeof(cause), cpu),
             count > 1 ? "; and others before it" : "");
    tell_left(&left[cpu_id()]);
    own_work_end();
}

static bool take_fault(struct pt_regs *regs)
{
    const struct probe_cpu *cpu = plat_this_cpu();
    uint64_t before = cpu ? cpu->handler_faults : 0;
    bool mine = kprobe_fault_handler(regs);

    if (cpu && cpu->handler_faults != before)
        lapic_send(this_cpu()->apic_id, LAPIC_IPI | VECTOR_PROBES);
    return mine;
}

/* try_again - a handler has repaired a fault: the second try may be made under the jump of
 * a region.
 */
static void try_again(struct pt_regs *regs)
{
    site_go_anywhere(regs);
}

INIT void report_init(void)
{
    static const unsigned faults[] = { TRAP_DE, TRAP_UD, TRAP_NM, TRAP_NP, TRAP_SS,
                                       TRAP_GP, TRAP_PF, TRAP_MF, TRAP_AC, TRAP_XM };

    irq_set_handler(VECTOR_PROBES, "probes", tell_faults);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        trap_set_handler(faults[i], take_fault);
    trap_goes_on = try_again;
    thread_sleep_hook = handler_sleeps;
    sched_look_hook = look_in_tick;
    backtrace_resolver = original_address;
    panic_add_report(print_active_hits);
}
