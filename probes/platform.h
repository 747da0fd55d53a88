/* platform.h - everything the engine asks of the machine.
 *
 * Plain functions, found by the linker: the kernel has them in probes/port/port_kernel.c,
 * the unit tests in tests/unit/port_fake.c, the hosted engine in
 * tests/hosted/port_posix.c. docs/architecture.md has a row for each.
 */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_cpu;

/* ---- text ---- */

/* plat_text_read - copy bytes that may be unreadable. Context: any. Return: 0; -EFAULT. */
int plat_text_read(void *dst, uintptr_t addr, size_t len);
/* plat_text_write - change bytes of text or of plat_exec_alloc() memory, through a writable
 * alias. Promises nothing about other CPUs.
 * Context: thread.  Locks: PLAT_TEXT held.  Return: 0; -EFAULT neither of the two.
 */
int plat_text_write(uintptr_t addr, const void *bytes, size_t len);
/* plat_sync_cores - every CPU has executed a serialising instruction since the call.
 * Context: thread, interrupts on.
 */
void plat_sync_cores(void);
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

/* ---- time, place, locks ---- */

/* plat_quiesce - return when no CPU and no preempted thread is inside a handler, a slot or
 * a detour that it entered before the call. Context: thread, may sleep long.
 */
void plat_quiesce(void);

enum plat_context { PLAT_THREAD, PLAT_IRQ, PLAT_TRAP, PLAT_NMI };
/* plat_context - where the caller runs. Context: any. */
enum plat_context plat_context(void);

unsigned plat_cpu_count(void);
/* plat_probe_cpu - the engine's area of CPU @cpu, 0..plat_cpu_count()-1. Context: any. */
struct probe_cpu *plat_probe_cpu(unsigned cpu);
/* plat_this_cpu - of the executing CPU; NULL before the CPU is ready for probes.
 * Context: any, preemption off.
 */
struct probe_cpu *plat_this_cpu(void);
/* What a hit asks of its CPU, by pointers: a call would cost more than the answer. The
 * platform fills it in when it makes the CPU's area.
 */
struct plat_cpu {
    const unsigned *nmi_depth;   /* not 0: in NMI context */
    const uintptr_t *stack_base; /* lowest byte of the stack in use, outside NMI */
    uintptr_t nmi_stack_base;    /* and inside */
};

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
};

/* plat_symbol_find - the function called @name; "name#2" is the second one of that name, by
 * address. Return: 0; -ENOENT; -EADDRNOTAVAIL several have this name.
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

/* plat_nokprobe - the recorded addresses of functions marked NOKPROBE: @count of them. */
const uintptr_t *plat_nokprobe(size_t *count);

/* ---- handlers, faults, the end ---- */

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
