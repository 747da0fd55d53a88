/* wait_check.c - refuses a call in a context where the called function could not wait. */
#include "kernel/sync/wait_check.h"

#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/percpu.h"
#include "kernel/debug/log.h"

/* why_not - return the reason why the caller cannot wait; NULL: it can.
 * @silent: receives whether the interrupted code may have the lock of the log
 */
static const char *why_not(bool *silent)
{
    enum cpu_context context = cpu_context();

    *silent = context == CTX_HELD || context == CTX_NMI || hit_is_active();
    if (context == CTX_HELD)
        return "a debugger has stopped all CPUs";
    if (context == CTX_NMI || context == CTX_IRQ)
        return "the CPU handles an interrupt";
    if (!irqs_enabled())
        return "interrupts are off";
    return preempt_is_off() ? "preemption is off" : NULL;
}

int wait_check(const char *verb)
{
    bool silent;
    const char *why = why_not(&silent);

    if (!why)
        return 0;
    if (!silent)
        log_warn("%s() is refused with EDEADLK: it may wait, but %s", verb, why);
    return -EDEADLK;
}
