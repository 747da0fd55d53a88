/* gdb_stub.h - the kernel's own stub for GDB, on COM2. See docs/debugging.md. */
#pragma once

#include <stdbool.h>

/* gdb_init - find COM2 and listen: the first packet of a debugger stops the kernel.
 * Without COM2 nothing happens. Context: boot thread, all CPUs online, after
 * probes_init().
 */
void gdb_init(void);

/* gdb_poll - look at the line: an interrupt may have been lost. For the timer tick.
 * Context: irq, on one CPU.
 */
struct pt_regs;
void gdb_poll(void);

/* gdb_wait - stand still here until a debugger comes and lets the kernel go on: the boot
 * word gdbwait. Context: thread.
 */
void gdb_wait(void);

/* gdb_exit - tell the debugger that waits for a stop that there will be none, as the machine
 * is about to be switched off. The debugger is detached. Context: thread.
 * @status: as of a program, 0 to 255
 */
void gdb_exit(unsigned status);
