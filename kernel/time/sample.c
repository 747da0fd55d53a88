/* sample.c - lets the interrupt of a timer come as an NMI.
 *
 * Probes on the way of an NMI make it longer. If it takes as long as the time between two,
 * a CPU executes nothing else: the next NMI is due when one returns. So each CPU looks how
 * long its NMIs take, and the rate becomes lower when they leave too little to the program.
 */
#include "kernel/time/sample.h"
#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"
#include "kernel/cpu/ioapic.h"
#include "kernel/cpu/percpu.h"
#include "kernel/time/clock.h"

#define TIMER_IRQ 0
#define LONG_MOST 32 /* NMIs in a row that take more than three quarters of the time */

static void (*tick)(unsigned hz);   /* immutable after boot */
static unsigned rate;               /* changed with @changing only */
static uint64_t most;               /* cycles; likewise. 0: no NMI is too long */
static bool changing;               /* the timer; NMIs do not wait for it */
static unsigned too_long[MAX_CPUS]; /* each CPU its own */

INIT void sample_init(void (*fn)(unsigned hz))
{
    tick = fn;
}

static void set_timer(unsigned hz)
{
    tick(hz);
    WRITE_ONCE(rate, hz);
    WRITE_ONCE(most, hz ? clock_cycles_per_ms() * 1000 / hz * 3 / 4 : 0);
}

int sample_set_hz(unsigned hz)
{
    int err;

    if (hz && (hz < SAMPLE_HZ_MIN || hz > SAMPLE_HZ_MAX))
        return -EINVAL;
    err = hz ? ioapic_route_nmi(TIMER_IRQ, IOAPIC_ALL_CPUS) : ioapic_mask(TIMER_IRQ);
    if (err)
        return err;
    while (__atomic_exchange_n(&changing, true, __ATOMIC_ACQUIRE))
        pause(); /* an NMI of another CPU has it */
    set_timer(hz);
    __atomic_store_n(&changing, false, __ATOMIC_RELEASE);
    return 0;
}

unsigned sample_hz(void)
{
    return READ_ONCE(rate);
}

void sample_nmi_ends(uint64_t begun)
{
    unsigned *count = &too_long[this_cpu()->id];
    uint64_t limit = READ_ONCE(most);

    *count = limit && rdtsc() - begun > limit ? *count + 1 : 0;
    if (*count < LONG_MOST || __atomic_exchange_n(&changing, true, __ATOMIC_ACQUIRE))
        return;
    *count = 0;
    if (rate / 2 >= SAMPLE_HZ_MIN)
        set_timer(rate / 2);
    __atomic_store_n(&changing, false, __ATOMIC_RELEASE);
}
