/* gdb_stop.h - stops all CPUs for the debugger, and lets them go on.
 *
 * A stopped CPU `stands`: it executes nothing of the program. One of the CPUs that stand
 * serves, that is, it talks to the debugger. Its context is `held` (docs/architecture.md),
 * with interrupts off.
 */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* The reason that a CPU itself has to stop. */
enum gdb_why {
    GDB_WHY_NONE,      /* none: another CPU has stopped it */
    GDB_WHY_INTERRUPT, /* the debugger has asked for a stop */
    GDB_WHY_BREAK,     /* a breakpoint; ip is its address */
    GDB_WHY_HARDWARE,  /* a hardware breakpoint (Z1); ip is its address */
    GDB_WHY_WATCH,     /* after an access to gdb_cpu.address */
    GDB_WHY_TRAP,      /* an int3 of the program; ip is behind it */
    GDB_WHY_STEP,      /* after a step */
    GDB_WHY_ERROR,     /* a breakpoint's condition could not be computed */
    GDB_WHY_EXIT,      /* the machine is about to be switched off */
};

/* The state of a CPU for the stub. The CPU itself writes it before it stands. The serving CPU
 * reads it, and may change *regs.
 */
struct gdb_cpu {
    struct pt_regs *regs; /* NULL: the CPU runs */
    enum gdb_why why;     /* the reason, until it has been reported */
    uintptr_t address;    /* for GDB_WHY_WATCH */
    const char *watch;    /* for GDB_WHY_WATCH: "watch", "rwatch", "awatch" */
    bool inside_nmi;      /* the CPU has stopped in the code of an NMI */
    bool go;              /* the CPU may run */
    bool masked;          /* it takes no interrupts: gdb_step_irqs() */
    bool sent;            /* the NMI of a stop is on its way */
    uint64_t cr0, cr2, cr3, cr4, efer, fs_base, gs_base;
};

/* gdb_stop - stop all CPUs and serve the debugger, until the debugger lets this CPU go
 * on. If another CPU serves already, this CPU stands, and its reason is reported after
 * that CPU.
 * @regs: the image of this CPU; the debugger may change it
 * @wanted: asked, with @arg, when this CPU stands, and in that case again: is there still
 *          a reason? NULL: there is, while a debugger is attached
 *
 * Context: any, interrupts off.
 * Return:  false: this CPU serves the debugger, or is in a stop already; nothing has
 *          happened.
 */
bool gdb_stop(struct pt_regs *regs, enum gdb_why why, bool (*wanted)(void *arg),
              void *arg);

/* gdb_stop_at - do as gdb_stop(), for a watchpoint: @address and @watch go into struct
 * gdb_cpu.
 */
bool gdb_stop_at(struct pt_regs *regs, enum gdb_why why, uintptr_t address,
                 const char *watch, bool (*wanted)(void *arg), void *arg);

/* gdb_stop_nmi - handle an NMI. If another CPU has sent it to stop this CPU, stand until
 * this CPU may go. Context: nmi.
 * Return: false: the NMI has another purpose.
 */
bool gdb_stop_nmi(struct pt_regs *regs);

/* gdb_is_serving - does the executing CPU serve the debugger? Context: any. */
bool gdb_is_serving(void);

/* gdb_is_stopping - are all CPUs stopped, or about to stop? Context: any. */
bool gdb_is_stopping(void);

/* gdb_cpu - return what is known of CPU @cpu, which executes this or stands. Context: any. */
struct gdb_cpu *gdb_cpu(unsigned cpu);

/* gdb_cpu_of - return the CPU on which @t is; -1: it is on none. Context: held. */
int gdb_cpu_of(const struct thread *t);

/* gdb_release - let CPUs run again: CPU @only, or all CPUs if @only is GDB_ALL_CPUS. The
 * serving CPU itself goes on when it has served. Context: held.
 */
#define GDB_ALL_CPUS (-1)
void gdb_release(int only);

/* gdb_stop_init - set the function that talks to the debugger until gdb_release().
 * Context: boot.
 */
void gdb_stop_init(void (*fn)(unsigned cpu));

/* gdb_stop_in_detour - is the CPU in code that leads to handlers without a trap, and keeps
 * the flags of the program? TF of a step from here would be kept as well, and come back to
 * the program later. Context: any.
 */
bool gdb_stop_in_detour(const struct pt_regs *regs);

/* gdb_stop_ip - return the ip of the program at @regs. If ip is in code that the engine
 * has made, that is the address of the instruction which this code runs. Context: any.
 */
uintptr_t gdb_stop_ip(const struct pt_regs *regs);
