/* panic.h - stops the machine, and prints what is known about the cause. */
#pragma once

#include "kernel/base/compiler.h"
#include "kernel/base/regs.h"

#include <stdbool.h>

/* panic - stop all CPUs, print the message, registers, a backtrace of each CPU and the
 * reports, and end QEMU with a failing status. Context: any.
 */
_Noreturn void panic(const char *fmt, ...) PRINTF(1, 2);
/* panic_regs - do as panic(), but print the registers of a trap: @regs. */
_Noreturn void panic_regs(const struct pt_regs *regs, const char *fmt, ...) PRINTF(2, 3);

/* Sockets, filled at boot. */
void panic_add_report(void (*fn)(void)); /* at most 8; @fn runs with other CPUs stopped */
extern void (*panic_exit_fn)(void);      /* ends the machine; may return if it can't */
extern void (*panic_sink_fn)(const char *text, size_t len); /* lock-free output */
extern void (*panic_stop_fn)(void); /* stops the other CPUs, by NMI */

/* panic_print - print text through the panic sink; for reports. */
void panic_print(const char *fmt, ...) PRINTF(1, 2);

/* panic_nmi - if another CPU has panicked, note @regs and halt.
 * Context: nmi. Return: does this CPU panic? Then no handler may run on it: a debugger's
 * would let it stand.
 */
bool panic_nmi(const struct pt_regs *regs);

#define BUG_ON(cond)                                                                     \
    do {                                                                                 \
        if (unlikely(cond))                                                              \
            panic("%s", __FILE__ ":" AS_TEXT(__LINE__) ": " #cond);                      \
    } while (0)
#define ASSERT(cond) BUG_ON(!(cond))
