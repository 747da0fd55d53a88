/* platform.h - the functions that breakpoints need from the kernel and the machine.
 *
 * Jumps need more functions (probes/jump/platform_jump.h), and so do return probes
 * (probes/returns/platform_returns.h) and watches (probes/watch/platform_watch.h). All of
 * them are plain functions, and the linker finds them: for the kernel in probes/port, for
 * the unit tests in tests/unit/port_fake.c, for the hosted engine in
 * tests/hosted/port_posix.c.
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
/* plat_text_write - change bytes of text or of plat_exec_alloc() memory, through a
 * writable alias, and check that the change is there. 1, 2, 4 or 8 bytes at an address
 * that is a multiple of their number are stored at once. Nothing else is promised about
 * when, and in what order, other CPUs see the bytes.
 * @len: 1..4096
 * Context: thread or stopped or held.  Locks: PLAT_TEXT held.
 * Return:  0; -EFAULT the bytes are neither text nor such memory.
 */
int plat_text_write(uintptr_t addr, const void *bytes, size_t len);
/* plat_sync_cores - synchronise all CPUs. On return each CPU has executed a serialising
 * instruction since the call, or is halted and will execute one before all else. A CPU
 * that was in an NMI at the call has left the NMI.
 * Context: thread, interrupts on; stopped or held. There every CPU counts as
 *          synchronised, since it serialises before it goes on. But it may stand in an NMI
 *          or in a search of a table, so the platform keeps what plat_free() gets there.
 */
void plat_sync_cores(void);
/* plat_sync_count - return how often plat_sync_cores() has synchronised CPU @cpu,
 * 0..plat_cpu_count()-1. Context: any.
 */
uint64_t plat_sync_count(unsigned cpu);
/* plat_sync_ns - return when plat_sync_cores() has synchronised CPU @cpu last, in the
 * time of plat_clock_ns(). Context: any.
 * Return: 0: the CPU was halted then, so it was left alone.
 */
uint64_t plat_sync_ns(unsigned cpu);
/* plat_stop_machine - run @fn(@arg) while all other CPUs stand still. All CPUs have
 * interrupts off, but still take NMIs. @fn may not sleep. Context: thread, interrupts on.
 * plat_stopped_ip - return the address at which CPU @cpu was interrupted when the machine
 * was stopped. Context: stopped.
 * Return: 0 for the CPU that runs @fn.
 */
void plat_stop_machine(void (*fn)(void *arg), void *arg);
uintptr_t plat_stopped_ip(unsigned cpu);
/* plat_text_contains - is all of [addr, addr + len) text of the kind that may carry
 * probes?
 * Context: any.
 */
bool plat_text_contains(uintptr_t addr, size_t len);
#define PLAT_LINE_LEN 64
/* plat_text_is_built - does a line of text have the bytes that the build has put there?
 * @line:  address of the line, a multiple of PLAT_LINE_LEN
 * @bytes: the PLAT_LINE_LEN bytes there now, with the engine's own changes undone
 * Context: thread or held.  Return: true also if that is not known.
 */
bool plat_text_is_built(uintptr_t line, const uint8_t *bytes);

/* ---- executable memory ---- */

/* plat_exec_alloc - allocate executable pages, filled with int3. A rel32 displacement
 * reaches from all text to these pages, and back.
 * @len: multiple of 4096
 * Context: thread or held.  Return: NULL when there is none left.
 */
void *plat_exec_alloc(size_t len);
void plat_exec_free(void *p, size_t len);
/* plat_exec_window - return the range of addresses that all memory of plat_exec_alloc()
 * lies in. Other things may lie in the range, too. It has at most some hundred MiB.
 * Context: any.
 */
void plat_exec_window(uintptr_t *start, size_t *len);
/* plat_exec_contains - does @addr lie in memory of plat_exec_alloc()? Context: any. */
bool plat_exec_contains(uintptr_t addr);

/* What a detour keeps on the stack while it calls a light handler. If the engine gives
 * the handler up, it loads the registers from here, because the handler cannot restore
 * them. The word below this struct is the return address of the handler.
 */
struct plat_light {
    struct kprobe *probe;
    unsigned long bp;
    /* Only with PLAT_SPECIALIZED_LIGHT_KEEP. The low half of preempt is
     * plat_depths.preempt.
     */
    unsigned long preempt, bx, r12, r13, r14, r15, flags;
};

/* ---- time, place, locks ---- */

/* plat_quiesce - wait for quiescence: until no CPU and no preempted thread is inside a
 * handler, a slot or a detour that it had entered before the call. Context: thread. It
 * may sleep long.
 */
void plat_quiesce(void);

/* PLAT_HELD: a debugger has stopped all other CPUs. The engine's locks are free, text may be
 * changed, but no function waits for another CPU or thread.
 */
enum plat_context { PLAT_THREAD, PLAT_IRQ, PLAT_TRAP, PLAT_NMI, PLAT_HELD };
/* plat_context - tell in which context the caller runs. Context: any. */
enum plat_context plat_context(void);
/* plat_wait_check - refuse the call of @verb if it could not wait in this context: the log
 * names @verb and the reason. Context: any.  Return: 0; -EDEADLK.
 */
int plat_wait_check(const char *verb);

#define PLAT_CPUS_MAX 64
unsigned plat_cpu_count(void); /* 1..PLAT_CPUS_MAX */
/* plat_probe_cpu - return the engine's data of CPU @cpu, 0..plat_cpu_count()-1; NULL
 * before this CPU is ready for probes. Context: any.
 */
struct probe_cpu *plat_probe_cpu(unsigned cpu);
/* plat_this_cpu - the same for the executing CPU. Context: any, preemption off. */
struct probe_cpu *plat_this_cpu(void);
/* The platform's counters that tell what a CPU is executing. */
struct plat_depths {
    int preempt;  /* not 0: the thread stays on its CPU */
    unsigned nmi; /* NMIs that are being handled */
    unsigned irq; /* interrupts that are being handled */
} ALIGNED(16);
/* plat_depths - return the depths of @cpu. They lie in memory directly in front of its
 * struct probe_cpu, so that a hit finds them without another pointer.
 */
static ALWAYS_INLINE struct plat_depths *plat_depths(const struct probe_cpu *cpu)
{
    return (struct plat_depths *)(uintptr_t)cpu - 1;
}
/* What a hit needs to know about its CPU. The hit reads it through these pointers,
 * because a call would cost more. The platform fills this in before the CPU is ready for
 * probes.
 */
struct plat_cpu {
    const uintptr_t *stack_base; /* lowest byte of the stack in use, outside NMI */
    uintptr_t nmi_stack_base;    /* lowest byte of the NMI stack */
    uint64_t *counters;          /* those of plat_counters_map() */
    struct shadow *const
        *shadow;               /* of the stack in use, outside NMI; NULL: it has none */
    struct shadow *nmi_shadow; /* of the NMI stack */
};

/* plat_preempt_enable - switch preemption on in place of a detour or the trampoline,
 * which has switched it off before it called the engine. The engine does this when it
 * gives a handler up: then the CPU does not go back to the code that would do it.
 * Context: trap.
 */
void plat_preempt_enable(void);
/* plat_flags_as - undo what a handler has done to the flags of the CPU, if a jump has led
 * to the handler. On return interrupts are off or on as in @flags, and DF is clear.
 * plat_df_clear - only clear DF.
 * plat_flags_of_trap - undo the same, if a trap has led to the handler. On return
 * interrupts are off, and DF is clear. Context: trap.
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
/* The engine's two locks. Both are sleeping locks. Code that takes both takes PLAT_PROBES
 * first. Context: thread or held. In `held` both are free, and nothing is taken.
 */
enum plat_lock { PLAT_PROBES, PLAT_TEXT };
void plat_lock(enum plat_lock lock);
void plat_unlock(enum plat_lock lock);
bool plat_lock_held(enum plat_lock lock);

/* ---- memory and symbols ---- */

void *plat_alloc(size_t len); /* zeroed; NULL without memory; thread, held */
void plat_free(void *p);

struct plat_symbol {
    uintptr_t start;
    size_t size;
    const char *name;
    const char *module; /* NULL: the function is part of the image */
};

/* plat_symbol_find - find the function called @name. "name#2" is the second function of
 * this name, in order of address; "module:name" is a function of loaded code.
 * Return: 0; -ENOENT; -EADDRNOTAVAIL several functions have this name.
 */
int plat_symbol_find(const char *name, struct plat_symbol *out);
/* plat_symbol_at - find the function that contains @addr. Context: any. Return: 0;
 * -ENOENT.
 */
int plat_symbol_at(uintptr_t addr, struct plat_symbol *out);
/* plat_has_fixup - does the kernel have a fix-up for a fault of the instruction at @addr,
 * so that the CPU goes on elsewhere? Context: any.
 */
bool plat_has_fixup(uintptr_t addr);
/* plat_is_entry - does @addr belong to the entry code? Context: any. */
bool plat_is_entry(uintptr_t addr);

/* plat_stops_at - does a debug register stop a CPU that comes to @addr? Context: any. */
bool plat_stops_at(uintptr_t addr);

/* plat_is_engine - does @addr belong to the engine's own code? Context: any. */
bool plat_is_engine(uintptr_t addr);

/* ---- handlers, faults, the end ---- */

/* plat_given_up - tell the platform that a handler of @p is given up. The locks that the
 * handler holds stay taken, and the platform reports them.
 * @sp: the stack pointer when the handler was called
 * Context: trap.
 */
void plat_given_up(const struct kprobe *p, uintptr_t sp);
/* plat_escape - change @fault, so that the CPU does not go back into the handler that has
 * faulted. Instead it drops the stack of the handler, calls kprobe_resume(@regs), and
 * goes on with @regs.
 * @fault: the image of the fault
 * @regs:  the image of the hit that has called the handler
 * Context: trap.
 */
void plat_escape(struct pt_regs *fault, struct pt_regs *regs);
/* plat_read - read a word of memory that may be unreadable. Context: any.
 * Return: 0; -EFAULT.
 */
int plat_read(uint64_t *out, uintptr_t addr);
/* plat_seg_base - return the base of FS or GS (enum insn_seg). Context: any, preemption
 * off.
 */
uintptr_t plat_seg_base(unsigned seg);
/* plat_raise_fault - do what a CPU does when the instruction at @regs->ip cannot access
 * @addr: raise a fault. @by_stack: rsp or rbp is its base.  Context: trap.
 */
void plat_raise_fault(struct pt_regs *regs, uintptr_t addr, bool by_stack);
/* plat_raise_step - do what a CPU does after a single step: raise a #DB. The program has
 * TF set, and the engine has run the instruction in front of @regs->ip for it. Context:
 * trap.
 */
void plat_raise_step(struct pt_regs *regs);
/* plat_raise_again - raise the fault once more that @regs is the image of. Context: trap.
 */
void plat_raise_again(struct pt_regs *regs);

uint64_t plat_clock_ns(void);                     /* any, NMI-safe */
void plat_log(const char *fmt, ...) PRINTF(1, 2); /* thread */
_Noreturn void plat_bug(const char *what, uintptr_t where);
