/* panic.c - stops all CPUs, and prints what is known about the cause.
 *
 * Runs in any context: it takes no locks and allocates no memory, and its sink waits for
 * no lock. The first CPU that panics owns the output; other CPUs halt.
 */
#include "kernel/debug/panic.h"

#include "kernel/base/compiler.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/backtrace.h"
#include "kernel/debug/ksyms.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define REPORTS_MAX 8
#define NOBODY (-1)
#define STOP_SPINS 20000000ul /* pauses: about a second */

static void (*reports[REPORTS_MAX])(void);
void (*panic_exit_fn)(void);
void (*panic_sink_fn)(const char *text, size_t len);
void (*panic_stop_fn)(void);

static _Atomic int owner = NOBODY;
static struct {
    struct pt_regs regs;
    _Atomic bool valid;
} stopped[MAX_CPUS];

INIT void panic_add_report(void (*fn)(void))
{
    for (size_t i = 0; i < REPORTS_MAX; i++) {
        if (reports[i])
            continue;
        reports[i] = fn;
        return;
    }
    panic("more than %d panic reports", REPORTS_MAX);
}

void panic_print(const char *fmt, ...)
{
    char text[512];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vscnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (panic_sink_fn)
        panic_sink_fn(text, (size_t)n);
}

static _Noreturn void panic_halt(void)
{
    for (;;) {
        cli();
        hlt();
    }
}

bool panic_nmi(const struct pt_regs *regs)
{
    unsigned cpu = cpu_id();
    int holder = atomic_load(&owner);

    if (holder == NOBODY || holder == (int)cpu)
        return holder != NOBODY;
    stopped[cpu].regs = *regs;
    atomic_store(&stopped[cpu].valid, true);
    panic_halt();
}

static void print_regs(const struct pt_regs *r)
{
    char place[KSYMS_TEXT_LEN];
    size_t len = ksyms_text(place, sizeof(place), r->ip);

    panic_print("ip  0x%016lx%s%s  flags 0x%08lx\n", r->ip, len ? " " : "",
                len ? place : "", r->flags);
    panic_print("ax  %016lx bx  %016lx cx  %016lx dx  %016lx\n", r->ax, r->bx, r->cx,
                r->dx);
    panic_print("si  %016lx di  %016lx bp  %016lx sp  %016lx\n", r->si, r->di, r->bp,
                r->sp);
    panic_print("r8  %016lx r9  %016lx r10 %016lx r11 %016lx\n", r->r8, r->r9, r->r10,
                r->r11);
    panic_print("r12 %016lx r13 %016lx r14 %016lx r15 %016lx\n", r->r12, r->r13, r->r14,
                r->r15);
    panic_print("cr2 %016llx cr3 %016llx\n", (unsigned long long)read_cr2(),
                (unsigned long long)read_cr3());
}

static void stop_and_wait(void)
{
    unsigned self = cpu_id();

    if (!panic_stop_fn || cpu_count() < 2)
        return;
    panic_stop_fn();
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        for (unsigned long n = 0; cpu != self && n < STOP_SPINS; n++) {
            if (atomic_load(&stopped[cpu].valid))
                break;
            pause();
        }
}

static void print_cpus(const struct pt_regs *regs)
{
    unsigned self = cpu_id();

    panic_print("CPU %u, which panicked:\n", self);
    backtrace_print(regs, panic_print);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++) {
        if (cpu == self)
            continue;
        panic_print("CPU %u%s\n", cpu,
                    atomic_load(&stopped[cpu].valid) ? ":" : " did not stop");
        if (atomic_load(&stopped[cpu].valid))
            backtrace_print(&stopped[cpu].regs, panic_print);
    }
}

static _Noreturn void panic_common(const struct pt_regs *regs, const char *fmt,
                                   va_list args)
{
    char text[256];
    int holder = NOBODY;
    bool first;

    cli();
    first = atomic_compare_exchange_strong(&owner, &holder, (int)cpu_id());
    if (!first && holder != (int)cpu_id())
        panic_halt();
    vscnprintf(text, sizeof(text), fmt, args);
    panic_print("\npanic%s: %s\n", first ? "" : " inside the panic", text);
    if (first) {
        stop_and_wait();
        if (regs)
            print_regs(regs);
        print_cpus(regs);
        for (size_t i = 0; i < REPORTS_MAX && reports[i]; i++)
            reports[i]();
    }
    panic_print("end of panic\n");
    if (panic_exit_fn)
        panic_exit_fn();
    panic_halt();
}

void panic(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    panic_common(NULL, fmt, args);
}

void panic_regs(const struct pt_regs *regs, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    panic_common(regs, fmt, args);
}
