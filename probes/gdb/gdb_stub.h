/* gdb_stub.h - the stub for GDB: it talks to a debugger on COM2, and stops the kernel
 * for it. See docs/debugging.md.
 */
#pragma once

#include <stdbool.h>

/* gdb_init - find COM2 and begin to listen. From then on the first packet of a debugger
 * stops the kernel. Without COM2 nothing happens.
 * Context: thread, all CPUs online, after probes_init().
 */
void gdb_init(void);

/* gdb_poll - do the stub's part of a timer tick. Send an NMI to this CPU if there is work
 * on the line: a byte without an interrupt, a stop that had to wait, or text to send.
 * Wake the stub's thread if it has work. Context: irq. It is always on the same CPU.
 */
struct pt_regs;
void gdb_poll(void);

/* gdb_wait - wait here until a debugger has connected and has let the kernel go on. If
 * that was before, the wait is over at once. For the boot word gdbwait.
 * Context: thread, interrupts on.
 */
void gdb_wait(void);

/* gdb_exit - tell an attached debugger, which waits for a stop, that the machine is about
 * to be switched off, and detach it. Context: thread.
 * @status: the exit status that the debugger shows, as of a program: 0 to 255
 */
void gdb_exit(unsigned status);
