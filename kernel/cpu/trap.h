/* trap.h - sets the handlers of each vector. The tables of handlers are filled at boot,
 * and read without locks.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAP_DE 0
#define TRAP_DB 1
#define TRAP_NMI 2
#define TRAP_BP 3
#define TRAP_UD 6
#define TRAP_NM 7
#define TRAP_DF 8
#define TRAP_NP 11
#define TRAP_SS 12
#define TRAP_GP 13
#define TRAP_PF 14
#define TRAP_MF 16
#define TRAP_AC 17
#define TRAP_MC 18
#define TRAP_XM 19
#define TRAP_COUNT 32

#define VECTOR_ISA(irq) (0x40u + (irq))
#define VECTOR_TIMER 0xd0u
#define VECTOR_RESCHED 0xe0u
#define VECTOR_CALL 0xe1u
#define VECTOR_PROBES 0xe2u
#define VECTOR_SWITCH 0xe3u     /* raised by an instruction of a detour: switch if due */
#define VECTOR_DEBUG_REGS 0xe4u /* load the debug registers: kernel/cpu/debug_reg.h */
#define VECTOR_STAND 0xf0u /* end lapic_halt(); no other IPI has this priority class */
#define VECTOR_SPURIOUS 0xffu

/* A handler returns true if the trap was its own; then the CPU goes on with the image. */
typedef bool (*trap_handler_t)(struct pt_regs *regs);
/* @probe: percpu.probe of the executing CPU, which the handler needs first of all. */
typedef bool (*trap_direct_t)(struct pt_regs *regs, void *probe);
typedef void (*irq_handler_t)(struct pt_regs *regs);

/* trap_init - fill the IDT. Context: boot. */
void trap_init(void);

/* trap_load_idt - load the IDT on the executing CPU. Context: any, interrupts off. */
void trap_load_idt(void);

/* trap_set_direct - set the handler of #BP or #DB that entry code calls directly, with no
 * code in between that can be probed. The handler returns false for traps that are not
 * its own.
 * @vector: TRAP_BP or TRAP_DB
 *
 * Context: boot or thread.
 */
void trap_set_direct(unsigned vector, trap_direct_t fn);

/* trap_fault_handler - a socket: looks at each other exception before code that can be
 * probed does. It returns false for those that are not its own. Set at boot.
 */
extern bool (*trap_fault_handler)(struct pt_regs *regs);

/* trap_resume_handler - a socket: finishes a hit after its handler was given up, see
 * trap_resume_hit in entry.asm. Set at boot.
 */
extern void (*trap_resume_handler)(struct pt_regs *regs, void *probe);

/* trap_step_lost - a socket: is told when the handler of an exception has raised the stack
 * pointer of the image, which was @sp, as the engine does when it gives a handler up: code
 * whose stack lies between the two is given up, and the trap of its step will not come.
 * Set at boot.
 */
extern void (*trap_step_lost)(struct pt_regs *regs, uintptr_t sp);

/* trap_goes_on - a socket: may change regs->ip, when the handler of an exception other than
 * #DB has set where the CPU goes on. Set at boot.
 */
extern void (*trap_goes_on)(struct pt_regs *regs);

#define TRAP_HANDLERS_MAX 8 /* of one vector */

/* trap_set_handler - offer exceptions of one vector to @fn before they become a panic.
 * @vector: 0..31, but not #DF and #MC, which are always fatal. The handlers of a vector
 *          are called in the order in which they were set; at most TRAP_HANDLERS_MAX.
 *
 * Context: boot or thread. Such a trap cannot happen yet.
 */
void trap_set_handler(unsigned vector, trap_handler_t fn);

/* irq_set_handler - run @fn for interrupts of @vector, with interrupts off, not nested.
 * @fn calls lapic_eoi() itself.
 * @vector: 32..255   @name: shown in /proc/interrupts; kept, not copied
 *
 * Context: boot or thread.
 */
void irq_set_handler(unsigned vector, const char *name, irq_handler_t fn);

/* trap_serialise_nmis - switch on or off that each NMI begins with a serialising
 * instruction. It is on while text changes that an NMI may execute. Context: any.
 */
void trap_serialise_nmis(bool on);

/* trap_raise - handle @regs as if the CPU had just trapped with the vector and the error
 * code in @regs, which switches interrupts off. For code that emulates an instruction, if
 * the instruction faults or is stepped. Context: trap.
 */
void trap_raise(struct pt_regs *regs);

/* trap_is_own - is a byte of [@addr, @addr + @len) read at each trap, by the processor or
 * by the code that calls the direct handler? Context: any.
 */
bool trap_is_own(uintptr_t addr, size_t len);

/* irq_count - get how many interrupts of @vector @cpu has taken. Context: any. */
uint64_t irq_count(unsigned cpu, unsigned vector);
/* irq_name - get the name given to irq_set_handler(); NULL: no handler. Context: any. */
const char *irq_name(unsigned vector);
/* trap_name - get the name of an exception, e.g. "#PF page fault". Context: any. */
const char *trap_name(unsigned vector);
