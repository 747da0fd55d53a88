/* gdb_stop.h - all CPUs stand still, and one of them talks to the debugger. */
#pragma once

#include "kernel/base/regs.h"

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Why a CPU has stopped by itself. */
enum gdb_why {
    GDB_WHY_NONE,      /* another CPU has stopped it */
    GDB_WHY_INTERRUPT, /* the debugger has asked for it */
    GDB_WHY_BREAK,     /* at a breakpoint, with ip on it */
    GDB_WHY_HARDWARE,  /* the same, by a debug register */
    GDB_WHY_WATCH,     /* behind an access to gdb_cpu.address */
    GDB_WHY_TRAP,      /* an int3 of the program, with ip behind it */
    GDB_WHY_STEP,      /* behind a step */
    GDB_WHY_ERROR,     /* a condition could not be computed */
    GDB_WHY_EXIT,      /* the machine is about to be switched off */
};

/* One CPU. Written by it before it stands, read by the one that serves; that one may
 * change *regs.
 */
struct gdb_cpu {
    struct pt_regs *regs; /* NULL: it runs */
    enum gdb_why why;     /* until it has been reported */
    uintptr_t address;    /* of GDB_WHY_WATCH */
    const char *watch;    /* "watch", "rwatch", "awatch" */
    bool inside_nmi;      /* it has stopped in the code of an NMI */
    bool go;              /* it may run */
    uint64_t cr0, cr2, cr3, cr4, efer, fs_base, gs_base;
};

/* gdb_stop - stop all CPUs and serve the debugger, until the debugger lets this CPU go
 * on. Where another CPU serves already, this one is reported when that one goes on;
 * @wanted, which may be NULL, is asked then whether there is still a reason.
 * @regs: where this CPU is; the debugger may change it
 *
 * Context: any, interrupts off.
 * Return:  false: this CPU serves the debugger itself just now; nothing has happened.
 */
bool gdb_stop(struct pt_regs *regs, enum gdb_why why, bool (*wanted)(void *arg),
              void *arg);

/* gdb_stop_at - gdb_stop() with the facts of a watchpoint. */
bool gdb_stop_at(struct pt_regs *regs, enum gdb_why why, uintptr_t address,
                 const char *watch);

/* gdb_stop_nmi - an NMI: is it the one by which another CPU stops this one? Then it
 * stands until it may go. Context: nmi.
 * Return: false: the NMI is no part of a stop.
 */
bool gdb_stop_nmi(struct pt_regs *regs);

/* gdb_is_serving - does the executing CPU serve the debugger? Context: any. */
bool gdb_is_serving(void);

/* gdb_is_stopping - is the machine stopped, or about to be? Context: any. */
bool gdb_is_stopping(void);

/* gdb_cpu - what is known of CPU @cpu while it stands. Context: serving. */
struct gdb_cpu *gdb_cpu(unsigned cpu);

/* gdb_cpu_of - the CPU on which @t is, -1: none. Context: serving. */
int gdb_cpu_of(const struct thread *t);

/* gdb_release - what is to run when the serving CPU is done: all CPUs, or @only one.
 * Context: serving.
 */
#define GDB_ALL_CPUS (-1)
void gdb_release(int only);

/* gdb_serve - a socket below this file: talk until gdb_release(). @cpu: the serving CPU.
 */
void gdb_serve(unsigned cpu);
