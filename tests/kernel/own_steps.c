/* own_steps.c - handlers of #DB for a program that sets TF itself. */
#include "tests/kernel/own_steps.h"

#include "kernel/base/bits.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/trap.h"
#include "tests/kernel/return_targets.h"

#include <string.h>

#define DR6_BS BIT(14)

extern trap_direct_t trap_db_handler; /* kernel/cpu/trap.c, for entry.asm */

static struct own_steps *stepping;

static bool take_step(struct pt_regs *regs)
{
    if (!stepping || !(regs->dr6 & DR6_BS))
        return false;
    stepping->with_irqs += irqs_enabled();
    if (stepping->count < OWN_STEPS_MAX)
        stepping->at[stepping->count++] = regs->ip;
    return true;
}

void own_steps_begin(struct own_steps *steps)
{
    static bool taken;

    if (!taken)
        trap_set_handler(TRAP_DB, take_step);
    taken = true;
    steps->count = steps->with_irqs = 0;
    stepping = steps;
}

void own_steps_end(void)
{
    stepping = NULL;
}

uint64_t own_steps_of(struct own_steps *steps, uint64_t (*fn)(uint64_t x), uint64_t x)
{
    uint64_t value;

    own_steps_begin(steps);
    value = return_stepped(fn, x);
    own_steps_end();
    return value;
}

/* ---- a handler in place of the engine's ---- */

static void (*watching)(struct pt_regs *regs);
static trap_direct_t engines;

static bool watch_step(struct pt_regs *regs, void *probe)
{
    if (!(regs->dr6 & DR6_BS))
        return engines(regs, probe);
    watching(regs);
    return true;
}

void own_steps_watch(void (*see)(struct pt_regs *regs))
{
    watching = see;
    engines = trap_db_handler;
    trap_set_direct(TRAP_DB, watch_step);
}

void own_steps_unwatch(void)
{
    trap_set_direct(TRAP_DB, engines);
}

bool own_steps_same(const struct own_steps *a, const struct own_steps *b, size_t more)
{
    return a->count == b->count && a->count > more &&
           memcmp(a->at, b->at, a->count * sizeof(a->at[0])) == 0;
}
