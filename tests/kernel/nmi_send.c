/* nmi_send.c - sends NMIs one by one: a CPU holds only one pending NMI, so an NMI that is
 * sent while another one is pending would be lost. A test takes them.
 */
#include "tests/kernel/nmi_send.h"

#include "kernel/cpu/instr.h"
#include "kernel/cpu/smp.h"
#include "kernel/time/clock.h"

#define PATIENCE_NS UINT64_C(300000000000)

static trap_handler_t taker;

static bool take(struct pt_regs *regs)
{
    return READ_ONCE(taker)(regs);
}

void nmi_take(trap_handler_t fn)
{
    bool is_first = !taker;

    WRITE_ONCE(taker, fn);
    if (is_first)
        trap_set_handler(TRAP_NMI, take);
}

void nmi_send_many(unsigned cpu, uint64_t count, const volatile uint64_t *taken)
{
    uint64_t limit = clock_ns() + PATIENCE_NS;

    for (uint64_t sent = 0; sent < count && clock_ns() < limit; sent++) {
        uint64_t before = *taken;

        smp_send_nmi(cpu);
        while (*taken == before && clock_ns() < limit)
            pause();
    }
}
