/* platform.h - everything that breakpoints ask of the machine.
 *
 * Jumps ask for more, in probes/jump/platform_jump.h, and return probes in
 * probes/returns/platform_returns.h. All of these are plain functions, found by the linker:
 * the kernel has them in probes/port, the unit tests in tests/unit/port_fake.c, the hosted
 * engine in tests/hosted/port_posix.c. docs/architecture.md has a row for each.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kprobe;
struct probe_cpu;
struct shadow;

/* ---- text ---- */

/* plat_text_read - copy bytes that may be unreadable. Context: any. Return: 0; -EFAULT. */
int plat_text_read(void *dst, uintptr_t addr, size_t len);
/* plat_text_write - change bytes of text or of plat_exec_alloc() memory, through a writable
 * alias, and verify it. Promises nothing about other CPUs, but that 1, 2, 4 or 8 bytes at a
 * multiple of as many are stored at once.
 * @len: 1..4096
 * Context: thread; machine stopped.  Locks: PLAT_TEXT held.
 * Return:  0; -EFAULT neither of the two.
 */
int plat_text_write(uintptr_t addr, const void *bytes, size_t len);
/* plat_sync_cores - every CPU has executed a serialising instruction since the call, or will
 * before it executes anything else. A CPU that was in an NMI has left it.
 * Context: thread, interrupts on; machine stopped.
 */
void plat_sync_cores(void);
/* plat_sync_count - how often CPU @cpu, 0..plat_cpu_count()-1, has done so for
 * plat_sync_cores(). Context: any.
 */
uint64_t plat_sync_count(unsigned cpu);
/* plat_sync_ns - by plat_clock_ns(), when CPU @cpu has done so last. Context: any.
 * Return: 0 when it was left alone, because it executed nothing.
 */
uint64_t plat_sync_ns(unsigned cpu);
/* plat_stop_machine - run @fn(@arg) while all other CPUs stand still, with interrupts off;
 * they still take NMIs. @fn may not sleep.
 * Context: thread, interrupts on.
 * plat_stopped_ip - where @cpu was interrupted. Context: machine stopped.
 * Return: 0 for the CPU that runs @fn.
 */
void plat_stop_machine(void (*fn)(void *arg), void *arg);
uintptr_t plat_stopped_ip(unsigned cpu);
/* plat_text_contains - is all of [addr, addr + len) text that may be probed at all?
 * Context: any.
 */
bool plat_text_contains(uintptr_t addr, size_t len);
#define PLAT_LINE_LEN 64
/* plat_text_is_built - are these the bytes that the build has put into a line of text?
 * @line: multiple of PLAT_LINE_LEN   @bytes: as many, without what the engine has changed
 * Context: thread.  Return: true also for a line of which nothing is known.
 */
bool plat_text_is_built(uintptr_t line, const uint8_t *bytes);

/* ---- executable memory ---- */

/* plat_exec_alloc - pages within rel32 of all text, filled with int3.
 * @len: multiple of 4096
 * Context: thread.  Return: NULL when there is none left.
 */
void *plat_exec_alloc(size_t len);
void plat_exec_free(void *p, size_t len);
/* plat_exec_window - a range that plat_exec_alloc() never leaves; other things may lie in
 * it. At most some hundred MiB. Context: any.
 */
void plat_exec_window(uintptr_t *start, size_t *len);
/* plat_exec_contains - does @addr lie in memory of plat_exec_alloc()? Context: any. */
bool plat_exec_contains(uintptr_t addr);

/* What lies on the stack while a light handler runs: what it would have restored, should it
 * never return. The word below is where it would return to.
 */
struct plat_light {
    struct kprobe *probe;
    unsigned long bp;
    /* Of PLAT_SPECIALIZED_LIGHT_KEEP; the low half of preempt is plat_depths.preempt. */
    unsigned long preempt, bx, r12, r13, r14, r15, flags;
};

/* ---- time, place, locks ---- */

/* plat_quiesce - return when no CPU and no preempted thread is inside a handler, a slot or
 * a detour that it entered before the call. Context: thread, may sleep long.
 */
void plat_quiesce(void);

enum plat_context { PLAT_THREAD, PLAT_IRQ, PLAT_TRAP, PLAT_NMI };
/* plat_context - where the caller runs. Context: any. */
enum plat_context plat_context(void);

#define PLAT_CPUS_MAX 64
unsigned plat_cpu_count(void); /* 1..PLAT_CPUS_MAX */
/* plat_probe_cpu - the engine's area of CPU @cpu, 0..plat_cpu_count()-1. Context: any. */
struct probe_cpu *plat_probe_cpu(unsigned cpu);
/* plat_this_cpu - of the executing CPU; NULL before the CPU is ready for probes.
 * Context: any, preemption off.
 */
struct probe_cpu *plat_this_cpu(void);
/* What the executing code may be: as the platform counts it. */
struct plat_depths {
    int preempt;  /* not 0: the thread stays on its CPU */
    unsigned irq; /* interrupts under way */
    unsigned nmi; /* NMIs under way */
} ALIGNED(16);
/* plat_depths - of @cpu: right in front of its area, where a hit finds them soonest. */
static ALWAYS_INLINE struct plat_depths *plat_depths(const struct probe_cpu *cpu)
{
    return (struct plat_depths *)(uintptr_t)cpu - 1;
}
/* What a hit needs to know about its CPU. The hit reads it through these pointers,
 * because a call would cost more. The platform fills it in when it makes the CPU's area.
 */
struct plat_cpu {
    const uintptr_t *stack_base; /* lowest byte of the stack in use, outside NMI */
    uintptr_t nmi_stack_base;    /* lowest byte of the NMI stack */
    uint64_t *counters;          /* those of plat_counters_map() */
    struct shadow *const
        *shadow;               /* of the stack in use, outside NMI; NULL: it has none */
    struct shadow *nmi_shadow; /* of the NMI stack */
};

/* plat_preempt_enable - undo what the code of a detour, or the trampoline, did before it
 * called the engine.
 * Context: trap.
 */
void plat_preempt_enable(void);
/* plat_flags_as - undo what a handler has done to the flags of the CPU. A jump has led to
 * the handler, and the handler has returned. Interrupts are then off or on as in @flags,
 * and DF is clear.
 * plat_df_clear - only clear DF.
 * plat_flags_of_trap - the same after a handler that a trap has led to: interrupts are
 * off, and DF is clear.
 * Context: trap.
 */
void plat_flags_as(unsigned long flags);
static ALWAYS_INLINE void plat_df_clear(void)
{
    __asm__ volatile("cld");
}
static ALWAYS_INLINE void plat_flags_of_trap(void)
{
    if (!__STDC_HOSTED__) /* a process has no interrupts to switch off */
        __asm__ volatile("cli; cld" ::: "memory");
}
unsigned long plat_irq_save(void);
void plat_irq_restore(unsigned long flags);
/* Two sleeping locks, taken in this order. */
enum plat_lock { PLAT_PROBES, PLAT_TEXT };
void plat_lock(enum plat_lock lock);
void plat_unlock(enum plat_lock lock);
bool plat_lock_held(enum plat_lock lock);

/* ---- memory and symbols ---- */

void *plat_alloc(size_t len); /* zeroed; NULL without memory; thread */
void plat_free(void *p);

struct plat_symbol {
    uintptr_t start;
    size_t size;
    const char *name;
    const char *module; /* NULL: it is the image's */
};

/* plat_symbol_find - the function called @name; "name#2" is the second one of that name, by
 * address; "module:name" is one of loaded code.
 * Return: 0; -ENOENT; -EADDRNOTAVAIL several have this name.
 */
int plat_symbol_find(const char *name, struct plat_symbol *out);
/* plat_symbol_at - the function that contains @addr. Context: any. Return: 0; -ENOENT. */
int plat_symbol_at(uintptr_t addr, struct plat_symbol *out);
/* plat_has_fixup - may the instruction at @addr fault and be continued elsewhere?
 * Context: any.
 */
bool plat_has_fixup(uintptr_t addr);
/* plat_is_entry - does @addr belong to the entry code? Context: any. */
bool plat_is_entry(uintptr_t addr);

/* plat_is_engine - does @addr belong to the engine's own code? Context: any. */
bool plat_is_engine(uintptr_t addr);

/* ---- handlers, faults, the end ---- */

/* plat_given_up - a handler of @p, called with the stack pointer @sp, is given up. The locks
 * that it holds stay taken, and the platform reports them.
 * Context: trap.
 */
void plat_given_up(const struct kprobe *p, uintptr_t sp);
/* plat_escape - @fault is of a handler that a hit with image @regs has called. Let it, when
 * resumed, give the handler's stack up, call kprobe_resume(@regs), and go on with @regs.
 * Context: trap.
 */
void plat_escape(struct pt_regs *fault, struct pt_regs *regs);
/* plat_read - one word of memory that may be bad. Context: any.
 * Return: 0; -EFAULT.
 */
int plat_read(uint64_t *out, uintptr_t addr);
/* plat_seg_base - base of FS or GS (enum insn_seg). Context: any, preemption off. */
uintptr_t plat_seg_base(unsigned seg);
/* plat_raise_fault - the instruction at @regs->ip has failed to access @addr: what the
 * machine does when an instruction faults. Context: trap.
 */
void plat_raise_fault(struct pt_regs *regs, uintptr_t addr);
/* plat_raise_step - the program has TF set, and the instruction before @regs->ip has been
 * done for it: what the machine does after a single step. Context: trap.
 */
void plat_raise_step(struct pt_regs *regs);
/* plat_raise_again - let the fault that @regs is the image of happen again. Context: trap. */
void plat_raise_again(struct pt_regs *regs);

uint64_t plat_clock_ns(void);                     /* any, NMI-safe */
void plat_log(const char *fmt, ...) PRINTF(1, 2); /* thread */
_Noreturn void plat_bug(const char *what, uintptr_t where);
